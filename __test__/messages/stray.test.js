'use strict';
// What a path or a URL gets on its way: the carriage return of a file from Windows, quotes that no shell has removed,
// white space. Each is refused. Otherwise the directory would be another one, outside the volume.

const assert = require('node:assert/strict');
const { mkdirSync, mkdtempSync, readdirSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { run } = require('../support/cli.js');
const { removeDirectory } = require('../support/own-directory.js');
const { SnowFlake, rejects } = require('../support/support.js');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const node = { datacenterId: 1, workerId: 3 };

const directory = mkdtempSync(join(tmpdir(), 'snowdrift-stray-'));
after(() => removeDirectory(directory));
const place = join(directory, 'volume');
mkdirSync(place);

/** By what is said of it: a text with something that does not belong there. */
const STRAYS = {
  'a carriage return (U+000D)': (text) => `${text}\r`,
  'a line feed (U+000A)': (text) => `${text}\n`,
  'a tab (U+0009)': (text) => text.replace('volume', 'vol\tume'),
  'a control character (U+001B)': (text) => `${text}\x1b[0m`,
  'a control character (U+2028)': (text) => `${text}\u2028`,
  'white space around it': (text) => ` ${text}`,
  'quotes around it': (text) => `"${text}"`,
  'a carriage return (U+000D) and quotes around it': (text) => `"${text}\r`,
};

/** Runs a call with these variables. */
async function withEnvironment(variables, call) {
  Object.assign(process.env, variables);
  try {
    return await call();
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
}

const file = pathToFileURL(place).href;
const server = 'postgres://app:hidden@127.0.0.1:1/volume';
const { SNOWDRIFT_SHARED } = process.env;

/** By the name in the error: the right text, and what uses another one. */
const WAYS = {
  state: [place, (state) => new SnowFlake({ ...node, state })],
  'the environment variable SNOWDRIFT_STATE': [
    place,
    (text) => withEnvironment({ SNOWDRIFT_STATE: text }, () => new SnowFlake(node)),
  ],
  lease: [file, (lease) => new SnowFlake({ datacenterId: 1, lease })],
  'the environment variable SNOWDRIFT_LEASE': [
    file,
    (text) => withEnvironment({ SNOWDRIFT_LEASE: text }, () => SnowFlake.lease(undefined, {})),
  ],
  'the environment variable SNOWDRIFT_LEASE ': [
    server,
    (text) => withEnvironment({ SNOWDRIFT_LEASE: text }, () => SnowFlake.ready()),
  ],
  'the store of SnowFlake.lease()': [server, (url) => SnowFlake.lease(url, { datacenterId: 1 })],
  'the store of SnowFlake.lease() ': [file, (url) => SnowFlake.lease(url, { datacenterId: 1 })],
};

for (const [name, [text, use]] of Object.entries(WAYS)) {
  test(`a stray character of ${name.trim()} is refused, and nothing is made or reached`, async () => {
    for (const [what, spoil] of Object.entries(STRAYS)) {
      const { message } = await rejects((async () => use(spoil(text)))(), CONFIG);
      assert.equal(message, `${name.trim()} has ${what}: write it without`);
    }
    assert.deepEqual(readdirSync(directory), ['volume']);
  });
}

test('a stray character in SNOWDRIFT_SHARED is refused', async () => {
  try {
    for (const [what, spoil] of Object.entries(STRAYS)) {
      process.env.SNOWDRIFT_SHARED = spoil(place);
      const { message } = await rejects((async () => new SnowFlake(node))(), CONFIG);
      assert.equal(
        message,
        `the environment variable SNOWDRIFT_SHARED has ${what}: write it without`,
      );
    }
  } finally {
    process.env.SNOWDRIFT_SHARED = SNOWDRIFT_SHARED;
  }
  assert.deepEqual(readdirSync(directory), ['volume']);
});

test('a percent-encoded stray character in a file: URL is refused', async () => {
  for (const end of ['%0D', '%22', '%20']) {
    await rejects(SnowFlake.lease(file + end, { datacenterId: 1 }), CONFIG);
    await rejects(SnowFlake.lease(new URL(file + end), { datacenterId: 1 }), CONFIG);
  }
  assert.deepEqual(readdirSync(directory), ['volume']);
});

test('quotes and spaces within a path belong to it', async () => {
  const within = join(place, `o'clock at noon`);
  const flake = new SnowFlake({ ...node, state: within });
  await flake.close();
  assert.deepEqual(readdirSync(place), [`o'clock at noon`]);
});

test('commands refuse one of their flags, arguments and files', async () => {
  const held = join(directory, 'held');
  const tokens = join(directory, 'tokens');
  writeFileSync(held, `"${server}"\r\n`);
  writeFileSync(tokens, `'${'x'.repeat(32)}'\n`);
  const flags = ['--datacenter-id', '1', '--worker-id', '3'];
  for (const [args, said] of [
    [['next', ...flags, '--state', `${place}\r`], '--state has a carriage return'],
    [['next', '--datacenter-id', '1', '--lease', `"${file}"`], '--lease has quotes around it'],
    [
      ['next', '--datacenter-id', '1', '--lease-file', held],
      `'${held}' of --lease-file has quotes around it`,
    ],
    [
      ['serve', ...flags, '--token-file', tokens],
      `'${tokens}' of --token-file has quotes around it`,
    ],
    [['slots', `${file} `], 'the argument of slots has white space around it'],
    [['recover', `${file}\r`], 'the argument of recover has a carriage return'],
    [['recover', `'${server}'`], 'has quotes around it'],
  ]) {
    const { code, stderr } = await run(args);
    assert.equal(code, 2, stderr);
    assert.ok(stderr.includes(said), stderr);
    assert.ok(!stderr.includes('hidden') && !stderr.includes('xxx'), stderr);
  }
  assert.deepEqual(readdirSync(directory).sort(), ['held', 'tokens', 'volume']);
});

test('a connection string in the place of a path is refused, without its password', async () => {
  for (const text of [
    'app:geheim@127.0.0.1:5432/app',
    'postgres:app:geheim#@db/app',
    'host=127.0.0.1 password=geheim dbname=app',
    'Server=db;Pwd=geheim',
  ]) {
    for (const call of [
      () => new SnowFlake({ ...node, state: text }),
      () => withEnvironment({ SNOWDRIFT_STATE: text }, () => new SnowFlake(node)),
    ]) {
      const { message } = await rejects((async () => call())(), CONFIG);
      assert.match(message, /must be the absolute path of a directory/);
      assert.doesNotMatch(message, /geheim/);
    }
  }
});

test('a relative path of a directory is refused, since it is another one elsewhere', async () => {
  const cwd = process.cwd();
  process.chdir(place);
  try {
    for (const path of ['ids', './ids', '../volume', '.']) {
      for (const [name, call] of [
        ['state', () => new SnowFlake({ ...node, state: path })],
        [
          'the environment variable SNOWDRIFT_STATE',
          () => withEnvironment({ SNOWDRIFT_STATE: path }, () => new SnowFlake(node)),
        ],
        [
          'the environment variable SNOWDRIFT_SHARED',
          () => {
            process.env.SNOWDRIFT_SHARED = path;
            return new SnowFlake(node);
          },
        ],
      ]) {
        const { message } = await rejects((async () => call())(), CONFIG);
        assert.equal(
          message,
          `${name} must be the absolute path of a directory, such as '/var/lib/app/ids'; it is '${path}'`,
        );
        process.env.SNOWDRIFT_SHARED = SNOWDRIFT_SHARED;
      }
      const { code, stderr } = await run(['slots'], { env: { SNOWDRIFT_SHARED: path } });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /SNOWDRIFT_SHARED must be the absolute path/);
    }
  } finally {
    process.env.SNOWDRIFT_SHARED = SNOWDRIFT_SHARED;
    process.chdir(cwd);
  }
  assert.ok(!readdirSync(place).some((name) => /ids|snowdrift-/.test(name)));
});

test('a path with signs of a connection string is one where it begins as a path', () => {
  const name = 'app@b;password=c';
  new SnowFlake({ ...node, state: `${place}/${name}` }).close();
  assert.ok(readdirSync(place).includes(name));
});
