'use strict';
// js/lease/lease.js under chaos, simulated from a seed: processes that stop, die and restart, clocks
// that step and jump, an engine that freezes, loses its namespace or is restored from a backup, messages
// that come late or never. Whatever happens, no two holders
// of a slot issue the same; and when it is over, IDs go on. See lease/simulation.js.
//
//   SIMULATION_SEEDS=10000 node --test __test__/lease-simulation.test.js
//
// SIMULATION_SEED=4711 runs that one alone, with what happened in it. Fleets also run with one of the
// rules broken: there a seed must fail, or the simulation shows nothing.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { Fleet } = require('./lease/simulation.js');

const ALONE = process.env.SIMULATION_SEED;
const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 150);
/** Within so many a broken rule is found. */
const PLANTED_SEEDS = 1000;

/** What must happen once in 20 fleets at least. */
const EXPECTED = [
  ...['stop', 'kill', 'close', 'freeze', 'cut off', 'clock step', "engine's clock step"],
  ...['clock jump', 'namespace lost', 'backup restored', 'restore noticed by a holder'],
  ...['SNOWFLAKE_NAMESPACE_LOST', 'SNOWFLAKE_FLOOR'],
  ...['takeover', 'refused: expired', 'refused: lost', 'SNOWFLAKE_SLOT_LOST'],
  ...['late acquire', 'late slot given back', 'late renew', 'late release'],
  ...['ERR_SNOWFLAKE_NO_SLOT', 'ERR_SNOWFLAKE_STORE', 'ERR_SNOWFLAKE_CLOCK_SKEW'],
];

/** For four processes there are 5, 4 or 3 slots. */
function fleet(seed, planted) {
  const trace = ALONE === undefined ? undefined : console.log;
  return new Fleet(seed, { slots: 5 - (seed % 3), planted, trace });
}

test('no two holders issue the same, and IDs go on soon after the last fault', async (t) => {
  const counts = { IDs: 0 };
  let slowest = 0;
  const from = Number(ALONE ?? 0);
  const to = ALONE === undefined ? SEEDS : from + 1;
  for (let seed = from; seed < to; seed++) {
    const simulated = fleet(seed);
    const ms = await simulated.run().catch((fault) => {
      assert.fail(`${fault.stack}\nseed ${seed}; SIMULATION_SEED=${seed} shows it alone`);
    });
    slowest = Math.max(slowest, ms);
    counts.IDs += simulated.issued.size;
    for (const [what, count] of Object.entries(simulated.counts)) {
      counts[what] = (counts[what] ?? 0) + count;
    }
  }
  t.diagnostic(`${to - from} fleets: ${JSON.stringify(counts)}`);
  t.diagnostic(`all of them issued again ${slowest} ms after the last fault at the latest`);
  if (ALONE !== undefined) return;
  assert.ok(counts.IDs > 100 * SEEDS, 'so few IDs show nothing');
  for (const what of EXPECTED) {
    assert.ok(counts[what] > SEEDS / 20, `too few to show anything: ${what}, ${counts[what]}`);
  }
});

test('a seed replays what happened', { skip: ALONE !== undefined }, async () => {
  for (let seed = 0; seed < 6; seed++) {
    const [one, other] = [fleet(seed), fleet(seed)];
    assert.equal(await one.run(), await other.run());
    assert.deepEqual([other.issued, other.counts], [one.issued, one.counts], `seed ${seed}`);
  }
});

for (const planted of [
  'renew without owner check',
  'release without owner check',
  'unconfirmed ceiling',
  'floor ignored',
  'late answer used',
  'no cap',
  'no floor after a loss',
  'confirmed not compared',
]) {
  test(`it is found: ${planted}`, { skip: ALONE !== undefined }, async (t) => {
    for (let seed = 0; seed < PLANTED_SEEDS; seed++) {
      const fault = await fleet(seed, planted)
        .run()
        .catch(({ message }) => message);
      if (!/both issued/.test(fault)) continue;
      t.diagnostic(`by seed ${seed}: ${fault}`);
      return;
    }
    assert.fail(`not in ${PLANTED_SEEDS} fleets`);
  });
}
