'use strict';
// What an instance may need is loaded with the package: later, the process may be another user, who cannot read it, or a
// deployment may have removed it. Only leases from stores are loaded late, unless by root.

const assert = require('node:assert/strict');
const { chmodSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { gate } = require('../support/amount.js');
const { createReachable, noOtherUser } = require('../support/other-users.js');
const { createDirectory } = require('../support/own-directory.js');
const { runScript } = require('../support/support.js');

const ROOT = join(__dirname, '../..');
const NOBODY = 65534;

const isRoot = process.getuid?.() === 0;

test('only leases from stores are loaded late', () => {
  // Commands end soon; the addon's loader has a version to name where there is no addon.
  const files = readdirSync(join(ROOT, 'js'), { recursive: true }).filter(
    (path) => path.endsWith('.js') && !/^(cli\/|server\/|runtime\/addon\.js$)/.test(path),
  );
  assert.ok(files.length > 50);
  const late = files.flatMap((path) => {
    const lines = readFileSync(join(ROOT, 'js', path), 'utf8').split('\n');
    const isLate = (line) => /^ +(?!\*|\/\/).*require\('\.|=> require\('\./.test(line);
    return lines.filter(isLate).map((line) => `${path}: ${line.trim()}`);
  });
  assert.deepEqual(late, [
    "generator/opening.js: const leases = () => require('../lease/open.js');",
  ]);
});

/** Calls each part of the package after it can no longer be read. Prints how each call ended, and what was warned of. */
const SCRIPT = `
  const { renameSync } = require('node:fs');
  const { subscribe } = require('node:diagnostics_channel');
  const { CachedSnowFlake, SnowFlake } = require(process.env.PACKAGE);
  const { memory } = require(process.env.PACKAGE + '/js/stores/memory.js');
  const { checkTextIds } = require(process.env.PACKAGE + '/js/orm/text-ids.js');

  const options = (more) => ({ scope: 'process', datacenterId: 1, workerId: 3, ...more });
  const patient = { ttl: 600_000, maxWait: 60_000 };
  const calls = {
    async nextId() { new SnowFlake(options()).nextId(); },
    async nextIdAsync() { await new SnowFlake(options()).nextIdAsync(); },
    async 'own clock'() { await new SnowFlake(options({ clock: Date.now })).nextIdAsync(); },
    async 'before the epoch'() { new SnowFlake(options({ clock: () => 0 })).nextId(); },
    async 'bad option'() { new SnowFlake(options({ workerId: 99 })); },
    async 'bad ID'() { new SnowFlake(options()).parse('x'); },
    async conflict() { new SnowFlake(options({ scope: 'host' })); },
    async toUidString() {
      const flake = new SnowFlake(options());
      flake.toUidString(flake.nextId());
    },
    async 'ring'() {
      const flake = new CachedSnowFlake(options({ workerId: 4 }));
      flake.nextId();
      flake.close();
    },
    async rollback() {
      let now = Date.now();
      const flake = new SnowFlake(options({ clock: () => now }));
      flake.nextId();
      now -= 10;
      flake.nextId();
    },
    async 'lease of a store'() {
      const flake = await SnowFlake.lease(memory(), patient);
      await flake.nextIdAsync();
      await flake.close();
    },
    async 'lease of a directory'() {
      const flake = await SnowFlake.lease('file://' + process.env.IDS, patient);
      await flake.nextIdAsync();
      await flake.close();
    },
    async 'lease of a server'() { await SnowFlake.lease('etcd://127.0.0.1:1'); },
    async 'lease of a client that cannot be read'() { await SnowFlake.lease('redis://127.0.0.1:1'); },
    async 'warning of text IDs'() { checkTextIds('1'); },
  };
  const warned = [];
  process.on('warning', ({ code }) => warned.push(code));
  subscribe('snowdrift:clock-rollback', () => warned.push('published'));

  async function main() {
    const kept = new SnowFlake(options());
    if (process.env.MOVE_TO) renameSync(process.env.PACKAGE, process.env.MOVE_TO);
    if (process.env.USER_ID) {
      process.setgroups([]);
      process.setgid(Number(process.env.USER_ID));
      process.setuid(Number(process.env.USER_ID));
    }
    const ended = {};
    for (const [name, call] of Object.entries(calls)) {
      await call().then(() => (ended[name] = 'ok'), ({ code, message }) => (ended[name] = code + ': ' + message));
    }
    kept.nextId();
    console.log(JSON.stringify({ ended, warned }));
    process.exit();
  }
  main();
`;

/** Of leases from stores: loaded late, but by root. */
const late = (end) => (isRoot ? end : "MODULE_NOT_FOUND: Cannot find module '../lease/open.js'");

/** How each ends: `ok`, or the start of its error. */
const EXPECTED = {
  nextId: 'ok',
  nextIdAsync: 'ok',
  'own clock': 'ok',
  'before the epoch': 'ERR_SNOWFLAKE_BEFORE_EPOCH',
  'bad option': 'ERR_SNOWFLAKE_CONFIG',
  'bad ID': 'ERR_SNOWFLAKE_INVALID_ID',
  conflict: 'ERR_SNOWFLAKE_CONFLICT',
  toUidString: 'ok',
  ring: 'ok',
  rollback: 'ok',
  'lease of a store': late('ok'),
  'lease of a directory': 'ok',
  'lease of a server': late('ERR_SNOWFLAKE_STORE'),
  'lease of a client that cannot be read': late(
    "ERR_SNOWFLAKE_CONFIG: a lease from redis:// needs the package 'ioredis'",
  ),
  'warning of text IDs': 'ok',
};

/** Runs the script with a copy of the package in a directory that only its owner may enter. */
async function runWithCopy(env) {
  const place = createReachable();
  try {
    const [home, ids] = ['private', 'ids'].map((name) => join(place, name));
    mkdirSync(home, { mode: 0o700 });
    for (const part of ['js', 'package.json']) {
      cpSync(join(ROOT, part), join(home, 'snowdrift', part), { recursive: true });
    }
    mkdirSync(ids);
    const shared = createDirectory();
    for (const path of [place, ids, shared]) chmodSync(path, 0o1777);
    const { stdout, stderr } = await runScript(SCRIPT, {
      env: {
        ...env(place),
        PACKAGE: join(home, 'snowdrift'),
        IDS: ids,
        datacenterId: '1',
        SNOWDRIFT_SHARED: shared,
      },
    });
    assert.notEqual(stdout, '', stderr);
    return JSON.parse(stdout);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function assertWorks(env) {
  const { ended, warned } = await runWithCopy(env);
  assert.deepEqual(Object.keys(ended), Object.keys(EXPECTED));
  for (const [name, start] of Object.entries(EXPECTED)) {
    assert.ok(ended[name].startsWith(start), `${name}: ${ended[name]}`);
  }
  for (const what of ['SNOWFLAKE_CLOCK_BACK', 'published']) assert.ok(warned.includes(what), what);
  return ended;
}

test(
  'a process whose package has been moved away works on',
  { skip: process.platform === 'win32' && 'Windows moves no addon in use' },
  () => assertWorks((place) => ({ MOVE_TO: join(place, 'aside') })),
);

test('a process works on as a user who cannot read the package', {
  skip: gate ?? noOtherUser(),
}, async () => {
  const ended = await assertWorks(() => ({ USER_ID: NOBODY }));
  assert.match(ended['lease of a client that cannot be read'], /before process\.setuid\(\)/);
});
