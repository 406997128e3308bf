'use strict';
// A host that has no place for pages, or does not tell whether it has one: processes of one node cannot share a sequence.
// They are refused, or at least warned; never in silence alone.

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, test } = require('node:test');

const { gate } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { Machine, missing } = require('../support/machine.js');
const { entry, runScript } = require('../support/support.js');

/** Why this machine lets no test mount something, or undefined. */
function noMounts() {
  if (process.platform !== 'linux') return 'only Linux may have no place for pages';
  const { status } = spawnSync('unshare', ['--mount', 'true'], { stdio: 'ignore' });
  return status === 0 ? undefined : 'unshare --mount is refused here';
}

const skip = noMounts();
const disk = skip ?? mkdtempSync(join(tmpdir(), 'snowdrift-disk-'));
after(() => {
  if (skip === undefined) rmSync(disk, { recursive: true });
});

/** Variables that tell a process of its siblings, or where its pages are. */
const CLEAN = {
  SNOWDRIFT_SHARED: undefined,
  datacenterId: '1',
  workerId: '3',
};

/** Runs a script where /dev/shm is on a disk. Returns what it prints, and the codes and texts of its warnings. */
function runWithoutMemory(script, env = {}) {
  const mount = `mount --bind ${disk} /dev/shm; exec "$@"`;
  const file = join(disk, 'script.js');
  writeFileSync(file, PRELUDE + script);
  const args = ['--mount', 'sh', '-ec', mount, 'sh', process.execPath, file];
  const stdout = execFileSync('unshare', args, {
    env: { ...process.env, ...CLEAN, ...env },
    encoding: 'utf8',
  });
  return stdout.trim().split('\n').map(JSON.parse);
}

const PRELUDE = `
  const { SnowFlake, CachedSnowFlake } = require(${JSON.stringify(entry)});
  const cluster = require('node:cluster');
  const fs = require('node:fs');
  const warnings = [];
  process.removeAllListeners('warning');
  process.on('warning', ({ code, message, detail }) => warnings.push({ code, message, detail }));
  const print = (what) => console.log(JSON.stringify(what));
  const attempt = (open) => {
    let result;
    try {
      const flake = open();
      result = { scope: flake.stats().scope, ids: Array.from(flake.nextIds(200), String) };
    } catch ({ code, message }) {
      result = { code, message };
    }
    setImmediate(() => {
      print({ ...result, warnings });
      if (cluster.isWorker) process.disconnect();
    });
  };
`;

const OPEN = 'attempt(() => new SnowFlake());';

/** What a refusal and a warning say. */
function assertNames(text) {
  assert.match(text, /Mount a tmpfs at \/dev\/shm/);
  assert.match(text, /SNOWDRIFT_SHARED/);
  assert.match(text, /SnowFlake\.lease\(\), SNOWDRIFT_LEASE/);
  assert.match(text, /scope: 'process'/);
}

test('a process that knows of no other is warned', { skip }, () => {
  for (const open of ['new SnowFlake()', 'new CachedSnowFlake()', 'SnowFlake.default']) {
    const [{ scope, warnings }] = runWithoutMemory(`attempt(() => ${open});`);
    assert.equal(scope, 'process');
    const [{ code, message, detail }, ...more] = warnings;
    assert.deepEqual(more, []);
    assert.equal(code, 'SNOWFLAKE_PROCESS_SCOPE');
    assert.match(
      message,
      /^Other processes with datacenterId 1 and workerId 3, .*issue duplicates/,
    );
    assertNames(detail);
  }
});

test('a worker of pm2 is refused', { skip }, () => {
  const [{ code, message }] = runWithoutMemory(OPEN, { pm_id: '0' });
  assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', message);
  assert.match(message, /worker of pm2/);
  assertNames(message);
});

test('workers of a cluster are refused, and accepted with a scope or a directory', { skip }, () => {
  const cluster = (options, before = '', count = 1) => `
    if (cluster.isPrimary) { ${before}; for (let n = 0; n < ${count}; n++) cluster.fork(); }
    else attempt(() => new SnowFlake(${options}));`;
  for (const { code, message } of runWithoutMemory(cluster(''))) {
    assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', message);
    assert.match(message, /worker of a cluster/);
    assertNames(message);
  }
  // The application knows that each has a node of its own.
  for (const { scope, warnings } of runWithoutMemory(cluster("{ scope: 'process' }"))) {
    assert.deepEqual([scope, warnings], ['process', []]);
  }
  const mount = `require('node:child_process').execFileSync('mount', ['-t', 'tmpfs', 'none', '/mnt'])`;
  const shares = runWithoutMemory(cluster('', mount, 2), { SNOWDRIFT_SHARED: '/mnt' });
  const found = shares.map(({ scope, warnings }) => ({ scope, warnings }));
  assert.deepEqual(found, Array(2).fill({ scope: 'host', warnings: [] }));
  assert.equal(countDuplicatesOf(shares.map(({ ids }) => ids)), 0);
});

/** Has a worker open in a thread of its own. */
const IN_THREAD = `{
  const script = ${JSON.stringify(PRELUDE + OPEN)};
  new (require('node:worker_threads').Worker)(script, { eval: true })
    .on('exit', () => process.disconnect());
}`;

test('a thread of a worker is treated as the worker', { skip: gate ?? skip }, () => {
  const [result] = runWithoutMemory(`if (cluster.isPrimary) cluster.fork(); else ${IN_THREAD}`);
  assert.equal(result.code, 'ERR_SNOWFLAKE_CONFIG', JSON.stringify(result));
});

test('leases and records need no pages: no warning', { skip }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-no-pages-'));
  try {
    for (const option of ['state', 'lease']) {
      const given =
        option === 'state'
          ? `{ state: ${JSON.stringify(join(directory, 'state'))} }`
          : `{ lease: 'file://${join(directory, 'lease')}', workerId: undefined }`;
      const [result] = runWithoutMemory(`attempt(() => new SnowFlake(${given}));`);
      assert.deepEqual([result.scope, result.warnings], ['process', []], result.message);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a process whose directory in memory is unmounted is refused, and makes no page on the disk', {
  skip,
}, () => {
  const results = runWithoutMemory(
    `const run = (...command) => require('node:child_process').execFileSync(command[0], command.slice(1));
    run('mount', '-t', 'tmpfs', 'none', '/dev/shm');
    const flake = new SnowFlake();
    flake.nextId();
    run('umount', '--lazy', '/dev/shm');
    setTimeout(() => attempt(() => ({ stats: () => ({}), nextIds: () => [flake.nextId()] })), 5);`,
  );
  assert.equal(results[0].code, 'ERR_SNOWFLAKE_STORE', JSON.stringify(results));
  assert.match(results[0].message, /\/dev\/shm is not in memory/);
});

test('a system that does not tell what /dev/shm is, as under a seccomp filter, is an error', {
  skip: missing(),
}, async () => {
  const machine = new Machine();
  try {
    const errors = { 1: 'Operation not permitted', 38: 'Function not implemented' };
    const cases = Object.keys(errors).flatMap((number) =>
      ['auto', 'host', 'process'].flatMap((scope) =>
        [undefined, machine.env.SNOWDRIFT_SHARED].map((shared) => ({ number, scope, shared })),
      ),
    );
    const script = `${PRELUDE}
      const shim = fs.openSync(process.env.MACHINE_SHIM, 'r+');
      for (const [workerId, { number, scope, shared }] of ${JSON.stringify(cases)}.entries()) {
        fs.writeSync(shim, new BigInt64Array([BigInt(number)]), 0, 8, 3 * 8);
        if (shared === undefined) delete process.env.SNOWDRIFT_SHARED;
        else process.env.SNOWDRIFT_SHARED = shared;
        attempt(() => new SnowFlake({ workerId, scope }));
      }`;
    const { stdout, stderr } = await runScript(script, { env: { ...CLEAN, ...machine.env } });
    assert.equal(stderr, '');
    const results = stdout.trim().split('\n').map(JSON.parse);
    assert.equal(results.length, cases.length);
    for (const [n, { number, scope }] of cases.entries()) {
      const result = results[n];
      if (scope === 'process') {
        assert.equal(result.scope, 'process', result.message);
        continue;
      }
      assert.equal(result.code, 'ERR_SNOWFLAKE_STORE', result.message);
      assert.ok(result.message.includes(errors[number]), result.message);
      assert.match(result.message, /cannot check the file system of .*seccomp.*scope 'process'/);
    }
  } finally {
    machine.remove();
  }
});
