'use strict';
// A text that names another place than was meant is refused: what it got on its way (the carriage return of a file from
// Windows, quotes that no shell has removed, white space), a relative path, a file: URL that a parser reads as another
// directory or whose options it drops. Otherwise a directory would be outside of the volume.

const assert = require('node:assert/strict');
const { mkdirSync, mkdtempSync, readdirSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { run } = require('../support/cli.js');
const { removeDirectory } = require('../support/own-directory.js');
const { CachedSnowFlake, SnowFlake, rejects } = require('../support/support.js');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const node = { datacenterId: 1, workerId: 3 };

const directory = mkdtempSync(join(tmpdir(), 'snowdrift-places-'));
const path = join(directory, 'volume');
const file = pathToFileURL(path).href;
const server = 'postgres://app:geheim@127.0.0.1:1/volume';

const cwd = process.cwd();
before(() => {
  mkdirSync(path);
  process.chdir(path);
});
after(() => {
  process.chdir(cwd);
  removeDirectory(directory);
});

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

const ABSOLUTE = /must be the absolute path of a directory, such as '\/var\/lib\/app\/ids'/;
const ABSOLUTE_URL = /with an absolute path, such as 'file:\/\/\/var\/lib\/app\/ids'/;

/** By the right text of a way: others, and what is said of each. */
const MISTAKES = {
  [path]: [
    ...['ids', './ids', '../volume', '.'].map((text) => [text, ABSOLUTE]),
    // Connection strings, whose password is not repeated.
    ['app:geheim@127.0.0.1:5432/app', ABSOLUTE],
    ['postgres:app:geheim#@db/app', ABSOLUTE],
    ['host=127.0.0.1 password=geheim dbname=app', ABSOLUTE],
    ['Server=db;Pwd=geheim', ABSOLUTE],
  ],
  [file]: [
    ['file:ids', ABSOLUTE_URL],
    ['file:./ids', ABSOLUTE_URL],
    ['file:', ABSOLUTE_URL],
    [`${file}?namespace=orders`, /give each namespace a directory of its own/],
    [`${file}?`, /leave out what begins with/],
    [`${file}#orders`, /leave out what begins with/],
    [`${file}%0D`, /a carriage return/],
    [`${file}%22`, /quotes/],
    [`${file}%20`, /white space/],
    ['file://app:geheim@db/ids', /three slashes/],
  ],
  [server]: [],
};

/** Calls with a variable of the environment. */
const withVariable = (name, call) => async (text) => {
  const { [name]: own } = process.env;
  process.env[name] = text;
  try {
    return await call();
  } finally {
    if (own === undefined) delete process.env[name];
    else process.env[name] = own;
  }
};
const STATE = 'SNOWDRIFT_STATE';
const SHARED = 'SNOWDRIFT_SHARED';
const LEASE = 'SNOWDRIFT_LEASE';

/** The name in errors, the right text, and the call of another one. */
for (const [name, right, use] of [
  ['state', path, (state) => new SnowFlake({ ...node, state })],
  ['state', file, (state) => new SnowFlake({ ...node, state })],
  [STATE, path, withVariable(STATE, () => new SnowFlake(node))],
  [SHARED, path, withVariable(SHARED, () => new SnowFlake(node))],
  ['lease', file, (lease) => new SnowFlake({ datacenterId: 1, lease })],
  [LEASE, file, withVariable(LEASE, () => SnowFlake.lease(undefined, {}))],
  [LEASE, server, withVariable(LEASE, () => SnowFlake.ready())],
  ['the store of lease()', server, (url) => SnowFlake.lease(url, { datacenterId: 1 })],
  ['the store of lease()', file, (url) => CachedSnowFlake.lease(url, { datacenterId: 1 })],
]) {
  const named = name.startsWith('SNOWDRIFT_') ? `the environment variable ${name}` : name;
  const kind = new Map([
    [path, 'a path'],
    [file, 'a file: URL'],
    [server, "a server's URL"],
  ]).get(right);
  test(`${kind} of ${name} that leads elsewhere is refused, and nothing is made or reached`, async () => {
    for (const [what, spoil] of Object.entries(STRAYS)) {
      const { message } = await rejects((async () => use(spoil(right)))(), CONFIG);
      assert.equal(message, `${named} has ${what}: write it without`);
    }
    for (const [text, said] of MISTAKES[right]) {
      const { message } = await rejects((async () => use(text))(), CONFIG, said);
      assert.doesNotMatch(message, /geheim|namespace=orders/);
    }
    assert.deepEqual(readdirSync(directory, { recursive: true }), ['volume']);
  });
}

test('such URL objects are refused likewise', async () => {
  for (const end of ['%0D', '%22', '%20', '?namespace=orders']) {
    await rejects(SnowFlake.lease(new URL(file + end), { datacenterId: 1 }), CONFIG);
  }
});

test('commands refuse such a flag, argument, variable or file', async () => {
  const held = join(directory, 'held');
  const tokens = join(directory, 'tokens');
  writeFileSync(held, `"${server}"\r\n`);
  writeFileSync(tokens, `'${'x'.repeat(32)}'\n`);
  const flags = ['--datacenter-id', '1', '--worker-id', '3'];
  const next = ['next', '--datacenter-id', '1'];
  for (const [args, said, env] of [
    [['next', ...flags, '--state', `${path}\r`], '--state has a carriage return'],
    [[...next, '--lease', `"${file}"`], '--lease has quotes around it'],
    [[...next, '--lease-file', held], `'${held}' of --lease-file has quotes around it`],
    [
      ['serve', ...flags, '--token-file', tokens],
      `'${tokens}' of --token-file has quotes around it`,
    ],
    [['slots', `${file} `], 'the argument of slots has white space around it'],
    [['recover', `${file}\r`], 'the argument of recover has a carriage return'],
    [['recover', `'${server}'`], 'has quotes around it'],
    [['slots'], 'SNOWDRIFT_SHARED must be the absolute path', { [SHARED]: './ids' }],
    ...MISTAKES[file]
      .map(([text, said]) => [text, text.includes('@') ? /must be a (file: )?URL/ : said])
      .flatMap(([text, said]) => [
        [[...next, '--lease', text], said],
        [next, said, { [LEASE]: text }],
        [['next', ...flags, '--state', text], said],
        [['slots', text], said],
      ]),
  ]) {
    const { code, stderr } = await run(args, { env });
    assert.equal(code, 2, `${args}: ${stderr}`);
    assert.ok(typeof said === 'string' ? stderr.includes(said) : said.test(stderr), stderr);
    assert.doesNotMatch(stderr, /geheim|xxx/);
  }
  assert.deepEqual(readdirSync(directory).sort(), ['held', 'tokens', 'volume']);
});

test('quotes, spaces and signs of a connection string within a path belong to it', async () => {
  const names = ["o'clock at noon", 'app@b;password=c'];
  for (const name of names) await new SnowFlake({ ...node, state: join(path, name) }).close();
  assert.deepEqual(readdirSync(path).sort(), names.sort());
});

test('a scheme in upper case is the same', async () => {
  const flake = await SnowFlake.lease(file.replace('file:', 'FILE:'), { datacenterId: 1 });
  assert.equal(flake.lease.store, file);
  await flake.close();
});
