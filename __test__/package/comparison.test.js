'use strict';
// What docs/comparison.md shows of snowdrift still holds. Of others it shows pinned versions, which do not change.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { before, test } = require('node:test');

const { storm } = require('../support/amount.js');
const { Machine, missing } = require('../support/machine.js');
const { KINDS } = require('../../bench/peers/kinds.cjs');

const read = (path) => JSON.parse(readFileSync(join(__dirname, '../../bench', path), 'utf8'));
const { behaviour: shown, sizes } = read('results.json');

const COUNT = 20_000;
const MS = 60;
/** A process that is held up draws at another time than the one that it is to draw at. */
const TRIES = 10;

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

test('they keep the order at some IDs a ms', { skip: storm }, async () => {
  assert.equal(shown.loop.snowdrift, 0);
  assert.equal(shown.order.asShown.snowdrift, 0);
  assert.equal(await bench.orderOfMany('snowdrift', [undefined, undefined], 200), 0);
});

for (const how of ['rollback', 'restart']) {
  test(`after a ${how} that sets the clock back, IDs are lower and no duplicates`, {
    skip: storm ?? missing(),
  }, async () => {
    assert.equal(bench.outcome(shown[how].snowdrift), 'lower');
    const machine = new Machine();
    const all = [];
    const isLower = () => all.length > 0 && bench.outcome(all.at(-1)) === 'lower';
    try {
      while (!isLower() && all.length < TRIES) {
        all.push(await bench[how]('snowdrift', machine, MS));
        assert.equal(all.at(-1).repeated, 0, JSON.stringify(all));
      }
      assert.ok(isLower(), JSON.stringify(all));
    } finally {
      machine.remove();
    }
  });
}
