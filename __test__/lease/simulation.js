'use strict';
// A fleet of simulated processes in virtual time, from a seed. Their leases are kept by the real
// js/lease/lease.js, in the real store in memory, over a network that delays and loses. Only the addon
// is a model.

const { AsyncLocalStorage } = require('node:async_hooks');
const timers = require('node:timers');

const { layouts, seeded } = require('../support.js');
const { memory } = require('../../js/lease/memory.js');

/** The simulated process that runs. */
const here = new AsyncLocalStorage();
/** The fleet that runs. */
let fleet;

function replaceModule(path, exports) {
  const id = require.resolve(path);
  require.cache[id] = { id, filename: id, loaded: true, exports };
}

/** Replaces functions; returns what puts them back. */
function replaceFunctions(functions) {
  const restores = functions.map(([object, name, value]) => {
    const descriptor = Object.getOwnPropertyDescriptor(object, name);
    Object.defineProperty(object, name, { value, configurable: true, writable: true });
    return () => {
      if (descriptor) Object.defineProperty(object, name, descriptor);
      else delete object[name];
    };
  });
  return () => restores.forEach((restore) => void restore());
}

/** What lease.js captures when it is loaded. */
const VIRTUAL = [
  [timers, 'setTimeout', (run, ms) => fleet.after(ms, run, here.getStore())],
  [timers, 'clearTimeout', (event = {}) => Object.assign(event, { isCleared: true })],
  [Date, 'now', () => here.getStore()?.now() ?? fleet.now],
  [performance, 'now', () => fleet.now],
];

replaceModule('../../js/native.js', {
  firstCeiling: (_, ttl) => here.getStore().tick(ttl),
  openLeased(request, window) {
    here.getStore().moveTo(request, window);
    return here.getStore();
  },
});
// Processes end when the simulation says so.
replaceModule('../../js/lease/ending.js', { add() {}, remove() {} });
const restoreReal = replaceFunctions(VIRTUAL);
const { EngineLease } = require('../../js/lease/lease.js');
restoreReal();

const TTL = 2000;
const CALL_TIMEOUT = 400;
const PROCESSES = 4;
const START = 1_000_000;
/** Until here there are faults. */
const CALM = START + 10_000;
/** So long that two who may not issue the same tick do. */
const TICK = 100;

/** What a host's clock and the engine's may be apart; a jump goes past it. */
const MAX_CLOCK_SKEW = 2500;
/** After the last fault: a loss is noticed, and what was issued before has passed. */
const LIMIT = 3 * TTL + MAX_CLOCK_SKEW;
const NAMESPACE = {
  ...{ id: '0'.repeat(32), layout: '41/3/5/2/12@100+0', floor: -1 },
  ...{ ttl: TTL, maxClockSkew: MAX_CLOCK_SKEW, maxAhead: 0 },
};

/** How many of the faults, the last ones, lose what the engine had recorded. */
const LOSSES = 2;

const settings = {
  layout: { ...layouts.node, tickMs: TICK, epoch: 0 },
  datacenterId: 1,
  maxAhead: 0,
  leasing: {
    ttl: TTL,
    callTimeout: CALL_TIMEOUT,
    maxClockSkew: MAX_CLOCK_SKEW,
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
    this.wanted = Math.max(this.tick(ttl), this.#high);
    return this.wanted;
  }

  raiseCeiling(ceiling) {
    const confirmed = this.fleet.planted === 'no cap' ? this.wanted : ceiling;
    this.#window.ceiling = Math.max(this.#window.ceiling, confirmed);
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
  #records = { namespace: { ...NAMESPACE }, slots: new Map() };
  #engine = memory({ now: () => this.now + this.#engineSkew, records: this.#records });
  #engineSkew = 0;
  /** Copies of what the engine and #owners had, the newest last. */
  #backups = [];
  /** A backup was restored, and nobody has raised the floor since. */
  #isRestored = false;
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
    fleet = this;
    const restore = replaceFunctions([
      [process, 'emitWarning', (text, { code } = {}) => this.#count(code, here.getStore(), text)],
    ]);
    for (const host of this.#hosts) {
      this.after(0, () => this.#start(host));
      this.#drawOn(host);
    }
    this.after(1, () => this.#trouble());
    this.after(CALM - START, () => this.#calm());
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

  /** What is of a life does not come while that is stopped, and never once it is dead. */
  after(ms, run, life, isQuiet = false) {
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
    const store = { name: 'simulated:', mayForget: true };
    for (const name of ['now', 'open', 'raise', 'acquire', 'renew', 'release']) {
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
        await new Promise((resolve) => this.after(100, resolve, life));
      }
    }
  }

  /** Whoever runs on the host draws at any time. One that has given its slot up does so in vain. */
  #drawOn(host) {
    for (const life of [host.life, host.former]) this.#draw(life);
    this.after(this.#between(20, 100), () => this.#drawOn(host), undefined, true);
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
        if (frozen > 0) return this.after(frozen + this.#between(0, 20), arrive);
        const failed = () => reject(new Error('connection reset'));
        let answer;
        try {
          answer = await this.#ask(name, request);
        } catch {
          return this.after(5, failed, life);
        }
        const answered = () => {
          if (signal.aborted) this.#late(life, name, request.owner, answer);
          resolve(answer);
        };
        const back = this.#travel(life.host);
        if (back !== undefined) return this.after(back, answered, life);
        // Where it is lost, that may be noticed.
        return this.#random() < 0.5 && this.after(5, failed, life);
      };
      const there = this.#travel(life.host);
      // What is sent arrives, even if the sender is dead by then.
      if (there !== undefined) this.after(there, arrive);
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
    if (name === 'acquire' && this.#isRestored) throw new Error('down for maintenance');
    if (this.planted === 'no floor after a loss' && /open|raise/.test(name)) request.floor = -1;
    if (this.planted === 'confirmed not compared' && name === 'renew') request.confirmed = -1;
    const isBelieved = this.planted === `${name} without owner check`;
    const by = isBelieved ? this.#owners.get(workerId) : owner;
    const signal = new AbortController().signal;
    const asked = { ...request, owner: by, workerIds: this.#slots, signal };
    const answer = await this.#engine[name](asked);
    if (name === 'raise') this.#noteRaise();
    if (name === 'acquire' && answer.workerId !== undefined) {
      if (this.#owners.has(answer.workerId)) {
        this.#count('takeover', undefined, answer.workerId);
        // Restored from before it, the one who had lost the slot would find nothing wrong. Only an
        // operator can prevent that, who ends all holders before a restore.
        this.#backups = [];
      }
      this.#owners.set(answer.workerId, owner);
    }
    if (name === 'release') {
      if (this.#unwanted.has(owner)) this.#count('late slot given back');
      if (this.#owners.get(workerId) === by) this.#owners.delete(workerId);
    }
    return answer;
  }

  #noteRaise() {
    if (this.#isRestored) this.#count('restore noticed by a holder');
    this.#isRestored = false;
  }

  /** The operator's `snowdrift recover`. */
  #recover() {
    const horizon = Math.floor((this.now + this.#engineSkew + TTL + MAX_CLOCK_SKEW) / TICK);
    if (this.#records.namespace === undefined) return;
    this.#records.namespace.floor = Math.max(this.#records.namespace.floor, horizon);
  }

  /** A fault on some host, and after a while the next one. */
  #trouble() {
    const host = this.#hosts[this.#between(0, PROCESSES)];
    // Losses half as often as the rest, since nothing is issued for long after each.
    // Without them a believed owner hurts sooner: a loss ends all holds.
    const isLossless = this.#random() < 0.5 || /owner check/.test(this.planted);
    const most = Object.keys(this.#faults).length - (isLossless ? LOSSES : 0);
    const fault = Object.keys(this.#faults)[this.#between(0, most)];
    const ms = this.#between(200, 2 * TTL);
    this.#backups.push(structuredClone([this.#records, this.#owners]));
    this.#count(fault, host.life, `${ms} ms`);
    this.#faults[fault](host, ms);
    const pause = this.#between(100, 1000);
    if (this.now + pause < CALM) this.after(pause, () => this.#trouble());
  }

  #faults = {
    stop: ({ life }, ms) => {
      life.isStopped = true;
      this.after(ms, () => this.#resume(life));
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
    // What a holder has confirmed with it ends above the horizon, unless there is a cap.
    'clock jump': (host, ms) => {
      host.skew = this.#between(TTL + MAX_CLOCK_SKEW, 10_000);
      this.after(ms / 2, () => {
        if (this.now < CALM) host.skew = 0;
      });
    },
    // Ahead only: holders count on a clock that does not go back.
    "engine's clock step": () => {
      this.#engineSkew += this.#engineSkew < TTL ? this.#between(0, TTL) : 0;
    },
    'namespace lost': () => {
      this.#records.namespace = undefined;
      this.#records.slots.clear();
      this.#owners.clear();
    },
    // No new holder comes before an old one has noticed, or the operator has run recover.
    'backup restored': (_, ms) => {
      const [records, owners] = this.#backups[this.#between(0, this.#backups.length)] ?? [{}];
      if (records.namespace === undefined) return;
      this.#records.namespace = { ...records.namespace };
      this.#records.slots.clear();
      for (const [key, slot] of structuredClone(records).slots) this.#records.slots.set(key, slot);
      this.#owners = new Map(owners);
      this.#isRestored = true;
      this.after(Math.min(ms, CALM - this.now), () => {
        if (this.#isRestored && this.planted !== 'confirmed not compared') this.#recover();
        this.#isRestored = false;
      });
    },
  };

  #replace(host, ms) {
    const { life } = host;
    this.after(ms, () => host.life === life && this.#start(host));
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
    this.after(LIMIT, () => {
      this.#failure = new Error(`after ${LIMIT} ms, IDs go on on ${this.#back.size} hosts only`);
    });
    for (const host of this.#hosts) {
      host.skew = this.#engineSkew;
      if (host.life.isDead) this.#start(host);
      else if (host.life.isStopped) this.#resume(host.life);
    }
  }
}

module.exports = { Fleet, LIMIT };
