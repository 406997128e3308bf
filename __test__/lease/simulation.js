'use strict';
// A fleet of simulated processes in virtual time, from a seed. Their leases are kept by the real
// js/lease/lease.js, in the real store in memory, over a network that delays and loses. Only the addon
// is a model.

const { AsyncLocalStorage } = require('node:async_hooks');

const { layouts, seeded } = require('../support.js');
const { memory } = require('../../js/lease/memory.js');

/** The simulated process that runs. */
const here = new AsyncLocalStorage();

function replaceModule(path, exports) {
  const id = require.resolve(path);
  require.cache[id] = { id, filename: id, loaded: true, exports };
}

replaceModule('../../js/native.js', {
  firstCeiling: (_, ttl) => here.getStore().tick(ttl),
  openLeased(request, window) {
    here.getStore().moveTo(request, window);
    return here.getStore();
  },
});
// Processes end when the simulation says so.
replaceModule('../../js/lease/ending.js', { add() {}, remove() {} });
const { EngineLease } = require('../../js/lease/lease.js');

const TTL = 2000;
const CALL_TIMEOUT = 400;
const PROCESSES = 4;
const START = 1_000_000;
/** Until here there are faults. */
const CALM = START + 10_000;
/** So long that two who may not issue the same tick do. */
const TICK = 100;

const settings = {
  layout: { ...layouts.node, tickMs: TICK, epoch: 0 },
  datacenterId: 1,
  leasing: {
    ttl: TTL,
    callTimeout: CALL_TIMEOUT,
    maxClockSkew: 2500,
    host: 'simulated',
    started: START,
    inThread: false,
  },
};

/**
 * A process, from its start to its end. It is its own channel: what lease.js uses of one behaves as in
 * src/binding/channel.rs and src/generator.rs.
 */
class Life {
  /** What came while it was stopped. */
  waiting = [];
  isStopped = false;
  isDead = false;
  /** By worker ID: a process never forgets what it issued. */
  #highest = new Map();
  #window;

  constructor(fleet, host) {
    this.fleet = fleet;
    this.host = host;
  }

  now() {
    return this.fleet.now + this.host.skew;
  }

  tick(ahead = 0) {
    return Math.floor((this.now() + ahead) / TICK);
  }

  get #high() {
    return this.#highest.get(this.workerId) ?? -1;
  }

  moveTo({ workerId }, { floor, ceiling }) {
    this.workerId = workerId;
    this.#window = { floor: this.fleet.planted === 'floor ignored' ? -1 : floor, ceiling };
    return null;
  }

  nextCeiling(ttl) {
    return Math.max(this.tick(ttl), this.#high);
  }

  raiseCeiling(ceiling) {
    this.#window.ceiling = Math.max(this.#window.ceiling, ceiling);
  }

  endWindow() {
    this.#window = { floor: -1, ceiling: -1 };
    return this.#high;
  }

  /** One ID a tick, if any. */
  draw() {
    const tick = this.tick();
    const { floor, ceiling } = this.#window;
    if (tick <= Math.max(floor, this.#high) || tick > ceiling) return undefined;
    this.#highest.set(this.workerId, tick);
    return `tick ${tick} of worker ID ${this.workerId}`;
  }
}

class Fleet {
  now = START;
  /** What happened, and how often. */
  counts = {};
  /** Which host issued what. */
  issued = new Map();
  #slots;
  #random;
  #trace;
  #events = [];
  #hosts;
  #engine = memory({ now: () => this.now + this.#engineSkew });
  #engineSkew = 0;
  #frozenUntil = 0;
  /** By worker ID, who acquired it last and has not released it. */
  #owners = new Map();
  /** Owners that were told of their slot when they waited for it no more. */
  #unwanted = new Set();
  /** The hosts that issue again after the last fault. */
  #back = new Set();
  #failure;

  constructor(seed, { slots, planted, trace = () => {} }) {
    this.#random = seeded(seed);
    this.#slots = slots;
    this.#trace = trace;
    this.planted = planted;
    this.#hosts = Array.from({ length: PROCESSES }, (_, name) => {
      return { name, skew: this.#between(-300, 300), cutUntil: 0 };
    });
  }

  /** Answers how long after the last fault all issue again. Throws if they do not, or twice. */
  async run() {
    const restore = this.#replaceGlobals();
    for (const host of this.#hosts) {
      this.#after(0, () => this.#start(host));
      this.#drawOn(host);
    }
    this.#after(1, () => this.#trouble());
    this.#after(CALM - START, () => this.#calm());
    try {
      while (this.#back.size < Math.min(PROCESSES, this.#slots)) {
        await this.#next();
        if (this.#failure) throw this.#failure;
      }
    } finally {
      restore();
    }
    return this.now - CALM;
  }

  async #next() {
    const event = this.#events.shift();
    const { at, run, life, isCleared, isQuiet } = event;
    this.now = at;
    if (isCleared || life?.isDead) return;
    if (life?.isStopped) {
      life.waiting.push(event);
      return;
    }
    here.run(life, run);
    // So that all microtasks run that the event led to.
    if (!isQuiet) await new Promise((resolve) => setImmediate(resolve));
  }

  #replaceGlobals() {
    const before = [
      [globalThis, 'setTimeout', (run, ms) => this.#after(ms, run, here.getStore())],
      [globalThis, 'clearTimeout', (event = {}) => Object.assign(event, { isCleared: true })],
      [Date, 'now', () => here.getStore()?.now() ?? this.now],
      [performance, 'now', () => this.now],
      [process, 'emitWarning', (text, { code } = {}) => this.#count(code, here.getStore(), text)],
    ].map(([object, name, value]) => {
      const descriptor = Object.getOwnPropertyDescriptor(object, name);
      Object.defineProperty(object, name, { value, configurable: true, writable: true });
      return () => {
        if (descriptor) Object.defineProperty(object, name, descriptor);
        else delete object[name];
      };
    });
    return () => before.forEach((restore) => void restore());
  }

  /** What is of a life does not come while that is stopped, and never once it is dead. */
  #after(ms, run, life, isQuiet = false) {
    return this.#enqueue({ run, life, isQuiet, unref() {} }, ms);
  }

  #enqueue(event, ms) {
    event.at = this.now + ms;
    this.#events.splice(this.#events.findLastIndex(({ at }) => at <= event.at) + 1, 0, event);
    return event;
  }

  #between(from, to) {
    return from + Math.floor(this.#random() * (to - from));
  }

  #count(what, life, more = '') {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
    this.#trace(`${this.now - START} ms: ${what}${life ? `, host ${life.host.name}` : ''} ${more}`);
  }

  #start(host) {
    host.life = new Life(this, host);
    here
      .run(host.life, () => this.#live(host.life))
      .catch((failure) => {
        this.#failure = failure;
      });
  }

  /** The application: it tries until it has a lease. */
  async #live(life) {
    const store = { name: 'simulated:' };
    for (const name of ['now', 'acquire', 'renew', 'release']) {
      store[name] = (request) => this.#send(life, name, request);
    }
    const wait = this.#between(0, 2) * 500;
    const patient = { ...settings, leasing: { ...settings.leasing, wait } };
    while (life.kept === undefined) {
      try {
        life.kept = await EngineLease.take(store, patient);
        this.#count('lease', life, `worker ID ${life.kept.workerId}`);
      } catch (failure) {
        if (!/_(STORE|NO_SLOT|CLOCK_SKEW)$/.test(failure.code)) throw failure;
        this.#count(failure.code, life);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  /** Whoever runs on the host draws at any time. One that has given its slot up does so in vain. */
  #drawOn(host) {
    for (const life of [host.life, host.former]) this.#draw(life);
    this.#after(this.#between(20, 100), () => this.#drawOn(host), undefined, true);
  }

  #draw(life) {
    if (!life?.kept || life.isStopped || life.isDead) return;
    const { host } = life;
    const id = life.draw();
    if (id === undefined) {
      const { state } = here.run(life, () => life.kept.report());
      if (state === 'expired' || state === 'lost') this.#count(`refused: ${state}`, life);
      return;
    }
    // A process never issues the same twice, so it was another one.
    const by = this.issued.get(id);
    if (by !== undefined) throw new Error(`hosts ${by} and ${host.name} both issued ${id}`);
    this.issued.set(id, host.name);
    if (this.now > CALM) this.#back.add(host);
  }

  /** A request on its way to the engine, and the answer on its way back. */
  #send(life, name, { signal, ...request }) {
    if (this.planted === 'unconfirmed ceiling' && name === 'renew') {
      life.raiseCeiling(request.ceiling);
    }
    if (name === 'acquire' && life.late) {
      const { late } = life;
      life.late = undefined;
      return late;
    }
    return new Promise((resolve, reject) => {
      const arrive = async () => {
        const frozen = this.#frozenUntil - this.now;
        if (frozen > 0) return this.#after(frozen + this.#between(0, 20), arrive);
        const answer = await this.#ask(name, request);
        const answered = () => {
          if (signal.aborted) this.#late(life, name, request.owner, answer);
          resolve(answer);
        };
        const failed = () => reject(new Error('connection reset'));
        const back = this.#travel(life.host);
        if (back !== undefined) return this.#after(back, answered, life);
        // Where it is lost, that may be noticed.
        return this.#random() < 0.5 && this.#after(5, failed, life);
      };
      const there = this.#travel(life.host);
      // What is sent arrives, even if the sender is dead by then.
      if (there !== undefined) this.#after(there, arrive);
    });
  }

  #late(life, name, owner, answer) {
    this.#count(`late ${name}`, life);
    if (name !== 'acquire') return;
    this.#unwanted.add(owner);
    if (this.planted === 'late answer used') life.late = answer;
  }

  /** How long a message takes; undefined if it is lost. */
  #travel(host) {
    const chance = this.now < CALM ? this.#random() : 1;
    const cut = Math.max(host.cutUntil - this.now, 0);
    if (chance < 0.03 || (cut > 0 && chance < 0.9)) return undefined;
    // What is not lost is sent again until the line is back.
    if (cut > 0) return cut + this.#between(1, 20);
    return chance < 0.1 ? this.#between(CALL_TIMEOUT / 2, 3 * CALL_TIMEOUT) : this.#between(1, 20);
  }

  async #ask(name, { owner, ...request }) {
    const { workerId } = request;
    const isBelieved = this.planted === `${name} without owner check`;
    const by = isBelieved ? this.#owners.get(workerId) : owner;
    const answer = await this.#engine[name]({ ...request, owner: by, workerIds: this.#slots });
    if (name === 'acquire' && answer.workerId !== undefined) {
      if (this.#owners.has(answer.workerId)) this.#count('takeover', undefined, answer.workerId);
      this.#owners.set(answer.workerId, owner);
    }
    if (name === 'release') {
      if (this.#unwanted.has(owner)) this.#count('late slot given back');
      if (this.#owners.get(workerId) === by) this.#owners.delete(workerId);
    }
    return answer;
  }

  /** A fault on some host, and after a while the next one. */
  #trouble() {
    const host = this.#hosts[this.#between(0, PROCESSES)];
    const fault = Object.keys(this.#faults)[this.#between(0, Object.keys(this.#faults).length)];
    const ms = this.#between(200, 2 * TTL);
    this.#count(fault, host.life, `${ms} ms`);
    this.#faults[fault](host, ms);
    const pause = this.#between(100, 1000);
    if (this.now + pause < CALM) this.#after(pause, () => this.#trouble());
  }

  #faults = {
    stop: ({ life }, ms) => {
      life.isStopped = true;
      this.#after(ms, () => this.#resume(life));
    },
    kill: (host, ms) => {
      host.life.isDead = true;
      this.#replace(host, ms / 4);
    },
    close: (host, ms) => {
      const { life } = host;
      if (!life.kept || life.isStopped) return this.#faults.kill(host, ms);
      here.run(life, () => life.kept.release());
      host.former = life;
      this.#replace(host, ms / 4);
    },
    freeze: (_, ms) => {
      this.#frozenUntil = Math.min(this.now + ms / 2, CALM);
    },
    'cut off': (host, ms) => {
      host.cutUntil = Math.min(this.now + ms, CALM);
    },
    'clock step': (host) => {
      host.skew = this.#between(-1500, 1500);
    },
    "engine's clock step": () => {
      this.#engineSkew = this.#between(-TTL, TTL);
    },
  };

  #replace(host, ms) {
    const { life } = host;
    this.#after(ms, () => host.life === life && this.#start(host));
  }

  #resume(life) {
    life.isStopped = false;
    // Before it hears of anything.
    this.#draw(life);
    // Of timers and answers that are due at once, either may come first.
    for (const event of life.waiting.splice(0)) this.#enqueue(event, this.#random() * 5);
  }

  /** The last fault is over. */
  #calm() {
    this.#after(3 * TTL, () => {
      this.#failure = new Error(`after 3 ttl, IDs go on on ${this.#back.size} hosts only`);
    });
    this.#engineSkew = 0;
    for (const host of this.#hosts) {
      host.skew = 0;
      if (host.life.isDead) this.#start(host);
      else if (host.life.isStopped) this.#resume(host.life);
    }
  }
}

module.exports = { Fleet };
