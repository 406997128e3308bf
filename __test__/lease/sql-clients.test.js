'use strict';
// Each client that docs/sql-databases.md names for sql(), with the code that it shows: the contract, and hosts in chaos.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { createDirectory } = require('../support/own-directory.js');
const { Server, missing } = require('../support/lease/servers.js');
const {
  SQL_CLIENTS,
  engineOf,
  openSqlClient,
  preparePrismaClients,
} = require('../support/lease/sql-clients.js');
const { amount, storm } = require('../support/amount.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { limitWait } = require('../support/limit-wait.js');
const { Machine, missing: noMachine } = require('../support/machine.js');
const { layouts } = require('../support/support.js');
const { missingOrm } = require('../support/installed.js');
const { registerContract } = require('../../js/stores/contract.js');
const { sql } = require('../../js/stores/sql.js');

const SECONDS = amount(6, 6);
const HOSTS = 3;
const PROCESSES = 3;
const TTL = 2000;
const SKEW = 1500;
/** How far a host's clock is off at most, ms. */
const SHIFT = 500;
/** How long a busy machine may take besides, ms. */
const LATE = 60_000;

const ignore = () => {};
const pick = (list) => list[Math.floor(Math.random() * list.length)];

/** Hosts whose processes lease by a client, and the faults that befall them. */
class Fleet {
  #client;
  #hosts;
  #drawers = [];
  #counts = {};
  /** What leases were refused with for good. */
  #refusals = [];

  constructor(name, place) {
    this.#client = { name, place };
    this.#hosts = Array.from({ length: HOSTS }, () => this.#newHost());
  }

  #newHost() {
    const host = { machine: new Machine(), drawers: [] };
    for (let n = 0; n < PROCESSES; n++) this.#start(host, n);
    return host;
  }

  #start(host, n) {
    const options = {
      sqlClient: this.#client,
      ...{ datacenterId: 1, layout: { ...layouts.node, datacenterBits: 6, workerBits: 2 } },
      ...{ ttl: TTL, maxClockSkew: SKEW, maxAhead: 200, callTimeout: 1000, pause: 20 },
    };
    host.drawers[n] = new Drawer(options, host.machine.env);
    this.#drawers.push(host.drawers[n]);
    host.drawers[n].opened().then(({ message }) => message && this.#refusals.push(message), ignore);
  }

  #kill(host, drawers) {
    for (const drawer of drawers) {
      drawer.kill('SIGKILL');
      this.#start(host, host.drawers.indexOf(drawer));
    }
  }

  #faults = {
    kill: (host) => this.#kill(host, [pick(host.drawers)]),
    'kill all': (host) => this.#kill(host, [...host.drawers]),
    'clock shift': ({ machine }) => {
      machine.clock = (2 * Math.random() - 1) * SHIFT;
    },
    async stop({ drawers }) {
      const stopped = Math.random() < 0.5 ? [pick(drawers)] : [...drawers];
      for (const drawer of stopped) drawer.kill('SIGSTOP');
      await sleep(Math.random() * 2 * TTL);
      for (const drawer of stopped) drawer.kill('SIGCONT');
    },
  };

  counts() {
    return JSON.stringify(this.#counts);
  }

  /** Until each process issues. */
  async issue(hosts = this.#hosts) {
    const start = performance.now();
    const each = hosts.flatMap(({ drawers }) => drawers.map((one) => one.drawn(one.count + 1)));
    const what = () => `each process issues; refused: ${this.#refusals.join('; ')}`;
    await limitWait(Promise.all(each), what, { ms: LATE });
    return performance.now() - start;
  }

  async disturb(ms, server) {
    const end = performance.now() + ms;
    const pending = [];
    let isRestarted = server === undefined;
    while (performance.now() < end) {
      await sleep(50 + Math.random() * 350);
      const name = pick(Object.keys(this.#faults));
      this.#counts[name] = (this.#counts[name] ?? 0) + 1;
      pending.push(this.#faults[name](pick(this.#hosts)));
      if (isRestarted || performance.now() < end - ms / 2) continue;
      isRestarted = true;
      this.#counts['restart of the server'] = 1;
      await server.kill();
      await server.run();
    }
    await Promise.all(pending);
  }

  /** Loses a host, and begins another one. Returns how long it takes until that issues, ms. */
  async replace(n) {
    const { drawers, machine } = this.#hosts[n];
    for (const drawer of drawers) drawer.kill('SIGKILL');
    await Promise.all(drawers.map(({ ended }) => ended));
    machine.remove();
    this.#hosts[n] = this.#newHost();
    return this.issue([this.#hosts[n]]);
  }

  /** Kills all; what each process has drawn. */
  async drawn() {
    for (const drawer of this.#drawers) drawer.kill('SIGKILL');
    await Promise.all(this.#drawers.map(({ ended }) => ended));
    return this.#drawers.map((drawer) => drawer.ids());
  }

  async end() {
    await this.drawn();
    for (const { machine } of this.#hosts) machine.remove();
  }
}

const isServer = (engine) => !['file', 'memory'].includes(engine);

describe('clients of SQL databases', { concurrency: 1 }, () => {
  before(async () => {
    if (missingOrm('prisma') === undefined) await preparePrismaClients();
  });

  for (const [name, { missing: missingPackage }] of Object.entries(SQL_CLIENTS)) {
    const engine = engineOf(name);
    const skip = storm ?? missingPackage() ?? (isServer(engine) ? missing(engine) : undefined);
    if (skip) {
      test(name, { skip }, () => {});
      continue;
    }
    describe(name, () => {
      let server;
      const place = isServer(engine) ? undefined : join(createDirectory(), 'app.db');
      const opened = [];
      /** In a database of one process, all share it. */
      let shared;
      before(async () => {
        if (place === undefined) server = await Server.start(engine);
      });
      after(async () => {
        for (const end of opened) await end();
        await server?.stop();
      });

      async function open() {
        const { client, end } = await openSqlClient(name, place ?? server.url);
        opened.push(end);
        return client;
      }

      registerContract(
        name,
        async (namespace) => {
          if (engine === 'memory') shared ??= open();
          return sql(await (shared ?? open()), { namespace });
        },
        { limit: 240_000 },
      );

      test('three hosts of three processes, which are killed: no ID twice', {
        // A database in the memory of a process has no other hosts.
        skip: engine === 'memory' ? 'one process has it' : noMachine(),
      }, async (t) => {
        // A server takes so many connections.
        for (const end of opened.splice(0)) await end();
        const fleet = new Fleet(name, place ?? server.url);
        try {
          await fleet.issue();
          await fleet.disturb(SECONDS * 1000, server);
          await fleet.issue();
          // The first one that is lost leaves a slot that nobody has taken yet.
          const waits = [await fleet.replace(0), await fleet.replace(1)];
          const drawn = await fleet.drawn();
          const ids = drawn.reduce((sum, { length }) => sum + length, 0);
          t.diagnostic(
            `${ids} IDs of ${drawn.length} processes, ${fleet.counts()}; lost hosts: IDs again after ${waits.map(Math.round)} ms`,
          );
          assert.equal(countDuplicatesOf(drawn), 0);
          assert.ok(ids > 1000 * SECONDS, `only ${ids} IDs`);
        } finally {
          await fleet.end();
        }
      });
    });
  }
});
