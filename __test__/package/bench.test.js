'use strict';
// The benchmark's results are those that README.md and docs/comparison.md show, and its order favours no candidate.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

for (const [path, names] of [
  ['README.md', ['summary']],
  ['docs/comparison.md', ['duplicates', 'sizes', 'speed', 'costs', 'fleets']],
]) {
  test(`${path} shows the results`, async () => {
    const { blocks, filled, read } = await import('../../bench/tables.mjs');
    const page = readFileSync(join(__dirname, '../..', path), 'utf8');
    assert.deepEqual(
      Array.from(page.matchAll(/<!-- table: (\w+)/g), ([, name]) => name),
      names,
    );
    assert.ok(page === filled(page, blocks(read())), 'npm run bench -- tables');
  });
}

test("README.md's section on speed agrees with the results", async () => {
  const { read } = await import('../../bench/tables.mjs');
  const { callback, targets } = read().speed;
  const page = readFileSync(join(__dirname, '../../README.md'), 'utf8');
  const [, ...shown] =
    /takes (\d+) ns; .* takes (\d+) ns,[^%]* with (\d+)% of a core/.exec(page) ?? [];
  const { value: core } = targets.find(({ what }) => what === 'default layout, share of a core');
  const measured = [callback['snowdrift nextId()'], callback['hand-tuned JavaScript'], core * 100];
  assert.deepEqual(shown.map(Number), measured.map(Math.round));
});

test('a candidate of the benchmark follows each of the others in some rounds', async () => {
  const { medians } = await import('../../bench/measure.mjs');
  const [names, called] = [['a', 'b', 'c'], []];
  const candidates = Object.fromEntries(names.map((name) => [name, name]));
  await medians(candidates, 100, (name) => called.push(name));
  const pairs = new Set(called.slice(1).map((name, i) => called[i] + name));
  for (const one of names) {
    for (const other of names) assert.ok(one === other || pairs.has(one + other), one + other);
  }
});
