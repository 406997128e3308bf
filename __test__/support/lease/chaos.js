'use strict';
// Fleets of hosts on a real store, and the faults that befall them. Each host has a machine of its own:
// a clock, and a directory of pages that its processes share.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { chmodSync, readdirSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { promisify } = require('node:util');

const { MAIN } = require('../cli.js');
const { Drawer } = require('../drawer.js');
const { Machine } = require('../machine.js');
const { layouts, seeded } = require('../support.js');
const { Link } = require('./link.js');
const { deleteNamespace, deleteRecord } = require('./namespaces.js');
const { Server } = require('./servers.js');

const TTL = 2000;
/** As long as a busy machine may take, ms. */
const LATE = 180_000;
/** As far apart as the hosts' clocks are set, mostly. */
const SKEW = 1500;
const AHEAD = 200;

/** How far a host's clock, and the store's, is off at most, ms. */
const SHIFT = 700;

/** How long after a fault's end all issue again, at most, ms; and after a lost record. */
const SOON = 6000;
const AFTER_LOSS = TTL + 2 * SKEW + AHEAD + 2 * SHIFT + SOON;

class Host {
  machine = new Machine();
  /** Of each process, the one of now. */
  drawers = [];
  isFarAhead = false;

  /** The process that renewed last, as far as it has reported. */
  get renewer() {
    const reported = this.drawers.filter(({ renewal }) => renewal !== undefined);
    const last = reported.sort((a, b) => b.renewal.at - a.renewal.at)[0];
    const pid = last?.renewal.pid;
    return this.drawers.find((drawer) => drawer.pid === pid) ?? last ?? this.drawers[0];
  }

  get pages() {
    const root = this.machine.env.SNOWDRIFT_SHARED;
    const names = readdirSync(root, { recursive: true }).filter((name) => name.endsWith('.page'));
    return names.map((name) => join(root, name));
  }

  unlinkPages() {
    for (const page of this.pages) rmSync(page, { force: true });
  }
}

class Fleet {
  hosts;
  counts = {};
  #server;
  #link;
  /** Of the store. */
  #machine = new Machine();
  #options;
  #layout;
  #random;
  #drawers = [];
  #stopped = new Set();
  #pending = [];
  #isEngineDown = false;

  /**
   * @param processes of each host: its length is how many hosts there are
   * @param slots a power of two
   * @param options of the processes besides
   */
  static async start(engine, { processes, slots, seed, options }) {
    const fleet = new Fleet();
    // The server may be another user's.
    chmodSync(fleet.#machine.directory, 0o755);
    const { LD_PRELOAD, MACHINE_SHIM } = fleet.#machine.env;
    fleet.#server = await Server.start(engine, { env: { LD_PRELOAD, MACHINE_SHIM } });
    fleet.#link = await Link.to(fleet.#server.port);
    fleet.#random = seeded(seed);
    fleet.#layout = { ...layouts.node, datacenterBits: 5, workerBits: Math.log2(slots) };
    fleet.#options = {
      engine: fleet.#link.urlOf(fleet.#server).href,
      datacenterId: 1,
      layout: fleet.#layout,
      ttl: TTL,
      maxClockSkew: SKEW,
      maxAhead: AHEAD,
      callTimeout: 500,
      ...options,
    };
    fleet.hosts = processes.map(() => new Host());
    for (const [n, host] of fleet.hosts.entries()) {
      for (let process = 0; process < processes[n]; process++) fleet.restart(host, process);
    }
    return fleet;
  }

  get #isSlow() {
    return this.hosts.some(({ drawers }) => drawers.length > 1);
  }

  get #drawnCount() {
    return this.#drawers.reduce((sum, drawer) => sum + drawer.ids().length, 0);
  }

  restart(host, process) {
    // Many processes draw seldom: their hosts meet in a tick often enough.
    const options = { ...this.#options, pause: this.#isSlow ? 20 : 4 };
    host.drawers[process] = new Drawer(options, host.machine.env);
    this.#drawers.push(host.drawers[process]);
  }

  /** Between two ms. */
  #between(least, most) {
    return least + this.#random() * (most - least);
  }

  /** One of a list. */
  #any(list) {
    return list[Math.floor(this.#random() * list.length)];
  }

  /** A process of a host: the one that renews, half of the time. */
  #victim(host) {
    return this.#random() < 0.5 ? host.renewer : this.#any(host.drawers);
  }

  async #stop(drawers, ms) {
    const stopped = drawers.filter((drawer) => !this.#stopped.has(drawer));
    for (const drawer of stopped) {
      this.#stopped.add(drawer);
      drawer.kill('SIGSTOP');
    }
    await sleep(ms);
    for (const drawer of stopped) {
      drawer.kill('SIGCONT');
      this.#stopped.delete(drawer);
    }
  }

  #kill(host, drawers) {
    for (const drawer of drawers) {
      drawer.kill('SIGKILL');
      this.restart(host, host.drawers.indexOf(drawer));
    }
  }

  /** Ends a process, which is stopped somewhere in its shutdown. */
  async #end(host, drawer) {
    drawer.kill('SIGTERM');
    this.restart(host, host.drawers.indexOf(drawer));
    await sleep(this.#between(0, 30));
    await this.#stop([drawer], this.#between(0, TTL * 2));
  }

  /** Deletes the namespace. Other stores than Redis cannot know that there was one: see `snowdrift recover`. */
  async #lose() {
    if (['redis', 'valkey'].includes(this.#server.engine))
      return deleteNamespace(this.#server, 'default');
    this.#link.cut();
    try {
      await deleteNamespace(this.#server, 'default');
      await this.#recover();
    } finally {
      this.#link.mend();
    }
  }

  /** The key of the bucket in which all slots are. */
  get #bucket() {
    return `${this.#options.datacenterId}/0`;
  }

  async #recover() {
    const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits } = this.#layout;
    const bits = [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits];
    const terms = ['--ttl', TTL, '--max-clock-skew', SKEW, '--max-ahead', AHEAD].map(String);
    const args = ['recover', this.#server.url, ...terms, '--lost', '--layout', bits.join('/')];
    await promisify(execFile)(process.execPath, [MAIN, ...args]);
  }

  /** By name: faults of a host. Each settles when it is over. */
  hostFaults = {
    stop: (host) => this.#stop([this.#victim(host)], this.#between(TTL / 2, TTL * 2)),
    'stop the renewer': (host) => this.#stop([host.renewer], TTL * 1.5),
    'stop all': (host) => this.#stop(host.drawers, this.#between(TTL / 2, TTL * 2)),
    kill: async (host) => this.#kill(host, [this.#victim(host)]),
    'kill the renewer': async (host) => this.#kill(host, [host.renewer]),
    'kill all': async (host) => this.#kill(host, [...host.drawers]),
    end: (host) => this.#end(host, this.#victim(host)),
    'end all': (host) => Promise.all([...host.drawers].map((drawer) => this.#end(host, drawer))),
    'clock shift': async (host) => {
      if (!host.isFarAhead) host.machine.clock = this.#between(-SHIFT, SHIFT);
    },
    'clock jump': async (host) => {
      if (host.isFarAhead) return;
      host.isFarAhead = true;
      // From seconds to hours.
      host.machine.clock = 1000 * 10 ** this.#between(0.3, 4);
      await sleep(this.#between(TTL / 10, TTL));
      host.machine.clock = this.#between(-SHIFT, SHIFT);
      host.isFarAhead = false;
    },
    unlink: async (host) => host.unlinkPages(),
  };

  /** By name: faults of the store and the way to it. */
  storeFaults = {
    freeze: async () => {
      this.#server.signal('SIGSTOP');
      await sleep(this.#between(TTL / 4, TTL * 1.5));
      this.#server.signal('SIGCONT');
    },
    restart: async () => {
      await this.#server.kill();
      await sleep(this.#between(0, TTL / 2));
      await this.#server.run();
    },
    cut: async () => {
      this.#link.cut();
      await sleep(this.#between(TTL / 4, TTL * 1.5));
      this.#link.mend();
    },
    'half-open': async () => this.#link.halfOpen(),
    silence: async () => {
      this.#link.halfOpen();
      this.#link.silent();
      await sleep(this.#between(TTL / 4, TTL * 1.5));
      this.#link.mend();
    },
    // Of etcd it stays: that takes the time from the kernel.
    'store clock': async () => {
      this.#machine.clock = this.#between(-SHIFT, SHIFT);
    },
    'lose the bucket': () => deleteRecord(this.#server, 'default', this.#bucket),
    'lose the namespace': () => deleteRecord(this.#server, 'default', 'namespace'),
    loss: () => this.#lose(),
  };

  /** Has a fault befall a host or the store. Those of the store come one after the other. */
  async befall(fault, host) {
    const ofHost = this.hostFaults[fault];
    if (ofHost === undefined && this.#isEngineDown) return;
    this.counts[fault] = (this.counts[fault] ?? 0) + 1;
    if (ofHost !== undefined) return ofHost(host);
    this.#isEngineDown = true;
    try {
      await this.storeFaults[fault]();
    } finally {
      this.#isEngineDown = false;
    }
  }

  /**
   * Disturbs for some seconds, then measures how long the hosts take until they issue again. A busy machine may
   * make that longer, so that it is repeated after some more faults: the last of a few is what counts.
   */
  async recoversFrom(seconds, count) {
    let took = Infinity;
    for (let rounds = 0; rounds < 5 && took >= AFTER_LOSS; rounds++) {
      await this.disturb(rounds === 0 ? seconds : 2);
      took = await this.recovered(count);
      assert.ok(took < Infinity, 'they issue again');
    }
    return took;
  }

  /** Faults at random for that long, and until the last is over. */
  async disturb(seconds) {
    const faults = [...Object.keys(this.hostFaults), ...Object.keys(this.storeFaults)];
    const end = performance.now() + seconds * 1000;
    const isLate = () => this.#drawnCount < 1000 * seconds && performance.now() < end + 60_000;
    // Longer, if a busy machine has let them draw too little to show anything.
    while (performance.now() < end || isLate()) {
      await sleep(this.#between(50, 500));
      this.#pending.push(this.befall(this.#any(faults), this.#any(this.hosts)));
    }
    await Promise.all(this.#pending);
  }

  /**
   * How long until all processes of that many hosts have issued again, ms.
   * @returns Infinity if they have not within so many ms, which a fault exceeds on the slowest machine
   */
  async recovered(count = this.hosts.length, ms = LATE) {
    const start = performance.now();
    let back = 0;
    const enough = new Promise((resolve) => {
      for (const { drawers } of this.hosts) {
        const each = drawers.map((drawer) => drawer.drawn(drawer.ids().length + 1));
        // Of more hosts than slots, some wait until they are killed.
        Promise.all(each).then(
          () => ++back === count && resolve(),
          () => {},
        );
      }
    });
    const limit = sleep(ms, Infinity, { ref: false });
    return Promise.race([enough.then(() => performance.now() - start), limit]);
  }

  /** Until so many hosts issue for the first time. The processes of all start at once. */
  async started(count) {
    assert.ok((await this.recovered(count)) < Infinity, 'they start');
  }

  /** Until every process has found that its slot was lost, from a moment on. */
  async noticed(since) {
    const drawers = this.hosts.flatMap((host) => host.drawers);
    const end = performance.now() + LATE;
    const isOpen = (drawer) => !drawer.losses.some(({ at }) => at > since);
    while (drawers.some(isOpen) && performance.now() < end) await sleep(20);
  }

  /** Kills all; what each process has drawn. */
  async drawn() {
    for (const drawer of this.#drawers) drawer.kill('SIGKILL');
    await Promise.all(this.#drawers.map(({ ended }) => ended));
    return this.#drawers.map((drawer) => drawer.ids());
  }

  async end() {
    await this.drawn();
    this.#link.close();
    await this.#server.stop();
    this.#machine.remove();
    for (const { machine } of this.hosts) machine.remove();
  }
}

module.exports = { AFTER_LOSS, Fleet, SOON };
