'use strict';
// Files that options name, of commands and of URLs: what is no small regular file is refused, and nothing waits for it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { mkdtempSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, test } = require('node:test');

require('../support/own-directory.js');
const { SnowFlake } = require('../..');
const { endOf, run, start } = require('../support/cli.js');
const { missing } = require('../support/lease/servers.js');
const { limitWait } = require('../support/limit-wait.js');
const { rejects, runScript } = require('../support/support.js');

const skip = process.platform === 'win32' && 'Windows has no devices and FIFOs among its files';

const folder = mkdtempSync(join(tmpdir(), 'snowdrift-files-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const write = (name, contents) => {
  const path = join(folder, name);
  writeFileSync(path, contents);
  return path;
};

/** What is refused, by path. */
function refusedFiles() {
  const fifo = join(folder, 'fifo');
  assert.equal(spawnSync('mkfifo', [fifo]).status, 0);
  symlinkSync('/dev/zero', join(folder, 'link'));
  const notRegular = /is no regular file: put its contents into one/;
  return new Map([
    // First, since it ends where it is not refused.
    [write('long', Buffer.alloc(2 ** 20 + 1, 'x')), /has more than 1 MiB: check its path/],
    ['/dev/zero', notRegular],
    ['/dev/random', notRegular],
    [join(folder, 'link'), notRegular],
    [fifo, notRegular],
    [folder, notRegular],
    [join(folder, 'absent'), /^cannot read the file .* \(ENOENT\): check its path and mode/],
    [
      `${write('file', 'x')}/below`,
      /^cannot read the file .* \(ENOTDIR\): check its path and mode/,
    ],
  ]);
}

const files = skip ? new Map() : refusedFiles();
const NODE = ['--datacenter-id', '1', '--worker-id', '3'];

test('a command refuses a file that is not regular, too long or endless', { skip }, async () => {
  for (const [file, said] of files) {
    for (const [option, args] of [
      ['token-file', ['serve', '--port', '0', ...NODE, '--token-file', file]],
      ['lease-file', ['slots', '--lease-file', file]],
    ]) {
      const { code, stdout, stderr } = await limitWait(run(args), `${option} ${file}`);
      assert.deepEqual([code, stdout], [2, ''], stderr);
      assert.match(stderr.replace('snowdrift: ERR_SNOWFLAKE_CONFIG: ', ''), said);
      assert.ok(stderr.includes(`file '${file}' of --${option}`), stderr);
    }
  }
});

test('a pipe is refused, since it may never end', { skip }, async () => {
  const args = ['slots', '--lease-file', '/dev/stdin'];
  const { code, stderr } = await endOf(start(args, { stdio: ['pipe', 'pipe', 'pipe'] }));
  assert.equal(code, 2);
  assert.match(stderr, /file '\/dev\/stdin' of --lease-file is no regular file/);
});

test('a file of the greatest length is read', { skip }, async () => {
  const file = write('padded', `${' '.repeat(2 ** 20 - 100)}file:///absent-for-sure`);
  const { stderr } = await run(['slots', '--lease-file', file]);
  assert.doesNotMatch(stderr, /file .* of --lease-file/);
});

const URLS = [
  ...['ca', 'cert', 'key'].map((option) => ['etcd', 'etcds', option]),
  ...['ca', 'cert', 'key'].map((option) => ['zookeeper', 'zookeepers', option]),
  ...['sslrootcert', 'sslcert', 'sslkey'].map((option) => ['postgres', 'postgres', option]),
];

for (const [engine, scheme, option] of URLS) {
  const without = skip || (engine === 'zookeeper' && missing('zookeeper'));
  test(`${scheme}://?${option}= refuses such a file`, { skip: without }, async () => {
    const whole = write('certificate', 'x');
    for (const [file, said] of files) {
      const url = new URL(`${scheme}://127.0.0.1:1/app`);
      if (option !== 'ca' && scheme === 'zookeepers') {
        url.searchParams.set('cert', whole);
        url.searchParams.set('key', whole);
      }
      url.searchParams.set(option, file);
      const call = SnowFlake.lease(url.href, { datacenterId: 1 });
      const { message } = await limitWait(rejects(call, 'ERR_SNOWFLAKE_CONFIG'), `${url.href}`);
      assert.match(message, said);
      assert.match(message, new RegExp(`the file of the option ${option} of \\w+ at 127`));
    }
  });
}

test('a device as NODE_EXTRA_CA_CERTS is not read', {
  skip: skip || missing('zookeeper'),
}, async () => {
  const script = `
    const { SnowFlake } = require('../..');
    SnowFlake.lease('zookeepers://127.0.0.1:1', { datacenterId: 1, ttl: 2000, callTimeout: 500 }).catch(
      ({ code }) => console.log(code),
    );`;
  const env = { NODE_EXTRA_CA_CERTS: '/dev/zero' };
  const { stdout } = await limitWait(runScript(script, { env }), 'the lease is refused');
  assert.equal(stdout, 'ERR_SNOWFLAKE_STORE\n');
});
