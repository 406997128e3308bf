'use strict';
// A fleet of simulated hosts and their processes in virtual time, from a seed. Their leases are kept by the
// real js/lease/lease.js, in the real store in memory, over a network that delays and loses. Only the addon
// is a model: see addon-model.js.

const { layouts, seeded } = require('../support.js');
const { memory } = require('../../../js/stores/memory.js');
const { HostMemory, Life, STEPS, TICK } = require('./addon-model.js');
const { here, newStoreLease, replaceFunctions, runFleet } = require('./in-virtual-time.js');
const { VirtualTime } = require('./virtual-time.js');

const TTL = 2000;
const CALL_TIMEOUT = 400;
const START = 1_000_000;
/** Until here there are faults. */
const CALM = START + 10_000;
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

/** What a process may be killed or stopped at, besides native calls. */
const MESSAGES = ['renew', 'acquire', 'release'].flatMap((name) => [
  `send ${name}`,
  `answer ${name}`,
]);

/** A machine, and its processes of now and those that have closed their lease. */
class Host extends HostMemory {
  lives = [];
  former = [];
  cutUntil = 0;

  constructor(name, skew) {
    super();
    Object.assign(this, { name, skew });
  }

  /** The process that renewed last. */
  get renewer() {
    const pids = [...this.pages.values()].map(({ renewer }) => renewer);
    return this.lives.find(({ pid }) => pids.includes(pid)) ?? this.lives[0];
  }
}

class Fleet {
  /** What happened, and how often. */
  counts = {};
  /** Which host issued what. */
  issued = new Map();
  #slots;
  #random;
  #trace;
  #time = new VirtualTime(START);
  hosts;
  #pids = 0;
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
  /** The processes that issue again after the last fault. */
  #back = new Set();
  #failure;

  /** @param processes of each host; scope 'process' has each lease a slot of its own */
  constructor(seed, { slots, processes, scope, planted, trace = () => {} }) {
    Object.assign(this, { scope, planted });
    this.#random = seeded(seed);
    this.#slots = slots;
    this.#trace = trace;
    this.hosts = processes.map((count, name) => {
      const host = new Host(name, this.#between(-300, 300));
      host.lives = Array.from({ length: count }, () => this.#newLife(host));
      return host;
    });
  }

  get now() {
    return this.#time.now;
  }

  /** Answers how long after the last fault all issue again. Throws if they do not, or twice. */
  async run() {
    runFleet(this);
    const restore = replaceFunctions([
      [process, 'emitWarning', (text, { code } = {}) => this.count(code, here.getStore(), text)],
      [Math, 'random', () => this.#random()],
    ]);
    for (const host of this.hosts) {
      for (const life of host.lives) this.after(0, () => this.#start(life));
      this.#drawOn(host);
    }
    this.after(1, () => this.#trouble());
    this.after(CALM - START, () => this.#calm());
    try {
      while (!this.#isOver) {
        await this.#next();
        if (this.#failure) throw this.#failure;
      }
    } finally {
      restore();
    }
    return this.now - CALM;
  }

  /** Whether as many hosts as can issue again, each from one page by all of its processes. */
  get #isOver() {
    return this.#hostsBack.length >= Math.min(this.hosts.length, this.#slots);
  }

  get #hostsBack() {
    return this.hosts.filter(({ lives }) => {
      const pages = new Set(lives.map(({ kept }) => kept?.channel.page));
      return lives.every((life) => this.#back.has(life)) && pages.size === 1;
    });
  }

  async #next() {
    const event = this.#time.next();
    const { run, life, isCleared, isQuiet } = event;
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
    return this.#time.schedule({ run, life, isQuiet, unref() {}, ref() {} }, ms);
  }

  #any(list) {
    return list[this.#between(0, list.length)];
  }

  #between(from, to) {
    return from + Math.floor(this.#random() * (to - from));
  }

  count(what, life, more = '') {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
    const where = life ? `, host ${life.host.name}, process ${life.pid}` : '';
    this.#trace(`${this.now - START} ms: ${what}${where} ${more}`);
  }

  #newLife(host) {
    return new Life(this, host, ++this.#pids);
  }

  #start(life) {
    here
      .run(life, () => this.#live(life))
      .catch((failure) => {
        if (!life.isDead) this.#failure = failure;
      });
  }

  /** The application: it tries until it has a lease. */
  async #live(life) {
    const StoreLease = newStoreLease();
    const store = { name: 'simulated:', mayForget: true };
    for (const name of ['now', 'open', 'raise', 'acquire', 'renew', 'release']) {
      store[name] = (request) => this.#send(life, name, request);
    }
    const wait = this.#between(0, 2) * 500;
    const scope = this.scope === 'host' ? 'auto' : 'process';
    const patient = { ...settings, scope, leasing: { ...settings.leasing, wait } };
    while (life.kept === undefined && !life.isDead) {
      try {
        life.kept = await StoreLease.take(store, patient);
        this.count('lease', life, `worker ID ${life.kept.workerId}`);
      } catch (failure) {
        if (!/_(STORE|NO_SLOT|CLOCK_SKEW|CONFLICT)$/.test(failure.code)) throw failure;
        this.count(failure.code, life);
        await new Promise((resolve) => this.after(100, resolve, life));
      }
    }
  }

  /** Processes draw at any time. One that has given its slot up does so in vain. */
  #drawOn(host) {
    for (const life of [...host.lives, ...host.former]) {
      if (this.#random() < 0.5) this.#draw(life);
    }
    this.after(this.#between(10, 50), () => this.#drawOn(host), undefined, true);
  }

  #draw(life) {
    if (!life.kept || life.isStopped || life.isDead) return;
    const { host } = life;
    const id = life.kept.channel.draw();
    if (id === undefined) {
      const { state } = here.run(life, () => life.kept.report());
      if (state === 'expired' || state === 'lost') this.count(`refused: ${state}`, life);
      return;
    }
    // Neither a page nor a process issues the same twice, so it was another one.
    const by = this.issued.get(id);
    if (by !== undefined) throw new Error(`hosts ${by} and ${host.name} both issued ${id}`);
    this.issued.set(id, host.name);
    if (this.now > CALM) this.#back.add(life);
  }

  /** A request on its way to the engine, and the answer on its way back. */
  #send(life, name, { signal, ...request }) {
    if (life.isDead || this.#isFatal(life, `send ${name}`)) return new Promise(() => {});
    if (this.planted === 'unconfirmed ceiling' && name === 'renew') {
      life.kept?.channel.raiseCeiling(request.ceiling);
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
          answer = await this.#ask(life, name, request);
        } catch {
          return this.after(5, failed, life);
        }
        const answered = () => {
          if (this.#isFatal(life, `answer ${name}`)) return;
          if (signal.aborted) this.#late(life, name, request, answer);
          resolve(answer);
        };
        const back = this.#travel(life.host);
        if (back !== undefined) return this.after(back, answered, life);
        // Where it is lost, that may be noticed.
        return this.#random() < 0.5 && this.after(5, failed, life);
      };
      const depart = () => {
        const there = this.#travel(life.host);
        // What is sent arrives, even if the sender is dead by then.
        if (there !== undefined) this.after(there, arrive);
      };
      if (life.isStopped) life.unwritten.push(depart);
      else depart();
    });
  }

  /** Whether the process dies now, as it was to. */
  #isFatal(life, at) {
    if (life.meet(at) === undefined) return false;
    life.isDead = true;
    life.host.forget(life);
    return true;
  }

  #late(life, name, { owner }, answer) {
    this.count(`late ${name}`, life);
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

  async #ask(life, name, { owner, ...request }) {
    const { workerId } = request;
    if (name === 'acquire' && this.#isRestored) throw new Error('down for maintenance');
    if (this.planted === 'no floor after a loss' && /open|raise/.test(name)) request.floor = -1;
    if (this.planted === 'confirmed not compared' && name === 'renew') request.confirmed = -1;
    const isBelieved = this.planted === `${name} without owner check`;
    const by = isBelieved ? this.#owners.get(workerId) : owner;
    const signal = new AbortController().signal;
    const asked = { ...request, owner: by, workerIds: this.#slots, signal };
    if (this.planted === 'two owners' && name === 'renew')
      Object.assign(asked, await this.#second(life, asked));
    const answer = await this.#engine[name](asked);
    if (name === 'raise') this.#noteRaise();
    if (name === 'acquire' && answer.workerId !== undefined) {
      if (this.#owners.has(answer.workerId)) {
        this.count('takeover', undefined, answer.workerId);
      }
      // Restored from before it, another one who had the slot would find nothing wrong. Only an operator
      // can prevent that, who ends all holders before a restore.
      this.#backups = this.#backups.filter(([, owners]) => !owners.has(answer.workerId));
      this.#owners.set(answer.workerId, owner);
      life.acquired = owner;
    }
    if (name === 'release') {
      if (this.#unwanted.has(owner)) this.count('late slot given back');
      if (this.#owners.get(workerId) === by) this.#owners.delete(workerId);
    }
    return answer;
  }

  /** The fault: a process renews by a slot of its own what another one has acquired. */
  async #second(life, request) {
    if (life.acquired === request.owner) return {};
    if (life.second === undefined) {
      const owner = `${life.pid}`.padStart(32, '0');
      const { workerId } = await this.#engine.acquire({ ...request, owner, holder: {} });
      if (workerId !== undefined) life.second = { owner, workerId, confirmed: -1 };
    }
    return life.second ?? {};
  }

  #noteRaise() {
    if (this.#isRestored) this.count('restore noticed by a holder');
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
    const host = this.#any(this.hosts);
    const life = this.#random() < 0.5 ? host.renewer : this.#any(host.lives);
    // Losses half as often as the rest, since nothing is issued for long after each.
    // Without them a believed owner hurts sooner: a loss ends all holds.
    const isLossless = this.#random() < 0.5 || /owner check/.test(this.planted);
    const most = Object.keys(this.#faults).length - (isLossless ? LOSSES : 0);
    const fault = Object.keys(this.#faults)[this.#between(0, most)];
    const ms = this.#between(200, 2 * TTL);
    this.#backups.push(structuredClone([this.#records, this.#owners]));
    this.count(fault, life, `${ms} ms`);
    this.#faults[fault](host, ms, life);
    const pause = this.#between(100, 1000);
    if (this.now + pause < CALM) this.after(pause, () => this.#trouble());
  }

  #faults = {
    stop: (_, ms, life) => this.#stop(life, ms),
    'stop all': ({ lives }, ms) => lives.forEach((life) => void this.#stop(life, ms)),
    kill: (_, ms, life) => this.#kill(life, ms / 4),
    'kill all': ({ lives }, ms) => [...lives].forEach((life) => void this.#kill(life, ms / 4)),
    close: (host, ms, life) => {
      if (!life.kept || life.isStopped || life.isDead) return this.#kill(life, ms / 4);
      here.run(life, () => {
        life.kept.release().catch(() => {});
        life.kept.channel.close();
      });
      host.former.push(life);
      this.#replace(life, ms / 4);
    },
    'die at a step': (_, ms, life) => {
      const at = this.#any([...STEPS, ...MESSAGES]);
      life.fate = { at, how: this.#random() < 0.5 ? 'die before' : 'die after' };
      this.after(ms, () => life.isDead && this.#replace(life, 0));
    },
    'stop at a step': (_, ms, life) => {
      life.fate = { at: this.#any([...STEPS, ...MESSAGES]), how: 'stop before' };
      this.after(ms, () => life.isStopped && this.#resume(life));
    },
    unlink: (host) => host.unlinkAll(),
    freeze: (_, ms) => {
      this.#frozenUntil = Math.min(this.now + ms / 2, CALM);
    },
    'cut off': (host, ms) => {
      host.cutUntil = Math.min(this.now + ms, CALM);
    },
    'clock shift': (host) => {
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
    "store's clock jump": () => {
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

  #stop(life, ms) {
    life.stop();
    this.after(ms, () => life.isStopped && this.#resume(life));
  }

  #kill(life, ms) {
    life.isDead = true;
    life.host.forget(life);
    this.#replace(life, ms);
  }

  /** Another process starts in the place of one. */
  #replace(life, ms) {
    const { host } = life;
    this.after(ms, () => {
      const at = host.lives.indexOf(life);
      if (at === -1) return;
      host.lives[at] = this.#newLife(host);
      this.#start(host.lives[at]);
    });
  }

  #resume(life) {
    if (life.isDead) return;
    life.resume();
    // Before it hears of anything.
    this.#draw(life);
    // Of timers and answers that are due at once, either may come first.
    for (const event of life.waiting.splice(0)) this.#time.schedule(event, this.#random() * 5);
  }

  /** The last fault is over. */
  #calm() {
    this.after(LIMIT, () => {
      const back = this.#hostsBack.map(({ name }) => name);
      this.#failure = new Error(`after ${LIMIT} ms, IDs go on on hosts ${back} only`);
    });
    for (const host of this.hosts) {
      host.skew = this.#engineSkew;
      for (const life of [...host.lives, ...host.former]) {
        life.fate = undefined;
        if (life.isStopped) this.#resume(life);
      }
      for (const life of host.lives) if (life.isDead) this.#replace(life, 0);
    }
  }
}

module.exports = { Fleet, LIMIT };
