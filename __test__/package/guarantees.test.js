'use strict';
// Each sentence of docs/guarantees.md names the test that proves it, in a comment that readers do not see:
// <!-- test: file: part of the test's name -->. A sentence without one does not belong there.

const assert = require('node:assert/strict');
const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const PROOF = /<!-- test: (\S+): (.+?) -->/g;
const page = readFileSync(join(__dirname, '../../docs/guarantees.md'), 'utf8');
/** Without the heads of tables. */
const body = page.slice(page.indexOf('## Uniqueness')).replace(/^\|.*\n\| ---.*$/gm, '');

/** A test's name as it stands in its file, whatever line it is broken at and whatever is interpolated. */
const words = (text) => text.replace(/\$\{[^}]*\}/g, '').replace(/[^\p{L}\p{N}]+/gu, ' ');

test('each item and each row names a test', () => {
  const blocks = body
    .split(/\n(?=- )|\n\n|\n(?=\| )/)
    .map((block) => block.trim())
    .filter((block) => /^(- |\| )/.test(block));
  assert.ok(blocks.length > 50, String(blocks.length));
  const without = blocks.filter((block) => block.search(PROOF) === -1);
  assert.deepEqual(without, []);
});

test('each test that is named is there', () => {
  const proofs = [...page.matchAll(PROOF)];
  const missing = proofs.filter(([, file, name]) => {
    const path = join(__dirname, '..', file);
    return !existsSync(path) || !words(readFileSync(path, 'utf8')).includes(words(name));
  });
  assert.deepEqual(
    missing.map(([comment]) => comment),
    [],
  );
});
