'use strict';
// Fleets on real stores under chaos: one process a host, stopped past its ttl, killed, ended and stopped
// while it ends, and restarted; the server frozen, restarted, cut off, silent, its connections half-open,
// its namespace lost; clocks set differently in each process, and hours ahead. Nothing repeats, and each
// process issues again soon after the last fault. lease/hosts-chaos.test.js has hosts of several.
//
//   TESTS=storms TESTS_TIMES=6 TESTS_SEED=7 node --test __test__/lease/chaos.test.js

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { inspect } = require('node:util');

const { amount, gate, seed, storm } = require('../support/amount.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { AFTER_LOSS, Fleet } = require('../support/lease/chaos.js');
const { Link } = require('../support/lease/link.js');
const { deleteNamespace } = require('../support/lease/namespaces.js');
const { ENGINES, Server, missing } = require('../support/lease/servers.js');
const { Machine, missing: noMachine } = require('../support/machine.js');
const { layouts, slow, until } = require('../support/support.js');

const SECONDS = amount(5, 10);
const SEED = seed ?? 1;
const PROCESSES = 6;
/** So few that a slot that is given up is soon somebody else's. */
const SLOTS = 8;
const layout = { ...layouts.node, datacenterBits: 5, workerBits: Math.log2(SLOTS) };

/** As long as a busy machine may take, ms. */
const LATE = 180_000;

/** Fails after a time in which holders end by far, with what each has done. */
async function lateness(drawers) {
  await sleep(LATE, undefined, { ref: false });
  const states = drawers.map((drawer) => [drawer.ids().length, drawer.warnings, drawer.losses]);
  assert.fail(`they have not ended in time: ${inspect(states, { depth: 4 })}`);
}

describe('chaos', () => {
  for (const engine of ENGINES) {
    test(`${engine}: no ID twice, and all issue again soon`, {
      skip: missing(engine) ?? noMachine() ?? storm,
    }, async (t) => {
      const processes = Array(PROCESSES).fill(1);
      const fleet = await Fleet.start(engine, { processes, slots: SLOTS, seed: SEED });
      try {
        await fleet.started();
        const recovered = await fleet.recoversFrom(SECONDS);
        const drawn = await fleet.drawn();
        const count = drawn.reduce((sum, { length }) => sum + length, 0);
        t.diagnostic(
          `seed ${SEED}: ${count} IDs of ${drawn.length} processes, ${JSON.stringify(fleet.counts)}, all issue again after ${Math.round(recovered)} ms`,
        );
        assert.equal(countDuplicatesOf(drawn), 0);
        assert.ok(count > 1000 * SECONDS, `only ${count} IDs`);
        assert.ok(recovered < AFTER_LOSS, `${recovered} ms`);
      } finally {
        await fleet.end();
      }
    });
  }

  /**
   * A test of processes that lease from a server: once as it is, and once with each planted fault, which it
   * must find. `start(more, machine)` starts one of them; `body` ends when they have drawn what is compared.
   * Most are storms: what they draw, and when, depends on the machine.
   */
  function holders(name, engine, faults, options, body, { isStorm = true } = {}) {
    for (const planted of [undefined, ...faults]) {
      const end = planted === undefined ? 'nothing twice' : `a planted fault (${planted}) is found`;
      const left = planted === undefined ? undefined : gate;
      const skip = missing(engine) ?? noMachine() ?? (isStorm ? storm : left);
      test(`${name}: ${end}`, { skip }, async () => {
        const server = await Server.start(engine);
        const all = {
          scope: 'process',
          engine: server.url,
          datacenterId: 1,
          ttl: 1000,
          ...options,
        };
        const drawers = [];
        const start = (more, machine) => {
          drawers.push(new Drawer({ ...all, ...more }, machine?.env));
          return drawers.at(-1);
        };
        const duplicates = () => countDuplicatesOf(drawers.map((drawer) => drawer.ids()));
        const cleanUps = [];
        const later = (cleanUp) => cleanUps.push(cleanUp);
        try {
          const done = body({ server, planted, start, drawers, duplicates, later });
          await Promise.race([done, lateness(drawers)]);
          assert.equal(duplicates() > 0, planted !== undefined);
        } finally {
          for (const drawer of drawers) drawer.kill('SIGKILL');
          await Promise.all(drawers.map(({ ended }) => ended));
          for (const cleanUp of cleanUps) cleanUp();
          await server.stop();
        }
      });
    }
  }
  const narrow = { ...layouts.node, workerBits: 0 };
  const drawsOn = (drawer) => drawer.drawn(drawer.ids().length + 100);

  holders(
    'one slot, its holder cut off until another has it',
    'redis',
    ['owner', 'unconfirmed'],
    { layout: narrow, maxClockSkew: 100, callTimeout: 200 },
    async ({ server, planted, start, duplicates, later }) => {
      const link = await Link.to(server.port);
      later(() => link.close());
      const cutOff = start({ engine: `redis://127.0.0.1:${link.port}`, planted });
      await cutOff.drawn(100);
      link.cut();
      const other = start();
      await other.drawn(100);
      link.mend();
      if (planted === undefined) await sleep(1500);
      else await until(() => duplicates() > 0);
      // If the machine stops the other one for longer than its ttl, the first one has the slot again, and keeps it.
      await Promise.race([drawsOn(other), drawsOn(cutOff)]);
    },
  );

  holders(
    'Redis loses all that it knows while slots are held',
    'redis',
    ['horizon'],
    { layout, maxClockSkew: 100 },
    async ({ server, planted, start, drawers, duplicates, later }) => {
      const client = new (require('ioredis'))(server.url);
      later(() => client.disconnect());
      for (let n = 0; n < 4; n++) start({ planted });
      await Promise.all(drawers.map((drawer) => drawer.drawn(100)));
      // A fault is found where two draw in the same ms, so after some more losses at times.
      const most = planted === undefined ? 2 : 20;
      for (let losses = 0; losses < most && duplicates() === 0; losses++) {
        await client.flushall();
        const living = [...drawers];
        await start({ planted }).drawn(100);
        await Promise.all(living.map(drawsOn));
      }
    },
  );

  holders(
    "Redis loses a slot whose holder's clock was an hour ahead, as the next one's is",
    'redis',
    ['cap'],
    { layout: narrow, maxClockSkew: 100 },
    async ({ server, planted, start, duplicates, later }) => {
      const newMachine = () => {
        const machine = new Machine();
        later(() => machine.remove());
        return machine;
      };
      const ahead = 3_600_000;
      const machine = newMachine();
      const first = start({ planted }, machine);
      await first.drawn(100);
      const jump = Date.now() + ahead;
      machine.clock = ahead;
      // Some renewals: with the fault, it draws on in the hour ahead.
      const below = BigInt(narrow.datacenterBits + narrow.clockBackBits + narrow.sequenceBits);
      const isAhead = () => Number(first.ids().at(-1) >> below) + narrow.epoch > jump + 1500;
      if (planted === undefined) await sleep(2000);
      else await until(isAhead);
      first.kill('SIGKILL');
      await first.ended;
      // A fault is found where two draw in the same ms, so by some more holders at times.
      const most = planted === undefined ? 1 : 5;
      for (let holders = 0; holders < most && duplicates() === 0; holders++) {
        await deleteNamespace(server, 'default');
        const its = newMachine();
        const next = start({ planted }, its);
        await next.drawn(100);
        // Its clock runs through what the first one's showed.
        its.clock = jump - 500 - Date.now();
        await sleep(3000);
        its.clock = 0;
        await drawsOn(next);
        if (holders + 1 < most) {
          next.kill('SIGKILL');
          await next.ended;
        }
      }
    },
  );

  holders(
    'one slot, whose next holder starts in the tick of the last one',
    'postgres',
    ['floor'],
    // Ticks of a day, so that both draw in the same one.
    { layout: { ...slow, workerBits: 0, sequenceBits: 37 } },
    async ({ planted, start }) => {
      const first = start();
      await first.drawn(100);
      await first.stop();
      const second = start({ planted });
      await second.opened();
      if (planted !== undefined) await second.drawn(100);
      else await sleep(500);
      if (planted === undefined) assert.equal(second.ids().length, 0, 'it waits for the next day');
    },
    { isStorm: false },
  );
});
