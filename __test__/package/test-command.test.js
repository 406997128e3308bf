'use strict';
// What `npm test` says, in a tree with few tests, built by a cargo that compiles nothing.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { before, describe, test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');

const ROOT = join(__dirname, '../..');

/** As libtest prints it with --quiet. */
const FAILS = `#!/usr/bin/env node
  console.log('\\nrunning 2 tests\\n.F\\nfailures:\\n\\n---- ring::it_is_full stdout ----');
  console.log("thread 'ring::it_is_full' panicked at src/ring.rs:7:5:\\n  left: 1\\n right: 2");
  console.log('\\nfailures:\\n    ring::it_is_full\\n\\ntest result: FAILED. 1 passed; 1 failed');
  process.exitCode = 101;`;

/** What cargo does: writes the addon and an executable with the core's tests. */
const BUILDS = (core) => `
  const { mkdirSync, writeFileSync } = require('node:fs');
  mkdirSync('target/debug', { recursive: true });
  writeFileSync('target/debug/libsnowdrift.so', '');
  writeFileSync('target/debug/core', ${JSON.stringify(core)}, { mode: 0o755 });
  console.log(JSON.stringify({ reason: 'compiler-artifact', profile: { test: true }, executable: 'target/debug/core' }));`;

const TEST = `
  const { test } = require('node:test');
  const { gate, storm } = require('../support/amount.js');
  test('runs', () => {});
  test('is left', { skip: gate }, () => {});
  test('is a storm', { skip: storm }, () => {});`;

test('each file that npm test leaves to the gate is there', () => {
  const [, list] = /^const LEFT_TO_GATE = \[\n([\s\S]*?)^\];/m.exec(
    readFileSync(join(ROOT, 'scripts/test.mjs'), 'utf8'),
  );
  const parts = Array.from(list.matchAll(/^ +'(.*)',$/gm), ([, part]) => part);
  assert.ok(parts.length > 20, String(parts));
  const files = readdirSync(join(ROOT, '__test__'), { recursive: true });
  assert.deepEqual(
    parts.filter((part) => !files.some((path) => path.includes(part))),
    [],
  );
});

describe('npm test', {
  skip: process.platform !== 'linux' && 'a cargo of JavaScript, and its addon, are for Linux',
}, () => {
  let tree;
  const write = (path, text, mode = 0o644) => {
    mkdirSync(join(tree, path, '..'), { recursive: true });
    writeFileSync(join(tree, path), text, { mode });
  };
  /** @param text what cargo does when it builds */
  const setCargo = (text, version = '1.999.0') =>
    write(
      'bin/cargo',
      `#!/usr/bin/env node
      if (process.argv[2] === '--version') console.log('cargo ${version} (0 2026-01-01)');
      else { ${text} }`,
      0o755,
    );

  before(() => {
    tree = createDirectory();
    for (const path of ['scripts', 'js', 'package.json', 'Cargo.toml']) {
      const filter = (from) => !from.endsWith('.node');
      cpSync(join(ROOT, path), join(tree, path), { recursive: true, filter });
    }
    write('package-lock.json', '{}');
    write('node_modules/.package-lock.json', '{}');
    write('node_modules/typescript/bin/tsc', '');
    write('packages/zookeeper/index.js', '');
    const amount = readFileSync(join(ROOT, '__test__/support/amount.js'));
    write('__test__/support/amount.js', amount);
    for (const folder of 'lease host app orm cli server generator messages runtime public'.split(
      ' ',
    )) {
      mkdirSync(join(tree, '__test__', folder));
    }
    write('__test__/ids/few.test.js', TEST);
    write('__test__/package/addon.test.js', "throw new Error('left to the gate');");
  });

  const environment = () => ({
    ...process.env,
    ...{ TESTS: undefined, TESTS_TIMES: undefined, CARGO_TARGET_DIR: undefined },
    // This is no test of a test.
    NODE_TEST_CONTEXT: undefined,
    PATH: `${join(tree, 'bin')}:${process.env.PATH}`,
  });
  const command = () => [process.execPath, join(tree, 'scripts/test.mjs')];

  async function run(env = environment()) {
    const [program, ...args] = command();
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = { stdout: '', stderr: '' };
    for (const name of Object.keys(printed)) {
      child[name].setEncoding('utf8').on('data', (text) => {
        printed[name] += text;
      });
    }
    const [code] = await once(child, 'close');
    return { code, ...printed };
  }

  test('says what to install where there is no cargo, or an old one', async () => {
    const needed = /^Building snowdrift needs Rust 1\.\d+ or later/;
    const remedy =
      /\nInstall it with rustup \(see rust-lang\.org\/tools\/install\), open a new shell, try again\.\n$/;
    const none = await run({ ...environment(), PATH: join(tree, 'js') });
    setCargo('', '1.50.0');
    for (const [{ code, stdout, stderr }, why] of [
      [none, ', and there is no working `cargo` on the PATH.\n'],
      [await run(), '; `cargo --version` says cargo 1.50.0 (0 2026-01-01).\n'],
    ]) {
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, needed);
      assert.match(stderr, remedy);
      assert.ok(stderr.includes(why), stderr);
    }
  });

  test('names a test of the core that fails, and shows its panic', async () => {
    setCargo(BUILDS(FAILS));
    const { code, stdout, stderr } = await run();
    assert.equal(code, 1);
    assert.match(stderr, /panicked at src\/ring\.rs:7:5:\n {2}left: 1\n right: 2\n/);
    assert.match(stderr, /\nfailed:\nthe core > ring::it_is_full\n$/);
    // The rest is tried nevertheless.
    assert.match(stdout, /1 passed, 2 skipped, 0 failed/);
  });
});
