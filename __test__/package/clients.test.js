'use strict';
// What users read where the client of a store, or TypeORM, cannot be loaded. The package is the one that `npm pack` makes.

const assert = require('node:assert/strict');
const { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
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

describe('a package that snowdrift needs and the application installs', () => {
  let packed;
  let project;
  before(() => {
    packed = new Packed('.');
    project = packed.project();
  });
  after(() => packed.remove());

  const lease = (url) => `require('snowdrift').SnowFlake.lease('${url}', { datacenterId: 1 })`;
  const NEEDED = [
    ['pg', 'a lease from postgres://', lease('postgres://app:geheim@127.0.0.1:1/app')],
    ['mysql2', 'a lease from mysql://', lease('mysql://app:geheim@127.0.0.1:1/app')],
    ['ioredis', 'a lease from rediss://', lease('rediss://app:geheim@127.0.0.1:1')],
    ['snowdrift-zookeeper', 'a lease from ZooKeeper', lease('zookeeper://app:geheim@127.0.0.1:1')],
    ['typeorm', 'snowdrift/typeorm', "require('snowdrift/typeorm')"],
  ];

  /** The error of a call, with an installed package that is this code. */
  function failureOf(call, name, code) {
    const folder = join(project, 'node_modules', name);
    if (code !== undefined) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'index.js'), code);
    }
    const script = `(async () => { await ${call}; })().catch(({ name, code, message, cause }) =>
      console.log(JSON.stringify({ name, code, message, cause: { ...cause, text: String(cause), stack: cause?.stack } })));`;
    writeFileSync(join(project, 'app.js'), script);
    const { stdout, stderr } = runIn(project, ['app.js']);
    rmSync(folder, { recursive: true, force: true });
    assert.notEqual(stdout, '', stderr);
    assert.doesNotMatch(stdout + stderr, /geheim|verborgen/);
    return JSON.parse(stdout);
  }

  for (const [name, what, call] of NEEDED) {
    test(`${name} is not installed: which, and for what`, () => {
      const { message, ...failure } = failureOf(call, name);
      assert.deepEqual([failure.name, failure.code], ['SnowFlakeError', 'ERR_SNOWFLAKE_CONFIG']);
      assert.equal(message, `${what} needs the package '${name}': npm install ${name}`);
    });

    test(`${name} fails while it is loaded: which, for what, and why, without a secret`, () => {
      const code =
        "throw Object.assign(new TypeError('no entry'), { code: 'E_OWN', password: 'verborgen' });";
      const { message, cause, ...failure } = failureOf(call, name, code);
      assert.deepEqual([failure.name, failure.code], ['SnowFlakeError', 'ERR_SNOWFLAKE_CONFIG']);
      assert.equal(
        message,
        `cannot load the package '${name}', which ${what} needs: TypeError: no entry. If it is damaged, install it again: npm install ${name}`,
      );
      assert.deepEqual([cause.text, cause.code], ['TypeError: no entry', 'E_OWN']);
      assert.match(cause.stack, /\n {4}at /);
    });

    test(`${name} throws null while it is loaded: which, and for what`, () => {
      const { message } = failureOf(call, name, 'throw null;');
      assert.ok(
        message.startsWith(`cannot load the package '${name}', which ${what} needs: null. `),
        message,
      );
    });

    test(`${name} lacks a package of its own: which one`, () => {
      const { message } = failureOf(call, name, "require('its-own-package');");
      assert.ok(
        message.startsWith(`cannot load the package '${name}', which ${what} needs: `),
        message,
      );
      assert.match(message, /Cannot find module 'its-own-package'/);
    });
  }
});
