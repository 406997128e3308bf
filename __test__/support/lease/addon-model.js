'use strict';
// A model of the addon for simulations: what js/lease uses of it behaves as in src/binding, src/registry and
// src/pages/lease.rs. A host has pages and locks, a process has what it remembers, a channel is one
// instance's.
//
// A process may be told to die or to stop at a native call: `life.fate` is { at, how }. What a stopped one
// was about to write, it writes when it goes on.

/** So long that two who may not issue the same tick do, ms. */
const TICK = 100;

/** Native calls that a process may die or stop at. Others may come to all of these in between. */
const STEPS = ['raiseCeiling', 'noteRenewal', 'endPage'];

/** Its values are those of src/pages/lease.rs. */
const CONFLICT = { kind: 'page-lease', place: 'simulated page', pid: 1 };

/** The page of a slot. Its users are channels. */
class Page {
  renewals = 0;
  loss = null;
  users = new Set();

  constructor(host, { workerId, maxAhead }, { now, ...grant }) {
    const { namespace, owner, floor, ceiling, expires, ttl } = grant;
    Object.assign(this, {
      host,
      workerId,
      maxAhead,
      namespace,
      owner,
      floor,
      ceiling,
      expires,
      ttl,
    });
    this.high = -1;
    this.renewed = now;
  }

  get isNamed() {
    return this.host.pages.get(this.workerId) === this;
  }

  get hasEnded() {
    return this.loss !== null;
  }

  /** The highest tick that was issued, or may have been before this page. */
  get highest() {
    return Math.max(this.high, this.floor);
  }

  enter(channel) {
    this.users.add(channel);
    // What the process issued alone.
    this.floor = Math.max(this.floor, channel.life.highestOf(this.workerId));
  }

  draw(tick) {
    if (this.hasEnded || !this.isNamed || tick <= this.highest || tick > this.ceiling) return false;
    this.high = tick;
    return true;
  }

  /** @returns the highest tick, to the one that ends it */
  end(loss) {
    const isFirst = !this.hasEnded;
    if (isFirst || (this.loss === 'taken' && loss === 'reverted')) this.loss = loss;
    return isFirst ? this.highest : undefined;
  }

  /** @returns the highest tick, if nobody uses it any more, to the one that ends it */
  leave(channel, { isRelease, isPlanted }) {
    this.users.delete(channel);
    channel.life.note(this.workerId, this.high);
    // The fault: the one that closes it releases, and others go on.
    if (isPlanted && isRelease) return this.high;
    if (this.users.size > 0 || (!isRelease && !this.hasEnded)) return undefined;
    const last = this.end('released');
    if (this.isNamed) this.host.pages.delete(this.workerId);
    return last;
  }

  /** As native code answers it: what is not there has no key. */
  leasing() {
    const { workerId, owner, floor, ceiling, isNamed } = this;
    const { renewed, ttl, renewals, renewer, since } = this;
    const lease = {
      workerId,
      owner,
      floor,
      ceiling,
      isNamed,
      renewed,
      ttl,
      renewals,
      renewer,
      since,
    };
    for (const key of ['expires', 'loss']) if (this[key] != null) lease[key] = this[key];
    return lease;
  }
}

/** What an instance draws from: a page, or a window of its own. */
class Channel {
  #page;
  #window;
  #workerId;

  constructor(life) {
    this.life = life;
  }

  get workerId() {
    return this.#page?.workerId ?? this.#workerId;
  }

  get page() {
    return this.#page;
  }

  get #planted() {
    return this.life.fleet.planted;
  }

  /** Runs a native call, at which the process may die or stop. */
  #step(name, run) {
    const { life } = this;
    life.mustLive();
    const how = life.meet(name);
    if (how === 'die before') life.die();
    if (how === 'die after') {
      run();
      life.die();
    }
    if (life.isStopped) life.unwritten.push(run);
    else run();
  }

  /** One ID a tick, if any. */
  draw() {
    const tick = this.life.tick();
    if (this.#page === undefined && this.#window === undefined) return undefined;
    if (this.#page) return this.#page.draw(tick) ? this.#id(tick) : undefined;
    const { floor, ceiling } = this.#window;
    if (tick <= Math.max(floor, this.#high) || tick > ceiling) return undefined;
    this.life.note(this.#workerId, tick);
    return this.#id(tick);
  }

  #id(tick) {
    return `tick ${tick} of worker ID ${this.workerId}`;
  }

  get #high() {
    return this.life.highestOf(this.#workerId);
  }

  /** Draws from what the request names: a window, a new page, or one of the host's. */
  moveTo({ workerId, window, grant, join }) {
    this.life.mustLive();
    if (window) {
      this.#workerId = workerId;
      this.#window = { ...window, ...(this.#planted === 'floor ignored' ? { floor: -1 } : {}) };
      return { hasMoved: true };
    }
    const { host } = this.life;
    if (grant) {
      const page = host.leasePage(this, { workerId }, grant, this.#planted);
      return page === undefined ? { fault: CONFLICT, hasMoved: false } : this.#moved(page);
    }
    const { namespace, owner, except } = join;
    const isWanted = (one) => (owner ?? one) === one && !except.includes(one);
    const page = host.joinPage(this, namespace, isWanted, this.#planted);
    return page === undefined ? { hasMoved: false } : this.#moved(page);
  }

  nextCeiling(ttl) {
    this.wanted = Math.max(this.life.tick(ttl), this.#page?.high ?? this.#high);
    return this.wanted;
  }

  raiseCeiling(ceiling) {
    const confirmed = this.#planted === 'no cap' ? this.wanted : ceiling;
    const window = this.#page ?? this.#window ?? {};
    this.#step('raiseCeiling', () => {
      window.ceiling = Math.max(window.ceiling, confirmed);
    });
  }

  endWindow() {
    if (this.#page) return null;
    this.#window = { floor: -1, ceiling: -1 };
    return this.#high;
  }

  leasing() {
    return this.#page?.leasing();
  }

  confirm(owner, ceiling, now, expires, ttl) {
    const page = this.#page;
    // What is confirmed to an owner before is not this one's.
    if (page?.owner !== owner) return;
    this.raiseCeiling(ceiling);
    const { life } = this;
    this.#step('noteRenewal', () => {
      if (page.renewer !== life.pid) Object.assign(page, { renewer: life.pid, since: life.now() });
      page.renewals++;
      Object.assign(page, { renewed: now, expires, ttl });
    });
  }

  endPage(loss) {
    const page = this.#page;
    let last;
    this.#step('endPage', () => {
      last = page.end(loss);
    });
    return last;
  }

  #moved(page) {
    const before = this.#page;
    this.#page = page;
    if (before !== page) before?.leave(this, { isRelease: false });
    return { hasMoved: true };
  }

  leave() {
    this.life.mustLive();
    const isPlanted = this.#planted === 'release while others draw';
    const last = this.#page?.leave(this, { isRelease: true, isPlanted });
    if (!isPlanted || last === undefined) this.#page = undefined;
    return last;
  }

  close() {
    if (!this.life.isDead) this.#page?.leave(this, { isRelease: false });
    this.#page = undefined;
  }
}

/** What the processes of a host share. */
class HostMemory {
  /** By worker ID, which is their name. */
  pages = new Map();
  #locks = new Map();

  /** The page of a slot that was acquired; undefined if one of its node is in use. */
  leasePage(channel, request, grant, planted) {
    const there = this.pages.get(request.workerId);
    if (there && !there.hasEnded && there.users.size > 0) return undefined;
    if (channel.life.hasOther(request.workerId)) return undefined;
    const highest = there?.highest ?? -1;
    const floor = planted === 'floor ignored' ? -1 : Math.max(grant.floor, highest);
    const page = new Page(this, request, { ...grant, floor });
    Object.assign(page, { renewer: channel.life.pid, since: channel.life.now() });
    this.pages.set(request.workerId, page);
    page.enter(channel);
    return page;
  }

  /** The host's page of a namespace: one that is used rather than one that was left. */
  joinPage(channel, namespace, isWanted, planted) {
    const isTrusted = planted === 'a joiner trusts a lost page';
    const all = [...this.pages.values()].filter(
      (page) =>
        page.namespace === namespace &&
        isWanted(page.owner) &&
        (isTrusted || !page.hasEnded) &&
        !channel.life.hasOther(page.workerId, page),
    );
    const rank = ({ users, workerId }) => (users.size > 0 ? 0 : 1000) + workerId;
    const [page] = all.sort((a, b) => rank(a) - rank(b));
    if (isTrusted && page?.hasEnded) page.loss = null;
    page?.enter(channel);
    return page;
  }

  lock(namespace, life) {
    const holder = this.#locks.get(namespace);
    if (holder && !holder.isDead) return undefined;
    this.#locks.set(namespace, life);
    return () => {
      if (!life.isDead && this.#locks.get(namespace) === life) this.#locks.delete(namespace);
    };
  }

  /** As a cleaner does. */
  unlinkAll() {
    this.pages.clear();
  }

  /** A process has ended: its locks end, and its pages are left. */
  forget(life) {
    for (const page of life.pages) {
      for (const channel of page.users) if (channel.life === life) page.users.delete(channel);
    }
  }
}

/** The functions of js/native.js. */
function modelOfNative(here) {
  return {
    firstCeiling: (_, ttl) => here.getStore().tick(ttl),
    sharesHost: () => here.getStore().fleet.scope === 'host',
    lockLeases(_, namespace) {
      const life = here.getStore();
      life.mustLive();
      return life.host.lock(namespace, life);
    },
    open(request) {
      const channel = here.getStore().newChannel();
      const { fault, hasMoved } = channel.moveTo(request);
      return fault ?? (hasMoved ? channel : undefined);
    },
  };
}

/** A process, from its start to its end. */
class Life {
  /** What came while it was stopped, and what it was about to write. */
  waiting = [];
  unwritten = [];
  isStopped = false;
  isDead = false;
  fate;
  channels = [];
  /** By worker ID: a process never forgets what it issued. */
  #highest = new Map();

  constructor(fleet, host, pid) {
    Object.assign(this, { fleet, host, pid });
  }

  now() {
    return this.fleet.now + this.host.skew;
  }

  tick(ahead = 0) {
    return Math.floor((this.now() + ahead) / TICK);
  }

  highestOf(workerId) {
    return this.#highest.get(workerId) ?? -1;
  }

  note(workerId, tick) {
    this.#highest.set(workerId, Math.max(tick, this.highestOf(workerId)));
  }

  newChannel() {
    this.mustLive();
    const channel = new Channel(this);
    this.channels.push(channel);
    return channel;
  }

  get pages() {
    return this.channels.map(({ page }) => page).filter(Boolean);
  }

  /** Whether it has another page of that node, from which something may be issued. */
  hasOther(workerId, than) {
    return this.pages.some((page) => page !== than && page.workerId === workerId && !page.hasEnded);
  }

  /** Comes to a step. Returns how it dies there, if it does; it may stop instead. */
  meet(at) {
    if (this.fate?.at !== at) return undefined;
    const { how } = this.fate;
    this.fate = undefined;
    this.fleet.count(`${how}: ${at}`, this);
    if (how.startsWith('die')) return how;
    this.stop();
    return undefined;
  }

  /** A dead process does nothing more. */
  mustLive() {
    if (this.isDead) throw new Error('the process is dead');
  }

  die() {
    this.isDead = true;
    this.host.forget(this);
    this.mustLive();
  }

  stop() {
    this.isStopped = true;
  }

  /** What it was about to write, it writes. */
  resume() {
    this.isStopped = false;
    for (const write of this.unwritten.splice(0)) if (!this.isDead) write();
  }
}

module.exports = { HostMemory, Life, STEPS, TICK, modelOfNative };
