'use strict';
// Fleets on real stores under chaos: processes stopped past their ttl, killed, ended and stopped while
// they end, and restarted; the server frozen, restarted, cut off, silent, its connections half-open and,
// on Redis, its namespace lost; clocks set differently in each process, and hours ahead. Nothing repeats,
// and each process issues again soon after the last fault.
//
//   LEASE_CHAOS_SECONDS=60 LEASE_CHAOS_SEED=7 node --test __test__/lease-chaos.test.js

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { Drawer, countDuplicatesOf } = require('./drawer.js');
const { Link } = require('./lease/link.js');
const { deleteNamespace } = require('./lease/namespaces.js');
const { ENGINES, Server, missing } = require('./lease/servers.js');
const { Machine, missing: noMachine } = require('./machine.js');
const { layouts, seeded, slow } = require('./support.js');

/** 0: no fleets. They take their time, so they run where it is asked for. */
const SECONDS = Number(process.env.LEASE_CHAOS_SECONDS ?? 0);
const SEED = Number(process.env.LEASE_CHAOS_SEED ?? 1);
const TTL = 2000;
const SKEW = 1500;
const AHEAD = 200;
/** In which all issue again after the last fault: the longest that a floor is ahead, and 6 s. */
const AGAIN = TTL + SKEW + AHEAD + 6000;
const PROCESSES = 6;
/** So few worker IDs that a slot that is given up is soon somebody else's. */
const layout = { ...layouts.node, datacenterBits: 5, workerBits: 3 };

class Fleet {
  #random = seeded(SEED);
  #options;
  #server;
  #link;
  #places;
  #drawers = [];
  counts = {};

  static async start(engine) {
    const fleet = new Fleet();
    fleet.#server = await Server.start(engine);
    fleet.#link = await Link.to(fleet.#server.port);
    const url = new URL(fleet.#server.url);
    url.port = fleet.#link.port;
    fleet.#options = {
      engine: url.href,
      datacenterId: 1,
      layout,
      ttl: TTL,
      // As far apart as their clocks are set, mostly.
      maxClockSkew: SKEW,
      maxAhead: AHEAD,
      callTimeout: 500,
    };
    fleet.#places = Array.from({ length: PROCESSES }, () => ({ machine: new Machine() }));
    for (const place of fleet.#places) fleet.#restart(place);
    await Promise.all(fleet.#places.map(({ drawer }) => drawer.drawn(1)));
    return fleet;
  }

  #restart(place) {
    place.drawer = new Drawer(this.#options, place.machine.env);
    this.#drawers.push(place.drawer);
  }

  #count(what) {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  /** Between two ms. */
  #between(least, most) {
    return least + this.#random() * (most - least);
  }

  async disturb(seconds) {
    const end = Date.now() + seconds * 1000;
    const pending = [];
    let isEngineDown = false;
    /** Faults of the engine come one after the other. */
    const onEngine = (what, how) => {
      if (isEngineDown) return;
      isEngineDown = true;
      this.#count(what);
      pending.push(
        how().finally(() => {
          isEngineDown = false;
        }),
      );
    };
    const faults = [
      (place) => {
        if (place.isStopped) return;
        const { drawer } = place;
        this.#count('stops');
        place.isStopped = true;
        drawer.kill('SIGSTOP');
        const resume = async () => {
          await sleep(this.#between(TTL / 2, TTL * 2));
          drawer.kill('SIGCONT');
          place.isStopped = false;
        };
        pending.push(resume());
      },
      (place) => {
        this.#count('kills');
        place.drawer.kill('SIGKILL');
        this.#restart(place);
      },
      () =>
        onEngine('freezes', async () => {
          this.#server.signal('SIGSTOP');
          await sleep(this.#between(TTL / 4, TTL * 1.5));
          this.#server.signal('SIGCONT');
        }),
      () =>
        onEngine('restarts', async () => {
          await this.#server.kill();
          await sleep(this.#between(0, TTL / 2));
          await this.#server.run();
        }),
      () =>
        onEngine('cuts', async () => {
          this.#link.cut();
          await sleep(this.#between(TTL / 4, TTL * 1.5));
          this.#link.mend();
        }),
      (place) => {
        if (place.isFarAhead) return;
        this.#count('steps');
        place.machine.clock = this.#between(-700, 700);
      },
      (place) => {
        if (place.isFarAhead) return;
        this.#count('jumps');
        place.isFarAhead = true;
        // From seconds to hours.
        place.machine.clock = 1000 * 10 ** this.#between(0.3, 4);
        const goBack = async () => {
          await sleep(this.#between(TTL / 10, TTL));
          place.machine.clock = this.#between(-700, 700);
          place.isFarAhead = false;
        };
        pending.push(goBack());
      },
      (place) => {
        this.#count('ends');
        const { drawer } = place;
        drawer.kill('SIGTERM');
        const stop = async () => {
          // Somewhere in its shutdown.
          await sleep(this.#between(0, 30));
          drawer.kill('SIGSTOP');
          await sleep(this.#between(0, TTL * 2));
          drawer.kill('SIGCONT');
        };
        pending.push(stop());
        this.#restart(place);
      },
      () => {
        this.#count('halfOpens');
        this.#link.halfOpen();
      },
      () =>
        onEngine('silences', async () => {
          this.#link.halfOpen();
          this.#link.silent();
          await sleep(this.#between(TTL / 4, TTL * 1.5));
          this.#link.mend();
        }),
      ...(this.#server.engine === 'redis'
        ? [() => onEngine('losses', () => deleteNamespace(this.#server, 'default'))]
        : []),
    ];
    while (Date.now() < end) {
      await sleep(this.#between(50, 500));
      const place = this.#places[Math.floor(this.#random() * PROCESSES)];
      faults[Math.floor(this.#random() * faults.length)](place);
    }
    await Promise.all(pending);
  }

  /** How long until all have issued again, ms; Infinity if some do not. */
  async recover() {
    const start = performance.now();
    const each = this.#places.map(({ drawer }) => drawer.drawn(drawer.ids().length + 1));
    const limit = sleep(2 * AGAIN, Infinity, { ref: false });
    return Promise.race([Promise.all(each).then(() => performance.now() - start), limit]);
  }

  async drawn() {
    for (const { drawer } of this.#places) drawer.kill('SIGKILL');
    await Promise.all(this.#drawers.map(({ ended }) => ended));
    return this.#drawers.map((drawer) => drawer.ids());
  }

  async end() {
    for (const drawer of this.#drawers) drawer.kill('SIGKILL');
    await Promise.all(this.#drawers.map(({ ended }) => ended));
    this.#link.close();
    await this.#server.stop();
    for (const { machine } of this.#places) machine.remove();
  }
}

describe('chaos', () => {
  for (const engine of ENGINES) {
    test(`${engine}: nothing twice, and all issue again soon`, {
      skip:
        missing(engine) ??
        noMachine() ??
        (SECONDS > 0 ? undefined : 'LEASE_CHAOS_SECONDS is not set'),
    }, async (t) => {
      const fleet = await Fleet.start(engine);
      try {
        await fleet.disturb(SECONDS);
        const recovered = await fleet.recover();
        const drawn = await fleet.drawn();
        const count = drawn.reduce((sum, { length }) => sum + length, 0);
        t.diagnostic(
          `seed ${SEED}: ${count} IDs of ${drawn.length} processes, ${JSON.stringify(fleet.counts)}, all issue again after ${Math.round(recovered)} ms`,
        );
        assert.equal(countDuplicatesOf(drawn), 0);
        assert.ok(count > 1000 * SECONDS, `only ${count} IDs`);
        assert.ok(recovered < AGAIN, `${recovered} ms`);
      } finally {
        await fleet.end();
      }
    });
  }

  for (const planted of [undefined, 'owner', 'unconfirmed']) {
    const name =
      planted === undefined
        ? 'and a lease as it is: nothing twice'
        : `and a planted fault (${planted}): found`;
    test(`one slot, its holder cut off until another has it, ${name}`, {
      skip: missing('redis') ?? noMachine(),
    }, async () => {
      const server = await Server.start('redis');
      const link = await Link.to(server.port);
      const options = {
        engine: server.url,
        datacenterId: 1,
        layout: { ...layouts.node, workerBits: 0 },
        ttl: 1000,
        maxClockSkew: 100,
        callTimeout: 200,
      };
      const cutOff = new Drawer({ ...options, engine: `redis://127.0.0.1:${link.port}`, planted });
      const drawers = [cutOff];
      try {
        await cutOff.drawn(100);
        link.cut();
        const other = new Drawer(options);
        drawers.push(other);
        await other.drawn(100);
        link.mend();
        await sleep(1500);
        await other.drawn(other.ids().length + 100);
        const ids = drawers.map((drawer) => drawer.ids());
        assert.equal(countDuplicatesOf(ids) > 0, planted !== undefined);
      } finally {
        for (const drawer of drawers) drawer.kill('SIGKILL');
        await Promise.all(drawers.map(({ ended }) => ended));
        link.close();
        await server.stop();
      }
    });
  }

  for (const planted of [undefined, 'horizon']) {
    const name = planted === undefined ? 'nothing twice' : 'and a planted fault (horizon): found';
    test(`Redis loses all that it knows while slots are held: ${name}`, {
      skip: missing('redis'),
    }, async () => {
      const server = await Server.start('redis');
      const client = new (require('ioredis'))(server.url);
      const options = {
        engine: server.url,
        datacenterId: 1,
        ttl: 1000,
        maxClockSkew: 100,
        planted,
      };
      const newDrawer = () => new Drawer({ ...options, layout });
      const drawers = Array.from({ length: 4 }, newDrawer);
      try {
        await Promise.all(drawers.map((drawer) => drawer.drawn(100)));
        const found = () => countDuplicatesOf(drawers.map((drawer) => drawer.ids())) > 0;
        // A fault is found where two draw in the same ms, so after some more losses at times.
        const most = planted === undefined ? 2 : 20;
        for (let losses = 0; losses < most && !found(); losses++) {
          await client.flushall();
          const living = [...drawers];
          drawers.push(newDrawer());
          await drawers.at(-1).drawn(100);
          await Promise.all(living.map((drawer) => drawer.drawn(drawer.ids().length + 100)));
        }
        assert.equal(found(), planted !== undefined);
      } finally {
        for (const drawer of drawers) drawer.kill('SIGKILL');
        await Promise.all(drawers.map(({ ended }) => ended));
        client.disconnect();
        await server.stop();
      }
    });
  }

  for (const planted of [undefined, 'cap']) {
    const name = planted === undefined ? 'nothing twice' : 'and a planted fault (cap): found';
    test(`Redis loses a slot whose holder's clock was an hour ahead, as the next one's is: ${name}`, {
      skip: missing('redis') ?? noMachine(),
    }, async () => {
      const server = await Server.start('redis');
      const machines = [new Machine(), new Machine()];
      const ahead = 3_600_000;
      const options = {
        engine: server.url,
        datacenterId: 1,
        layout: { ...layouts.node, workerBits: 0 },
        ttl: 1000,
        maxClockSkew: 100,
        planted,
      };
      const drawers = [];
      try {
        const first = new Drawer(options, machines[0].env);
        drawers.push(first);
        await first.drawn(100);
        const jump = Date.now() + ahead;
        machines[0].clock = ahead;
        // Some renewals.
        await sleep(2000);
        first.kill('SIGKILL');
        await first.ended;
        await deleteNamespace(server, 'default');
        const second = new Drawer(options, machines[1].env);
        drawers.push(second);
        await second.drawn(100);
        // Its clock runs through what the first one's showed.
        machines[1].clock = jump - 500 - Date.now();
        await sleep(3000);
        machines[1].clock = 0;
        await second.drawn(second.ids().length + 100);
        const ids = drawers.map((drawer) => drawer.ids());
        assert.equal(countDuplicatesOf(ids) > 0, planted !== undefined);
      } finally {
        for (const drawer of drawers) drawer.kill('SIGKILL');
        await Promise.all(drawers.map(({ ended }) => ended));
        for (const machine of machines) machine.remove();
        await server.stop();
      }
    });
  }

  for (const planted of [undefined, 'floor']) {
    const name = planted === undefined ? 'nothing twice' : 'and a planted fault (floor): found';
    test(`one slot, whose next holder starts in the tick of the last one: ${name}`, {
      skip: missing('postgres') ?? noMachine(),
    }, async () => {
      const server = await Server.start('postgres');
      // Ticks of a day, so that both draw in the same one.
      const layout = { ...slow, workerBits: 0, sequenceBits: 37 };
      const options = { engine: server.url, datacenterId: 1, layout, ttl: 1000 };
      const first = new Drawer(options);
      let second;
      try {
        await first.drawn(100);
        await first.stop();
        second = new Drawer({ ...options, planted });
        await second.opened();
        await sleep(500);
        const ids = [first.ids(), second.ids()];
        assert.equal(countDuplicatesOf(ids) > 0, planted !== undefined);
        if (planted === undefined)
          assert.equal(second.ids().length, 0, 'it waits for the next day');
      } finally {
        for (const drawer of [first, second]) {
          drawer?.kill('SIGKILL');
          await drawer?.ended;
        }
        await server.stop();
      }
    });
  }
});
