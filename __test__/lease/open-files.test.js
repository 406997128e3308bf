'use strict';
// A process with as many open files as its limit permits: each error names the limit.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { join } = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const { gate } = require('../support/amount.js');
const { createDirectory } = require('../support/own-directory.js');
const { entry } = require('../support/support.js');

const skip = process.platform === 'win32' && 'Windows has no such limit';

/** Runs a script in a process that may have few files open. Returns what it printed. */
async function runLimited(script, env = {}) {
  const command = 'ulimit -n 64; exec "$0" -e "$1"';
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, script], {
    cwd: __dirname,
    env: { ...process.env, ...env },
  });
  return stdout;
}

const SCRIPT = `
  const { closeSync, openSync } = require('node:fs');
  const { SnowFlake } = require(${JSON.stringify(entry)});
  const lease = (url, more) => SnowFlake.lease(url, { datacenterId: 1, ...more });
  const servers = ['postgres', 'mysql', 'redis', 'etcd'].map((name) => name + '://127.0.0.1:1');
  const tries = [
    ...servers.map((url) => [url, () => lease(url)]),
    ['file', () => lease(process.env.DIRECTORY)],
    ['page', async () => new SnowFlake({ datacenterId: 1, workerId: 3 })],
    ['ca', () => lease('etcds://127.0.0.1:1?ca=' + __filename)],
  ];
  async function main() {
    // Loads the clients.
    for (const url of servers) await lease(url).catch(() => {});
    const files = [];
    try {
      for (;;) files.push(openSync('/dev/null'));
    } catch {}
    const found = [];
    for (const [what, run] of tries) {
      const { code, message } = await run().then(() => ({}), (failure) => failure);
      found.push({ what, code, message });
    }
    for (const file of files) closeSync(file);
    console.log(JSON.stringify(found));
    process.exit();
  }
  main();`;

test('errors of a process with too many open files name the limit', {
  skip: skip || gate,
}, async () => {
  const directory = createDirectory();
  const stdout = await runLimited(SCRIPT, { DIRECTORY: `file://${join(directory, 'ids')}` });
  const found = JSON.parse(stdout);
  assert.equal(found.length, 7);
  for (const { what, code, message } of found) {
    assert.match(String(code), /^ERR_SNOWFLAKE_(STORE|CONFIG)$/, what);
    assert.match(String(message), /\(ulimit -n\): close what it does not need/, what);
    assert.doesNotMatch(message, /Check the disk|check its path|check that it runs/, what);
  }
});

test('a client that is first loaded at that limit is not reported as missing', {
  skip,
}, async () => {
  const stdout = await runLimited(`
    const { openSync, writeSync } = require('node:fs');
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { memory } = require(${JSON.stringify(require.resolve('../../js/stores/memory.js'))});
    // In the package, the same file has it.
    require(${JSON.stringify(require.resolve('../../js/stores/servers/postgres.js'))});
    async function main() {
      await (await SnowFlake.lease(memory(), { datacenterId: 1 })).close();
      try {
        for (;;) openSync('/dev/null');
      } catch {}
      await SnowFlake.lease('postgres://127.0.0.1:1', { datacenterId: 1 });
    }
    main().catch(({ message }) => writeSync(1, message));`);
  assert.match(stdout, /^cannot load the package 'pg', which .*\(ulimit -n\)/);
  assert.doesNotMatch(stdout, /npm install/);
});
