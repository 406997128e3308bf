'use strict';
// Each sentence of docs/guarantees.md names the test that proves it, in a comment that readers do not see:
// <!-- test: file: part of the test's name -->. A sentence without one does not belong there. So does docs/troubleshooting.md,
// where it says when IDs continue.

const assert = require('node:assert/strict');
const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const PROOF = /<!-- test: (\S+): (.+?) -->/g;
const read = (name) => readFileSync(join(__dirname, '../../docs', name), 'utf8');
const guarantees = read('guarantees.md');
const troubleshooting = read('troubleshooting.md');

/** The items and the rows of a text, without the heads of tables. */
function itemsOf(text) {
  return text
    .replace(/^\|.*\n\| ---.*$/gm, '')
    .split(/\n(?=- )|\n\n|\n(?=\| )/)
    .map((block) => block.trim())
    .filter((block) => /^(- |\| )/.test(block));
}

const withoutProof = (texts) => texts.filter((text) => text.search(PROOF) === -1);

/** A test's name as it stands in its file, whatever line it is broken at and whatever is interpolated. */
const words = (text) => text.replace(/\$\{[^}]*\}/g, '').replace(/[^\p{L}\p{N}]+/gu, ' ');

test('each item and each row names a test', () => {
  const items = itemsOf(guarantees);
  assert.ok(items.length > 40, String(items.length));
  assert.deepEqual(withoutProof(items), []);
});

test('each error whose IDs continue names a test, in each item and each row', () => {
  const [, errors] = troubleshooting.split(/^## Errors$|^## Warnings$/m);
  const continuing = errors.split(/\n(?=### )/).filter((text) => text.includes('IDs continue'));
  assert.ok(continuing.length > 5, String(continuing.length));
  const named = continuing.flatMap((text) => {
    const items = itemsOf(text);
    return items.length > 0 ? items : [text];
  });
  assert.deepEqual(withoutProof(named), []);
});

for (const [name, text] of Object.entries({ guarantees, troubleshooting })) {
  test(`each test that ${name}.md names is there`, () => {
    const missing = [...text.matchAll(PROOF)].filter(([, file, part]) => {
      const path = join(__dirname, '..', file);
      return !existsSync(path) || !words(readFileSync(path, 'utf8')).includes(words(part));
    });
    assert.deepEqual(
      missing.map(([comment]) => comment),
      [],
    );
  });
}
