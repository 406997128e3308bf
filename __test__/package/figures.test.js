'use strict';
// The figures of README.md, docs/benchmarks.md and docs/comparison.md are those of bench/results/, and each is the same
// wherever it stands. Figures that are not measured come from the code.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { before, describe, test } = require('node:test');

const { layouts } = require('snowdrift');

const ROOT = join(__dirname, '../..');
const read = (path) => readFileSync(join(ROOT, path), 'utf8');
const text = (number) => number.toLocaleString('en-US');

let pages;
let results;
before(async () => {
  const [{ page }, comparison, readme] = await Promise.all(
    ['page', 'peers/page', 'readme'].map((name) => import(`../../bench/${name}.mjs`)),
  );
  pages = { benchmarks: page, comparison: comparison.page, ...readme };
  results = readme.results();
});

test('docs/benchmarks.md shows the results', () => {
  assert.equal(read('docs/benchmarks.md'), pages.benchmarks(results.measured));
});

test('docs/comparison.md shows the results', () => {
  assert.equal(read('docs/comparison.md'), pages.comparison(results.peers, results.measured));
});

describe('README.md', () => {
  test('shows the results', () => {
    const readme = read('README.md');
    assert.ok(
      readme === pages.filled(readme, pages.blocks(results)),
      'run npm run bench -- --save',
    );
  });

  test('has no figure besides them that does not come from the code', () => {
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
    let prose = read('README.md').replace(/^```[\s\S]*?^```$/gm, '');
    for (const block of Object.values(pages.blocks(results))) prose = prose.replace(block, '');
    prose = prose
      .replaceAll(manifest.version, '')
      .replace(/\]\([^)]*\)/g, ']')
      .replace(/ULID|UUIDv7|base32|Base32/g, '');
    const figures = prose.match(/\d[\d,.]*\d|\d/g);
    assert.ok(figures.length > 10, String(figures));
    assert.deepEqual(
      figures.filter((figure) => !known.has(figure)),
      [],
    );
  });

  test('has 150 lines at most, and no table of more than five columns', () => {
    const lines = read('README.md').trimEnd().split('\n');
    assert.ok(lines.length <= 150, `${lines.length} lines`);
    for (const line of lines.filter((each) => each.startsWith('|'))) {
      assert.ok(line.split('|').length - 2 <= 5, line);
    }
  });
});
