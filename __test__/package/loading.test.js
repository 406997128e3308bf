'use strict';
// What an instance may need is read with the package: later, the process may be another user, who cannot read it, or a
// deployment may have removed or replaced it. Only the code of leases from stores is read late.

const assert = require('node:assert/strict');
const {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
} = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { gate } = require('../support/amount.js');
const { createReachable, noOtherUser } = require('../support/other-users.js');
const { createDirectory } = require('../support/own-directory.js');
const { runScript } = require('../support/support.js');

const ROOT = join(__dirname, '../..');
const NOBODY = 65534;

/** An installation of the package, its code put together as in a release. @param change edits the code before */
async function install(folder, change) {
  const { bundle } = await import('../../scripts/bundle.mjs');
  for (const part of ['js', 'package.json']) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  change?.(join(folder, 'js'));
  bundle(folder);
}

/** What `require` of a package loads: files, and modules of Node. */
const LOADED = `
  const before = new Set(process.moduleLoadList);
  require(process.env.PACKAGE);
  const modules = process.moduleLoadList.filter((name) => !before.has(name));
  const files = Object.keys(require.cache).filter((path) => path.includes('snowdrift'));
  console.log(JSON.stringify({
    files: files.map((path) => require('node:path').basename(path)),
    modules: modules.filter((name) => /^NativeModule (?!internal)/.test(name)),
  }));
`;

for (const [who, id] of [
  ['root', 0],
  ['another user', NOBODY],
]) {
  test(`by ${who}, require('snowdrift') compiles three files, and loads the addon`, {
    skip: noOtherUser(),
  }, async () => {
    const place = createReachable();
    try {
      chmodSync(place, 0o755);
      await install(join(place, 'snowdrift'));
      const { stdout, stderr } = await runScript(
        `process.setgroups([]); process.setgid(${id}); process.setuid(${id}); ${LOADED}`,
        { env: { PACKAGE: join(place, 'snowdrift') } },
      );
      assert.notEqual(stdout, '', stderr);
      const { files, modules } = JSON.parse(stdout);
      assert.deepEqual(
        files
          .map((name) => name.replace(/-\w{8}\.js$/, '.js'))
          .map((name) => name.replace(/^snowdrift\..*\.node$/, 'addon')),
        ['index.js', 'core.js', 'ids.js', 'addon'],
      );
      assert.deepEqual(modules, []);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });
}

/** Loads all that a package exports, both ways, and an error of each kind of entry. */
const ENTRIES = `
  const { exports } = require(process.env.PACKAGE + '/package.json');
  const { SnowFlakeError, SnowFlake } = require(process.env.PACKAGE);
  async function main() {
    const unlike = [];
    for (const [name, { default: file = exports[name] }] of Object.entries(exports)) {
      if (!file.endsWith('.js')) continue;
      const path = require('node:path').join(process.env.PACKAGE, file);
      const names = Object.keys(require(path)).sort().join();
      const { default: _, 'module.exports': __, ...imported } = await import(path);
      if (Object.keys(imported).sort().join() !== names) unlike.push(name);
    }
    const of = (name) => require(process.env.PACKAGE + '/js/' + name);
    const calls = [
      () => of('id.js').parse('x'),
      () => of('public.js').publicIds('x'),
      () => of('stores/postgres.js').postgres(1),
      () => SnowFlake.lease(of('stores/etcd.js').etcd({ wrong: 1 })),
      () => SnowFlake.lease('etcd://'),
    ];
    const foreign = [];
    for (const call of calls) {
      await (async () => call())().then(
        () => foreign.push(String(call)),
        (error) => error instanceof SnowFlakeError || foreign.push(call + ': ' + error),
      );
    }
    console.log(JSON.stringify({ unlike, foreign }));
  }
  main();
`;

test('what the package exports can be imported by name, and shares one class of errors', async () => {
  const place = createReachable();
  try {
    await install(place);
    symlinkSync(join(ROOT, 'node_modules'), join(place, 'node_modules'), 'junction');
    const { stdout, stderr } = await runScript(ENTRIES, { env: { PACKAGE: place } });
    assert.notEqual(stdout, '', stderr);
    assert.deepEqual(JSON.parse(stdout), { unlike: [], foreign: [] });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

test('nothing but the code of leases is read late', async () => {
  const place = createReachable();
  try {
    await install(place);
    const code = join(place, 'js');
    // Commands end soon.
    const files = readdirSync(code, { recursive: true }).filter(
      (path) => path.endsWith('.js') && !/^(cli|server)\//.test(path),
    );
    const late = files.flatMap((path) => {
      const lines = readFileSync(join(code, path), 'utf8').split('\n');
      const isLate = (line) => /^ +(?!\*|\/\/).*require\('\.|=> require\('\./.test(line);
      return lines.filter(isLate).map((line) => line.trim().replace(/-\w{8}/, ''));
    });
    assert.deepEqual(late, [
      "addLater(() => require('./leases.js'), ['lease/open.js']);",
      // The addon's loader has a version to name where there is no addon.
      "const { version, optionalDependencies } = require('../../package.json');",
    ]);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

/** Calls each part of the package after it can no longer be read. Prints how each call ended, and what was warned of. */
const SCRIPT = `
  const { renameSync } = require('node:fs');
  const { subscribe } = require('node:diagnostics_channel');
  const { CachedSnowFlake, SnowFlake } = require(process.env.PACKAGE);
  const { memory } = process.env.LEASES ? require(process.env.PACKAGE + '/js/stores/memory.js') : {};
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
      const flake = await SnowFlake.lease(memory?.() ?? { read() {}, write() {}, now() {} }, patient);
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

/** How each ends: `ok`, or the start of its error. @param leases how leases from stores end, if they do not load */
const expected = (leases) => ({
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
  'lease of a store': leases ?? 'ok',
  'lease of a directory': 'ok',
  'lease of a server': leases ?? 'ERR_SNOWFLAKE_STORE',
  'lease of a client that cannot be read':
    leases ?? "ERR_SNOWFLAKE_CONFIG: a lease from redis:// needs the package 'ioredis'",
  'warning of text IDs': 'ok',
});

const LOST = 'ERR_SNOWFLAKE_CONFIG: cannot load the code of leases in this package:';

/** Runs the script with a copy of the package in a directory that only its owner may enter. */
async function runWithCopy(env) {
  const place = createReachable();
  try {
    const [home, ids] = ['private', 'ids'].map((name) => join(place, name));
    mkdirSync(home, { mode: 0o700 });
    await install(join(home, 'snowdrift'));
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

async function assertWorks(env, leases) {
  const { ended, warned } = await runWithCopy(env);
  const ends = expected(leases);
  assert.deepEqual(Object.keys(ended), Object.keys(ends));
  for (const [name, start] of Object.entries(ends)) {
    assert.ok(ended[name].startsWith(start), `${name}: ${ended[name]}`);
  }
  for (const what of ['SNOWFLAKE_CLOCK_BACK', 'published']) assert.ok(warned.includes(what), what);
  return ended;
}

for (const LEASES of ['', 'loaded']) {
  const how = LEASES === '' ? ', but for new leases from stores' : ' if it has loaded leases';
  const name = (what) => `${what} works on${how}`;
  test(name('a process whose package has been moved away'), {
    skip: process.platform === 'win32' && 'Windows moves no addon in use',
  }, async () => {
    const lost = LEASES === '' ? `${LOST} it was removed or replaced` : undefined;
    await assertWorks((place) => ({ LEASES, MOVE_TO: join(place, 'aside') }), lost);
  });

  test(name('as a user who cannot read the package, a process'), {
    skip: gate ?? noOtherUser(),
  }, async () => {
    const lost = LEASES === '' ? `${LOST} its present user cannot read it` : undefined;
    const ended = await assertWorks(() => ({ LEASES, USER_ID: NOBODY }), lost);
    assert.match(ended['lease of a client that cannot be read'], /before process\.setuid\(\)/);
  });
}

test('a test that puts a mock in the place of snowdrift has the rest of the package', async () => {
  const place = createReachable();
  try {
    await install(place);
    const mocked = `
      const path = require.resolve(process.env.PACKAGE);
      require.cache[path] = Object.assign(new module.constructor(path), { exports: {}, loaded: true });
      const { memory } = require(process.env.PACKAGE + '/js/stores/memory.js');
      console.log(require(process.env.PACKAGE).SnowFlake, typeof memory().read);
    `;
    const { stdout, stderr } = await runScript(mocked, { env: { PACKAGE: place } });
    assert.equal(stdout, 'undefined function\n', stderr);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

/** Opens its first instance, and throws its first error, after its package was removed. */
const FIRST = `
  const { rmSync } = require('node:fs');
  const { SnowFlake } = require(process.env.PACKAGE);
  rmSync(process.env.PACKAGE, { recursive: true });
  const flake = new SnowFlake({ scope: 'process', datacenterId: 1, workerId: 3 });
  console.log(typeof flake.nextId());
  flake.parse('x');
`;

test('the first instance and the first error of a process need no file of the package', {
  skip: process.platform === 'win32' && 'Windows removes no addon in use',
}, async () => {
  const place = createReachable();
  try {
    const PACKAGE = join(place, 'snowdrift');
    await install(PACKAGE);
    const { stdout, stderr } = await runScript(FIRST, { env: { PACKAGE } });
    assert.equal(stdout, 'bigint\n', stderr);
    assert.match(stderr, /\nSnowFlakeError: .*'x'/);
    assert.match(stderr, /\n {4}at .*\/snowdrift\/js\/runtime\/opening-\w{8}\.js:\d+:\d+\)\n/);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

/** Takes a lease after its package was replaced. */
const REPLACED = `
  const { renameSync } = require('node:fs');
  const { SnowFlake } = require(process.env.PACKAGE);
  renameSync(process.env.PACKAGE, process.env.PACKAGE + '-old');
  renameSync(process.env.OTHER, process.env.PACKAGE);
  if (process.env.USER_ID) process.setuid(Number(process.env.USER_ID));
  const store = { name: 'mine', read() {}, write() {}, now() {} };
  SnowFlake.lease(store).catch(({ code, message }) => console.log(code + ': ' + message));
`;

for (const [who, USER_ID] of [
  ['', ''],
  [', whichever user it is', String(NOBODY)],
]) {
  test(`a process whose package was replaced by another version runs no code of it${who}`, {
    skip: USER_ID !== '' && noOtherUser(),
  }, async () => {
    const place = createReachable();
    try {
      const [PACKAGE, OTHER] = ['snowdrift', 'other'].map((name) => join(place, name));
      await install(PACKAGE);
      await install(OTHER, (code) => appendFileSync(join(code, 'lease/open.js'), '// Changed.\n'));
      chmodSync(place, 0o755);
      const env = { PACKAGE, OTHER, USER_ID, datacenterId: '1' };
      const { stdout, stderr } = await runScript(REPLACED, { env });
      assert.ok(stdout.startsWith(`${LOST} it was removed or replaced`), stdout + stderr);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });
}

/** Takes leases after a test runner has emptied the cache of `require`, as jest.resetModules() does. */
const EMPTIED = `
  const { SnowFlake, SnowFlakeError } = require(process.env.PACKAGE);
  for (const path of Object.keys(require.cache)) delete require.cache[path];
  const { memory } = require(process.env.PACKAGE + '/js/stores/memory.js');
  async function main() {
    const flake = await SnowFlake.lease(memory());
    console.log(flake instanceof SnowFlake, typeof flake.nextId());
    await flake.close();
    await SnowFlake.lease('redis://127.0.0.1:1').catch((error) =>
      console.log(error instanceof SnowFlakeError, error.message));
  }
  main();
`;

test('a process whose cache of modules was emptied takes leases by the package that it has loaded', async () => {
  const place = createReachable();
  try {
    const PACKAGE = join(place, 'snowdrift');
    await install(PACKAGE);
    const { stdout, stderr } = await runScript(EMPTIED, { env: { PACKAGE, datacenterId: '1' } });
    assert.match(
      stdout,
      /^true bigint\ntrue a lease from redis:\/\/ needs the package 'ioredis'/,
      stderr,
    );
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});
