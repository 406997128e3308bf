'use strict';
// scripts/soak.mjs for a short time: memory does not rise, and where it does, that is seen.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { join } = require('node:path');
const { test } = require('node:test');

const { amount, storm } = require('../support/amount.js');

const SECONDS = amount(20, 20);

/** How the soak ends, and what it prints. */
function soak(seconds, env = {}) {
  const script = join(__dirname, '../../scripts/soak.mjs');
  const args = [script, '--minutes', String(seconds / 60)];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env: { ...process.env, ...env } }, (failure, out, err) => {
      resolve({ code: failure?.code ?? 0, output: out + err });
    });
  });
}

test('rounds of all that an application can do leave nothing behind', {
  skip: storm,
}, async (t) => {
  // In few rounds, on a busy machine, caches and compilers do not settle. A leak rises in each soak, however long.
  for (let longer = 1, code; code !== 0; longer *= 2) {
    const soaked = await soak(SECONDS * longer);
    code = soaked.code;
    for (const line of soaked.output.trim().split('\n').slice(-3)) t.diagnostic(line);
    assert.ok(code === 0 || (/a leak: /.test(soaked.output) && longer < 8), soaked.output);
  }
});

test('a soak that leaks fails', { skip: storm }, async () => {
  const leak = 'setInterval(() => (globalThis.kept ??= []).push(Buffer.alloc(1e5, 1)), 20).unref()';
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(leak)}`;
  const { code, output } = await soak(Math.min(SECONDS, 15), { NODE_OPTIONS });
  assert.equal(code, 1, output);
  // In so few rounds on a busy machine the heap may rise by half a megabyte, too.
  assert.match(output, /a leak: .*\bexternal\b.* rose/);
});
