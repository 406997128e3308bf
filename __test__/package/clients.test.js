'use strict';
// What users read where the client of a store, or TypeORM, cannot be loaded. The package is the one that `npm run package` makes.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { gate } = require('../support/amount.js');
const { Packed, runIn } = require('../support/package/tarball.js');

const ROOT = join(__dirname, '../..');

test('nothing is loaded by import(), which fails in the contexts of jest', () => {
  const files = readdirSync(join(ROOT, 'js'), { recursive: true }).filter((path) =>
    path.endsWith('.js'),
  );
  const code = (path) =>
    readFileSync(join(ROOT, 'js', path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  assert.deepEqual(
    files.filter((path) => /\bimport\(/.test(code(path))),
    [],
  );
});

test('each client is required by its name in a try, so that bundlers do without those that are not installed', () => {
  const folder = join(ROOT, 'js/stores');
  const files = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith('.js'));
  const code = files.map((path) => readFileSync(join(folder, path), 'utf8')).join('\n');
  const all = code.match(/require\('(?!\.|node:)/g);
  const guarded = code.match(
    /try \{\s*(return|found =) (\/\*\*.*?\*\/ \()*require\('(?!\.|node:)/g,
  );
  assert.ok(all.length >= 7);
  assert.equal(guarded.length, all.length);
});

const lease = (url) => `require('snowdrift').SnowFlake.lease('${url}', { datacenterId: 1 })`;
const NEEDED = [
  ['pg', 'a lease from postgres://', lease('postgres://app:geheim@127.0.0.1:1/app')],
  ['mysql2', 'a lease from mysql://', lease('mysql://app:geheim@127.0.0.1:1/app')],
  ['ioredis', 'a lease from rediss://', lease('rediss://app:geheim@127.0.0.1:1')],
  ['snowdrift-zookeeper', 'a lease from ZooKeeper', lease('zookeeper://app:geheim@127.0.0.1:1')],
  ['mongodb', 'a lease from mongodb://', lease('mongodb://app:geheim@127.0.0.1:1/app')],
  ['@upstash/redis', 'a lease from upstash://', lease('upstash://:geheim@127.0.0.1')],
  ['@aws-sdk/client-dynamodb', 'a lease from DynamoDB', lease('dynamodb://eu-central-1/ids')],
  ['@aws-sdk/client-s3', 'a lease from S3', lease('s3://ids/app?region=eu-central-1')],
  ['@google-cloud/storage', 'a lease from gs://', lease('gs://ids/app')],
  ['typeorm', 'snowdrift/typeorm', "require('snowdrift/typeorm')"],
];

test('each client that a store requires is an optional peer, and is in the tests below', () => {
  const folder = join(ROOT, 'js/stores');
  const code = readdirSync(folder, { recursive: true })
    .filter((path) => path.endsWith('.js'))
    .map((path) => readFileSync(join(folder, path), 'utf8'))
    .join('\n');
  const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const required = Array.from(code.matchAll(/require\('(?!\.|node:)([^']+)'/g), ([, name]) => name);
  assert.ok(required.length >= 7);
  for (const name of required) {
    assert.ok(Object.hasOwn(peerDependencies, name), `${name} is in no peerDependencies`);
    assert.ok(
      NEEDED.some(([needed]) => needed === name),
      `${name} is not in NEEDED`,
    );
  }
});

/** The code of a package that fails while it is loaded. */
const CODES = {
  failing:
    "throw Object.assign(new TypeError('no entry'), { code: 'E_OWN', password: 'verborgen' });",
  throwsNull: 'throw null;',
  lacksOwn: "require('its-own-package');",
};

/** By package: the error without it, and with each of these in its place. */
const SCRIPT = `
  const { mkdirSync, rmSync, writeFileSync } = require('node:fs');
  const calls = { ${NEEDED.map(([name, , call]) => `'${name}': async () => { await ${call}; }`)} };
  async function failureOf(call) {
    try {
      await call();
    } catch ({ name, code, message, cause }) {
      const shown = { ...cause, text: String(cause), stack: cause?.stack };
      return { name, code, message, cause: shown };
    }
  }
  (async () => {
    const failures = {};
    for (const [name, call] of Object.entries(calls)) {
      failures[name] = { missing: await failureOf(call) };
      const folder = 'node_modules/' + name;
      for (const [how, code] of Object.entries(${JSON.stringify(CODES)})) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(folder + '/index.js', code);
        failures[name][how] = await failureOf(call);
        rmSync(folder, { recursive: true });
      }
    }
    console.log(JSON.stringify(failures));
  })();`;

describe('a package that snowdrift needs and the application installs', { skip: gate }, () => {
  let packed;
  let failures;
  before(() => {
    packed = new Packed('.');
    const project = packed.project();
    writeFileSync(join(project, 'app.js'), SCRIPT);
    const { stdout, stderr } = runIn(project, ['app.js']);
    assert.notEqual(stdout, '', stderr);
    assert.doesNotMatch(stdout + stderr, /geheim|verborgen/);
    failures = JSON.parse(stdout);
  });
  after(() => packed.remove());

  for (const [name, what] of NEEDED) {
    test(`${name} is not installed: which, and for what`, () => {
      const { message, ...failure } = failures[name].missing;
      assert.deepEqual([failure.name, failure.code], ['SnowFlakeError', 'ERR_SNOWFLAKE_CONFIG']);
      assert.equal(message, `${what} needs the package '${name}': npm install ${name}`);
    });

    test(`${name} fails while it is loaded: which, for what, and why, without a secret`, () => {
      const { message, cause, ...failure } = failures[name].failing;
      assert.deepEqual([failure.name, failure.code], ['SnowFlakeError', 'ERR_SNOWFLAKE_CONFIG']);
      assert.equal(
        message,
        `cannot load the package '${name}', which ${what} needs: TypeError: no entry. If it is damaged, install it again: npm install ${name}`,
      );
      assert.deepEqual([cause.text, cause.code], ['TypeError: no entry', 'E_OWN']);
      assert.match(cause.stack, /\n {4}at /);
    });

    test(`${name} throws null while it is loaded: which, and for what`, () => {
      const { message } = failures[name].throwsNull;
      assert.ok(
        message.startsWith(`cannot load the package '${name}', which ${what} needs: null. `),
        message,
      );
    });

    test(`${name} lacks a package of its own: which one`, () => {
      const { message } = failures[name].lacksOwn;
      assert.ok(
        message.startsWith(`cannot load the package '${name}', which ${what} needs: `),
        message,
      );
      assert.match(message, /Cannot find module 'its-own-package'/);
    });
  }
});
