'use strict';
// Hosts of several processes on real stores under chaos: the process that renews and others stopped past
// their ttl, killed, ended, and stopped while they end; whole hosts; clocks that step and jump; pages that
// are unlinked; the server frozen, restarted, cut off, silent, its connections half-open, its clock off, its
// namespace or one record lost. Nothing repeats, and hosts issue again soon after each fault.
//
//   TESTS=storms TESTS_TIMES=6 TESTS_SEED=7 node --test __test__/lease/hosts-chaos.test.js

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

const { amount, seed, storm } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { AFTER_LOSS, Fleet, SOON } = require('../support/lease/chaos.js');
const { inTime } = require('../support/lease/rounds.js');
const { ENGINES, STAND_INS, missing } = require('../support/lease/servers.js');
const { missing: noMachine } = require('../support/machine.js');

const SECONDS = amount(10, 10);
const SEED = seed ?? 1;
const SLOTS = 4;
/** By name: processes by host, slots, and how many hosts then issue. Where there are more hosts than slots, what one gives up is soon
 * another's. */
const FLEETS = {
  'more hosts than slots': [[2, 3, 8, 2, 4, 2], SLOTS, SLOTS],
  'hosts of one process': [Array(6).fill(1), 8],
};
/** On stand-ins for stores. */
const SMALL = { 'three hosts of three processes': [[3, 3, 3], SLOTS, 3] };
/** As many hosts as slots at most, so that each gets its slot back. */
const FEW = [3, 2, 4];

const skipped = (engine) => missing(engine) ?? noMachine() ?? storm;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

describe('hosts in chaos', () => {
  for (const engine of [...ENGINES, ...STAND_INS]) {
    const fleets = STAND_INS.includes(engine) ? SMALL : FLEETS;
    for (const [what, [processes, slots, count]] of Object.entries(fleets)) {
      test(`${engine}: ${what}, no ID twice, and all that can issue again soon`, {
        skip: skipped(engine),
      }, async (t) => {
        const fleet = await Fleet.start(engine, { processes, slots, seed: SEED });
        try {
          await fleet.started(count);
          const recovered = await fleet.recoversFrom(SECONDS, count);
          const drawn = await fleet.drawn();
          const ids = sum(drawn.map(({ length }) => length));
          t.diagnostic(
            `seed ${SEED}: ${ids} IDs of ${drawn.length} processes, ${JSON.stringify(fleet.counts)}, they issue again after ${Math.round(recovered)} ms`,
          );
          assert.equal(countDuplicatesOf(drawn), 0);
          assert.ok(ids > 1000 * SECONDS, `only ${ids} IDs`);
          assert.ok(recovered < AFTER_LOSS, `${recovered} ms`);
        } finally {
          await fleet.end();
        }
      });
    }

    test(`${engine}: after each fault, every host that had a slot issues again soon`, {
      skip: skipped(engine),
    }, async (t) => {
      const fleet = await Fleet.start(engine, { processes: FEW, slots: SLOTS, seed: SEED });
      try {
        await fleet.started();
        const took = {};
        for (const fault of [...Object.keys(fleet.hostFaults), ...Object.keys(fleet.storeFaults)]) {
          const limit = fault.startsWith('lo') ? AFTER_LOSS : SOON;
          await inTime(limit, async () => {
            const since = performance.now();
            await fleet.befall(fault, fleet.hosts[0]);
            const end = performance.now();
            // Until they have noticed, they go on with the slot of before.
            if (['lose the bucket', 'loss'].includes(fault)) await fleet.noticed(since);
            assert.ok((await fleet.recovered()) < Infinity, fault);
            took[fault] = Math.round(performance.now() - end);
            return took[fault];
          });
        }
        const drawn = await fleet.drawn();
        t.diagnostic(`${sum(drawn.map(({ length }) => length))} IDs, ${JSON.stringify(took)}`);
        assert.equal(countDuplicatesOf(drawn), 0);
      } finally {
        await fleet.end();
      }
    });
  }
});
