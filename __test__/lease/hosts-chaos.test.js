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
const { ENGINES, missing } = require('../support/lease/servers.js');
const { missing: noMachine } = require('../support/machine.js');

const SECONDS = amount(10, 10);
const SEED = seed ?? 1;
const SLOTS = 4;
/** More hosts than slots: what one gives up is soon another's. */
const PROCESSES = [2, 3, 8, 2, 4, 2];
/** As many hosts as slots at most, so that each gets its slot back. */
const FEW = [3, 2, 4];

const skipped = (engine) => missing(engine) ?? noMachine() ?? storm;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

describe('hosts in chaos', () => {
  for (const engine of ENGINES) {
    test(`${engine}: more hosts than slots, no ID twice, and all slots are in use again soon`, {
      skip: skipped(engine),
    }, async (t) => {
      const fleet = await Fleet.start(engine, { processes: PROCESSES, slots: SLOTS, seed: SEED });
      try {
        await fleet.started(SLOTS);
        const recovered = await fleet.recoversFrom(SECONDS, SLOTS);
        const drawn = await fleet.drawn();
        const count = sum(drawn.map(({ length }) => length));
        t.diagnostic(
          `seed ${SEED}: ${count} IDs of ${drawn.length} processes, ${JSON.stringify(fleet.counts)}, ${SLOTS} hosts issue again after ${Math.round(recovered)} ms`,
        );
        assert.equal(countDuplicatesOf(drawn), 0);
        assert.ok(count > 1000 * SECONDS, `only ${count} IDs`);
        assert.ok(recovered < AFTER_LOSS, `${recovered} ms`);
      } finally {
        await fleet.end();
      }
    });

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
