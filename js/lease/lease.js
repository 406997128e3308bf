'use strict';
// A lease from a register: makes the calls that the protocol in Rust asks for (src/lease), keeps the time for it,
// and reports what becomes of the slot. No ID is above the ceiling that the store has confirmed, even if this code fails
// or is late.

const { moveChannel, openChannel, requestOf } = require('../runtime/channel.js');
const { configError, describe, faultError, unwrap } = require('../messages/errors.js');
const { ownOf } = require('../ids/properties.js');
const native = require('../runtime/native.js');
const { sanitize } = require('../messages/secrets.js');
const { connect } = require('../stores/connect.js');
const {
  clearTimeout,
  hostMonotonic,
  monotonic,
  pause,
  setTimeout,
  unixNow,
} = require('../runtime/time.js');
const {
  warnOfFloor,
  warnOfNamespace,
  warnOfNamespaceLoss,
  warnOfNewSlot,
} = require('../messages/warnings.js');
const atExit = require('./release-at-exit.js');
const { StoreCalls, closeRegister } = require('./calls.js');
const { checkedRegister } = require('./own-store.js');
const timing = require('./timing.js');

/** Owners of the lost slots that this thread has warned of. */
const warned = new Set();

/** Of a call without a reply. */
const FAILED = Object.freeze({ __proto__: null, called: 0 });

class StoreLease {
  #register;
  #settings;
  #calls;
  #machine;
  #state = 'held';
  /** The owner of the slot from which this process draws, and what its page said last. */
  #owner;
  #slot;
  /** The kind of loss, and the slot before. */
  #lost;
  #before;
  #failure;
  /** Why a call of the present try failed. */
  #callFailure;
  #timer;
  /** The steps under way. */
  #steps;
  /** A draw needs a higher ceiling. */
  #isRenewalWanted = false;
  #released;
  /** When a release gives up, by `monotonic`. */
  #releaseBy;
  #onChange = () => {};
  /** Whether the store has assigned the worker ID that the machine wants. */
  #isAssigned = false;
  /** Owner and renewals of the slot in the last report. */
  #reported;
  channel;
  /** Native leases have a method of that name. An own property: somebody may have put another on Object.prototype. */
  publish;

  constructor(register, settings) {
    const { leasing } = settings;
    this.#register = checkedRegister(register);
    this.#settings = settings;
    this.#calls = new StoreCalls(this.#register, leasing.callTimeout);
    const own = { __proto__: null, ...settings, scope: this.#scope() };
    this.#machine = unwrap(
      native.openLease(requestOf(own, { isLeased: true }), {
        __proto__: null,
        ...leasing,
        store: this.#register.name,
        maxAhead: settings.maxAhead ?? 0,
        claim: settings.workerId,
        patience: timing.MAX_WAIT_CALLS * leasing.callTimeout,
        mayForget: this.#register.mayForget,
      }),
    );
  }

  /**
   * Takes a slot or joins the host's, and opens its channel.
   * @param onChange receives a report once there is a slot, and after each change
   */
  static async take(register, settings, onChange = () => {}) {
    const lease = new StoreLease(register, settings);
    try {
      await lease.#assign();
      await lease.#open(monotonic() + settings.leasing.wait);
      lease.#schedule();
      atExit.register(lease);
      await lease.#warnOfNamespace();
      await lease.#waitForFloor();
      lease.#onChange = onChange;
      lease.#publish();
      return lease;
    } catch (failure) {
      // Without it, the slot would be held and renewed for a caller who has none.
      lease.#released ??= lease.#giveUp();
      await lease.#released;
      throw failure;
    }
  }

  /** Frees the slot, if there is one, of a lease that was not taken. */
  async #giveUp() {
    clearTimeout(this.#timer);
    this.#state = 'released';
    try {
      this.channel?.close();
      await this.#free();
    } finally {
      atExit.unregister(this);
    }
  }

  get workerId() {
    return this.#slot.slot.workerId;
  }

  /** The public `lease`. */
  report() {
    // As the page is now, before the next check.
    const { ended, ...slot } = ownOf(this.#read());
    const lost = this.#state === 'held' ? ended : this.#state === 'lost' ? this.#lost : undefined;
    const hasPassed = this.#state !== 'released' && unixNow() > slot.ceiling;
    const { skew } = this.#calls;
    return {
      store: sanitize(this.#register.name),
      ...slot,
      ...(this.#register.scope === 'process' ? { expires: null } : {}),
      state: lost === undefined ? (hasPassed ? 'expired' : this.#state) : 'lost',
      ...(lost === undefined ? {} : { lost }),
      ...(Math.abs(skew) > this.#settings.leasing.maxClockSkew
        ? { clockSkew: Math.round(skew) }
        : {}),
      ...(this.#failure === undefined ? {} : { failure: describe(this.#failure) }),
    };
  }

  /** Stops IDs and releases the slot, if no other process of the host uses it. */
  release() {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** Renews early, for a draw above the ceiling. A suspended machine's timers may have been late. */
  wantRenewal() {
    if (this.#steps !== undefined || this.#isRenewalWanted || this.#state !== 'held') return;
    this.#isRenewalWanted = true;
    this.#schedule();
  }

  async #release() {
    clearTimeout(this.#timer);
    this.#read();
    this.#state = 'released';
    try {
      this.channel.close();
      this.#publish();
    } finally {
      await this.#end();
    }
  }

  async #end() {
    try {
      await this.#free();
    } finally {
      await this.#calls.close();
      // Last, since a process that ends waits for all registered leases.
      atExit.unregister(this);
    }
  }

  /** Frees the slot in the store, or gives that up after a time: then it expires. */
  async #free() {
    this.#releaseBy = monotonic() + timing.RELEASE_MS;
    // Without a call under way, this ends the page at once.
    let command = this.#machine.close(hostMonotonic());
    // A call that is abandoned takes its connection with it, and the release needs that: only for a call that it waits for.
    if (this.#steps !== undefined) this.#calls.abandon();
    await this.#steps;
    if (command.kind === 'wait') command = this.#machine.go(hostMonotonic());
    await this.#perform(command);
    // What nobody waits for.
    this.#calls.abandon();
  }

  /** A store that gives each process its own worker ID has no slots that processes share. */
  #scope() {
    const { scope } = this.#settings;
    const { name } = this.#register;
    const only = this.#register.scope;
    if (only !== 'process') return scope;
    if (scope !== 'host') return only;
    throw configError(`${name} gives each process its own worker ID: leave out scope 'host'`);
  }

  /** Wants the worker ID that the store assigns, if it assigns any. */
  async #assign() {
    if (this.#isAssigned || this.#register.assign === undefined) return;
    const { layout, datacenterId, workerId, leasing } = this.#settings;
    if (workerId !== undefined) {
      throw configError(
        `${this.#register.name} assigns a new workerId at each start: leave out workerId`,
      );
    }
    const { ttl, host, started } = leasing;
    const workerIds = 2 ** layout.workerBits;
    const request = { layout, datacenterId, workerIds, ttl, host, started };
    this.#machine.claim(await this.#calls.assign(this.#register, request));
    this.#isAssigned = true;
  }

  /** Makes calls until the machine wants none. Returns its last command. */
  async #perform(first) {
    this.#callFailure = undefined;
    let command = first;
    while (command.kind === 'call') {
      let reply = FAILED;
      try {
        const made = await this.#calls.make(command, this.#callTime());
        // Before this process takes a slot.
        if (this.channel === undefined && this.#releaseBy === undefined) this.#checkClock();
        reply = made;
      } catch (failure) {
        if (command.call !== 'describeRun') this.#callFailure = failure;
      }
      command = this.#machine.reply(reply, hostMonotonic());
    }
    return command;
  }

  /** How long a call may take, ms. */
  #callTime() {
    const { callTimeout } = this.#settings.leasing;
    if (this.#releaseBy === undefined) return callTimeout;
    const left = this.#releaseBy - monotonic();
    if (left <= 0) throw new Error('the release took too long');
    return Math.min(callTimeout, left);
  }

  /** Goes on until the machine has a slot. While none is free, tries until the deadline. */
  async #open(deadline) {
    const { ttl, callTimeout } = this.#settings.leasing;
    const proof = monotonic() + ttl;
    const records = Math.max(deadline, proof) + callTimeout;
    const deadlines = {
      __proto__: null,
      join: Infinity,
      retry: records,
      lost: records,
      slot: deadline,
      proof,
    };
    for (;;) {
      const command = await this.#perform(this.#machine.go(hostMonotonic()));
      const { kind, until = kind, ms, fault } = ownOf(command);
      // 'wait': another process of the host has just renewed the slot.
      if (kind === 'held' || kind === 'wait') return this.#take(command);
      if (kind !== 'join' && this.#callFailure !== undefined) throw this.#callFailure;
      const left = (deadlines[until] ?? 0) - monotonic();
      if (left <= 0) throw faultError(fault);
      await pause(Math.min(ms, left));
    }
  }

  /** Refuses a clock that differs from the store's by more than maxClockSkew. */
  #checkClock() {
    const { maxClockSkew } = this.#settings.leasing;
    const { skew } = this.#calls;
    if (Math.abs(skew) <= maxClockSkew) return;
    const store = this.#register.name;
    throw faultError({ kind: 'clock-skew', skew, store, most: maxClockSkew });
  }

  /** Draws from the slot that the machine has, unless it does so already. */
  #take(command) {
    const { isOwn } = ownOf(command);
    const {
      owner,
      slot: { workerId },
    } = this.#machine.state();
    if (owner !== this.#owner) {
      const settings = { __proto__: null, ...this.#settings, workerId };
      const authority = { isLeased: true, lease: this.#machine };
      if (this.channel === undefined) this.channel = openChannel(settings, authority);
      else moveChannel(this.channel, settings, authority);
      this.#owner = owner;
    }
    this.#state = 'held';
    this.#read();
    if (isOwn) this.#show();
  }

  /** Shows people who holds the slot, or that nobody does any more. */
  #show(isHeld = true) {
    const { host, address, started } = this.#settings.leasing;
    const holder = { host, address, pid: process.pid, started: new Date(started).toISOString() };
    this.#calls.show(this.#slot.slot, isHeld ? holder : undefined);
  }

  /** Copies what the page says. Once the slot is left, it stays as it was. */
  #read() {
    const state = this.#machine.state();
    if (state && state.owner === this.#owner) this.#slot = state;
    return this.#slot;
  }

  /** How long until the next check, ms. A failure here would end the process, from a timer: the check meets it again. */
  #due() {
    try {
      return this.#machine.due(hostMonotonic(), this.#isRenewalWanted);
    } catch {
      return timing.POLL_MS;
    }
  }

  #schedule(ms = this.#due()) {
    clearTimeout(this.#timer);
    if (this.#released !== undefined) return;
    this.#timer = setTimeout(() => this.#check(), ms);
    // The timer does not keep the event loop alive.
    this.#timer.unref();
  }

  /** Checks the slot and schedules the next check. It never throws. */
  async #check() {
    if (this.#steps !== undefined) return;
    this.#steps = this.#begin().catch(() => timing.POLL_MS);
    const ms = await this.#steps;
    this.#steps = undefined;
    this.#isRenewalWanted = false;
    this.#schedule(ms);
  }

  /** Begins the check once it counts as under way: a register may close the lease within a call. */
  async #begin() {
    await undefined;
    return this.#checkSlot();
  }

  /** Renews the slot if that is due, and takes another if it was lost. Returns when to check again, if that is known. */
  async #checkSlot() {
    try {
      this.#read();
      const isDue = this.#machine.due(hostMonotonic(), this.#isRenewalWanted) <= 0;
      if (!isDue) {
        // Another process of the host has renewed it.
        this.#take({});
        this.#recover();
      }
      // A number that it has lost may be another process's by now: none is taken before there is a new one.
      await this.#assign();
      const now = hostMonotonic();
      const command = await this.#perform(isDue ? this.#machine.go(now) : this.#machine.merge(now));
      // A merge that waits: the host has one slot.
      if (!isDue && command.kind === 'wait') return undefined;
      return await this.#conclude(command);
    } catch (failure) {
      return this.#fail(failure);
    }
  }

  /** Notes that the slot is held and renewed. */
  #recover() {
    const isNews = this.#failure !== undefined || this.#reported !== this.#renewal();
    this.#failure = undefined;
    this.#state = 'held';
    if (isNews) this.#publish();
  }

  #renewal() {
    return `${this.#slot.owner} ${this.#slot.renewals}`;
  }

  async #conclude(command) {
    if (this.#state === 'released') return undefined;
    const { kind, ms, fault } = ownOf(command);
    if (kind === 'held' || kind === 'wait') {
      const wasLost = this.#state === 'lost';
      this.#take(command);
      if (wasLost) this.#warnOnce(warnOfNewSlot, { newWorkerId: this.workerId });
      this.#recover();
      // Others of the host renew it.
      return kind === 'wait' ? timing.POLL_MS : undefined;
    }
    if (kind === 'moved') {
      this.#show(false);
      this.#take(command);
      return 0;
    }
    if (kind === 'lost') {
      this.#lose(command.lost);
      return 0;
    }
    // A record has changed, or another process of the host takes a slot.
    if (kind === 'join' || (kind === 'retry' && this.#callFailure === undefined)) return ms;
    return this.#fail(this.#callFailure ?? faultError(fault), ms);
  }

  #fail(failure, ms = timing.POLL_MS) {
    if (this.#state === 'released') return undefined;
    this.#failure = failure;
    if (this.#state === 'held') this.#state = 'failing';
    this.#publish();
    return ms;
  }

  #lose(loss) {
    if (this.#state === 'released') return;
    this.#lost = loss;
    this.#before = this.#slot;
    this.#isAssigned = false;
    this.#state = 'lost';
    this.#show(false);
    if (this.#lost === 'missing' || this.#lost === 'reverted') {
      this.#warnOnce(warnOfNamespaceLoss, { reach: this.#machine.namespace().reach });
    }
    this.#publish();
  }

  /** Warns once of the loss of a slot. */
  #warnOnce(warnOf, more) {
    const { owner, slot } = this.#before;
    if (warned.has(owner)) return;
    warned.add(owner);
    const { workerId } = slot;
    warnOf(this.#register, {
      workerId,
      lost: this.#lost,
      isShared: ownOf(slot).scope === 'host',
      ...more,
    });
  }

  #publish() {
    this.#reported = this.#renewal();
    this.#onChange(this.report());
  }

  /** Warns of a namespace that this process has created beside others: its name may be misspelt. */
  async #warnOfNamespace() {
    if (!this.#calls.hasCreated) return;
    const others = await this.#calls.otherNamespaces();
    const schemas = (await this.#calls.otherSchemas()).map((name) => `schema ${name}`);
    others.push(...schemas);
    if (others.length > 0) warnOfNamespace(this.#register, others);
  }

  /**
   * Waits until the clock has passed a slot's floor, if the floor is no further than a holder that died just now,
   * or a new namespace, can leave it. nextId() refuses a floor further ahead.
   */
  async #waitForFloor() {
    const { callTimeout, maxClockSkew } = this.#settings.leasing;
    const namespace = this.#machine.namespace();
    const { maxAhead = 0, layout } = this.#settings;
    // In whole ticks.
    const ahead = maxAhead - (maxAhead % layout.tickMs);
    const left = () => (this.#read().floor ?? -Infinity) + 1 - ahead - unixNow();
    // The store's clock is known to within the length of a call.
    const longest = namespace.reach + maxClockSkew + callTimeout;
    if (left() > longest) return;
    if (left() > timing.LONG_WAIT_MS) {
      const isNew = this.#slot.floor === namespace.floor;
      warnOfFloor(this.#register, { workerId: this.workerId, isNew, ms: Math.round(left()) });
    }
    const deadline = monotonic() + longest;
    while (left() > 0 && monotonic() < deadline && this.#released === undefined) {
      await pause(Math.min(left(), timing.POLL_MS));
    }
  }
}

/** Takes a lease by a connection of its own, which ends with it. */
async function takeByUrl(url, settings, onChange) {
  const store = await connect(url);
  try {
    return await StoreLease.take(store, settings, onChange);
  } catch (failure) {
    await closeRegister(store);
    throw failure;
  }
}

module.exports = { StoreLease, takeByUrl };
