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

test('README.md has no other figure that does not come from the code', () => {
  const { node } = layouts;
  const manifest = JSON.parse(read('package.json'));
  const year = new Date(node.epoch + 2 ** node.timestampBits).getUTCFullYear();
  const known = new Set(
    [
      64,
      2 ** node.datacenterBits - 1,
      2 ** node.workerBits - 1,
      ...['timestampBits', 'datacenterBits', 'workerBits', 'clockBackBits', 'sequenceBits'].map(
        (name) => node[name],
      ),
      2 ** (node.datacenterBits + node.workerBits),
      2 ** node.sequenceBits,
      Math.log2(Number.MAX_SAFE_INTEGER + 1),
      // The bytes of an ID, the characters of one in base32, and the largest batch.
      8,
      13,
      1_000_000,
      Number(manifest.engines.node.slice(2)),
      Number(read('scripts/prepare.mjs').match(/NODE_MAJOR = (\d+)/)[1]),
    ]
      .map(text)
      .concat(read('Cargo.toml').match(/^rust-version = "(.*)"$/m)[1])
      .concat(String(year), '0', '1', '3'),
  );
  const prose = read('README.md')
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(tables.blocks(results).summary, '')
    .replace(/\n## Speed\n[\s\S]*/, '')
    .replaceAll(manifest.version, '')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/ULID|UUIDv7|base32|Base32/g, '');
  const figures = figuresIn(prose);
  assert.ok(figures.length > 10, String(figures));
  assert.deepEqual(
    figures.filter((figure) => !known.has(figure)),
    [],
  );
});

test('README.md has 130 lines at most, and no table of more than five columns', () => {
  const lines = read('README.md').trimEnd().split('\n');
  assert.ok(lines.length <= 130, `${lines.length} lines`);
  for (const line of lines.filter((each) => each.startsWith('|'))) {
    assert.ok(line.split('|').length - 2 <= 5, line);
  }
});
