'use strict';
// What docs/comparison.md shows of snowdrift still holds. Of others it shows pinned versions, which do not change.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { before, test } = require('node:test');

const { KINDS } = require('../../bench/peers/kinds.cjs');

const read = (path) => JSON.parse(readFileSync(join(__dirname, '../../bench', path), 'utf8'));
const { behaviour: shown, sizes } = read('results.json');

const COUNT = 20_000;

let bench;
before(async () => {
  bench = {
    ...(await import('../../bench/peers/behaviour.mjs')),
    ...(await import('../../bench/tables.mjs')),
  };
});

test('the measured versions of packages are those that are pinned', () => {
  const { dependencies } = read('package.json');
  let compared = 0;
  for (const [kind, { version }] of Object.entries(sizes.kinds)) {
    const pinned = dependencies[KINDS[kind].package];
    if (pinned === undefined) continue;
    assert.equal(version, pinned, kind);
    compared++;
  }
  assert.ok(compared > 5);
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

test('two processes of snowdrift with one number generate no duplicates', async () => {
  for (const { snowdrift } of Object.values(shown.duplicates))
    assert.equal(snowdrift.duplicates, 0);
  const numbers = [undefined, undefined];
  assert.equal((await bench.duplicates('snowdrift', numbers, COUNT)).duplicates, 0);
});
