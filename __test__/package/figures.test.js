'use strict';
// The figures of README.md and docs/comparison.md are those of bench/results.json. Figures that are not measured come from
// the code.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { before, test } = require('node:test');

const { layouts } = require('snowdrift');

const ROOT = join(__dirname, '../..');
const read = (path) => readFileSync(join(ROOT, path), 'utf8');
const text = (number) => number.toLocaleString('en-US');
const figuresIn = (prose) => prose.match(/\d[\d,.]*\d|\d/g);

let tables;
let results;
before(async () => {
  tables = await import('../../bench/tables.mjs');
  results = tables.read();
});

for (const [path, names] of [
  ['README.md', ['summary']],
  ['docs/comparison.md', ['order', 'rollback', 'sizes', 'speed', 'targets', 'fleets']],
]) {
  test(`${path} shows the results`, () => {
    const page = read(path);
    assert.deepEqual(
      Array.from(page.matchAll(/<!-- table: (\w+)/g), ([, name]) => name),
      names,
    );
    assert.ok(page === tables.filled(page, tables.blocks(results)), 'npm run bench -- tables');
  });
}

test('sentences about speed and the soak have the results', () => {
  const { callback, targets } = results.speed;
  const limit = targets.findIndex(({ what }) => what.startsWith('default layout'));
  const [{ value: share }, core] = targets.slice(limit);
  assert.ok(share > 0.99);
  const [, prose] = read('README.md').split('\n## Speed\n');
  assert.deepEqual(figuresIn(prose), [
    callback['snowdrift nextId()'].toFixed(0),
    callback['hand-tuned JavaScript'].toFixed(0),
    text(2 ** layouts.node.sequenceBits),
    (core.value * 100).toFixed(0),
  ]);
  const { ids, seconds } = results.soak;
  assert.equal(seconds, 600);
  assert.ok(
    read('docs/guarantees.md').includes(`A soak of ten minutes generated ${text(ids)} IDs`),
  );
});
