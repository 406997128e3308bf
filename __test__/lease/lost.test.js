'use strict';
// Namespaces that are put back in time under living holders, on real servers. Each holder reports its slot as lost at its next
// renewal, all issue again soon, and what repeats meanwhile is what docs/guarantees.md says. Deleted ones are in
// lease/hosts-chaos.test.js.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { storm } = require('../support/amount.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { inRounds } = require('../support/lease/rounds.js');
const { RedisCluster } = require('../support/lease/redis-cluster.js');
const { ENGINES, Server, missing } = require('../support/lease/servers.js');
const { limitWait } = require('../support/limit-wait.js');
const { layouts } = require('../support/support.js');

/** A failover to a replica that lags. */
const CLUSTER = 'redis-cluster';

const HOLDERS = 4;
const TTL = 3000;
const CALL_TIMEOUT = 1000;
/** The clock of etcd is known to half a second. */
const SKEW = 1000;
const AHEAD = 500;
/** As many slots as there are processes in the end, so that each may get one that was another's. */
const layout = { ...layouts.node, datacenterBits: 5, workerBits: 3 };
/** Timers and processes of a busy machine, ms. */
const SLACK = 1500;
/** As long as a busy machine may take. What takes longer than it should is a round that is repeated. */
const LATE = 120_000;

/** Of an ID, Unix ms. */
const timeOf = (id) => Number(id >> 22n) + layout.epoch;

class Fleet {
  #options;
  drawers = [];
  newcomers = [];

  static async start(engine) {
    const fleet = new Fleet();
    fleet.server = engine === CLUSTER ? await RedisCluster.start() : await Server.start(engine);
    fleet.#options = {
      engine: fleet.server.url,
      datacenterId: 1,
      layout,
      // Each holder has a slot: those of a host are in lease/hosts-chaos.test.js. Who joins, and copies of a store, are in
      // src/registry/host/tests/driven.rs.
      scope: 'process',
      ttl: TTL,
      maxClockSkew: SKEW,
      maxAhead: AHEAD,
      callTimeout: CALL_TIMEOUT,
    };
    fleet.drawers = Array.from({ length: HOLDERS }, () => new Drawer(fleet.#options));
    await fleet.drawing(LATE, fleet.drawers);
    // Ready to come in the next ms, before anybody has noticed.
    const waiting = { ...fleet.#options, waits: true };
    fleet.newcomers = Array.from({ length: HOLDERS }, () => new Drawer(waiting));
    const ready = Promise.all(fleet.newcomers.map(({ ready }) => ready));
    await limitWait(ready, 'the next holders are ready', { ms: LATE });
    return fleet;
  }

  /** Until these draw, from now on. */
  drawing(ms, drawers) {
    const each = drawers.map((drawer) => drawer.drawn(drawer.ids().length + 100));
    return limitWait(Promise.all(each), 'all issue again', { ms });
  }

  /** Until all have renewed just now, if they do so at about one time: the worst moment of a loss. */
  async renewed() {
    const next = () => Math.min(...this.drawers.map(({ renewedAt }) => renewedAt)) + TTL / 3;
    const end = performance.now() + TTL;
    while (!(next() - performance.now() > TTL / 5) && performance.now() < end) await sleep(10);
  }

  /** Until every holder of the time before has reported its loss. */
  lost(ms, since) {
    const reported = async (drawer) => {
      while (!drawer.losses.some(({ at }) => at > since)) await sleep(20);
    };
    return limitWait(Promise.all(this.drawers.map(reported)), 'a loss is reported', { ms });
  }

  /** Until every holder of the time before has warned. */
  async warned() {
    while (this.drawers.some(({ warnings }) => !warnings.some(({ code }) => /LOST/.test(code)))) {
      await sleep(20);
    }
  }

  /** How many IDs there are, how many repeat, and of those after a moment, Unix ms. */
  compared(moment) {
    const all = [...this.drawers, ...this.newcomers].map((drawer) => drawer.ids());
    const late = all.map((ids) => ids.filter((id) => timeOf(id) > moment));
    return {
      count: all.reduce((sum, { length }) => sum + length, 0),
      duplicates: countDuplicatesOf(all),
      late: countDuplicatesOf(late),
    };
  }

  async end() {
    for (const drawer of [...this.drawers, ...this.newcomers]) drawer.kill('SIGKILL');
    await Promise.all([...this.drawers, ...this.newcomers].map(({ ended }) => ended));
    await this.server.stop();
  }
}

describe('a namespace', { concurrency: 2, skip: storm }, () => {
  for (const engine of [...ENGINES, CLUSTER]) {
    const scene = async (t) => {
      const fleet = await Fleet.start(engine);
      try {
        await fleet.server.backUp();
        // Holds of the copy have expired when it comes back, and ceilings are higher.
        await sleep(TTL * 1.5);
        await fleet.drawing(LATE, fleet.drawers);
        await fleet.renewed();
        const since = performance.now();
        await fleet.server.restore();
        const back = performance.now();
        for (const drawer of fleet.newcomers) drawer.go();
        await fleet.lost(LATE, since);
        const noticed = performance.now() - back;
        const now = Date.now();
        const all = [...fleet.drawers, ...fleet.newcomers];
        await fleet.drawing(LATE, all);
        const again = performance.now() - back;

        // Warnings come by another way than IDs.
        await limitWait(fleet.warned(), 'all warn', { ms: LATE });
        const { count, duplicates, late } = fleet.compared(now);
        t.diagnostic(
          `${count} IDs, ${duplicates} duplicates; all have noticed after ${Math.round(noticed)} ms, and issue again after ${Math.round(again)} ms`,
        );
        assert.equal(late, 0, 'nothing repeats when all have noticed');
        for (const { warnings } of fleet.drawers) {
          const codes = warnings.map(({ code }) => code);
          // While the server was down, a hold may have expired, and another holder came.
          assert.ok(
            codes.some((code) => /^SNOWFLAKE_(NAMESPACE|SLOT)_LOST$/.test(code)),
            codes.join(),
          );
        }
        const mostAgain = TTL + 2 * SKEW + AHEAD + 6000;
        return noticed < TTL / 3 + CALL_TIMEOUT + SLACK && again < mostAgain;
      } finally {
        await fleet.end();
      }
    };
    test(
      `${engine}: put back in time under living holders`,
      {
        skip: missing(engine === CLUSTER ? 'redis' : engine),
      },
      (t) => inRounds('all have noticed, and issue again, in time', () => scene(t)),
    );
  }
});
