'use strict';
// A lease from a register: makes the calls that the protocol in Rust asks for (src/authority/lease), keeps the time for it,
// and reports what becomes of the slot. No ID is above the ceiling that the store has confirmed, even if this code fails
// or is late.

const { moveChannel, openChannel, requestOf } = require('../channel.js');
const { configError, describe, unwrap } = require('../errors.js');
const native = require('../native.js');
const { sanitize } = require('../secrets.js');
const {
  clearTimeout,
  hostMonotonic,
  monotonic,
  pause,
  setTimeout,
  unixNow,
} = require('../time.js');
const { warnOfFloor, warnOfNamespaceLoss, warnOfNewSlot } = require('../warnings.js');
const atExit = require('./release-at-exit.js');
const { StoreCalls } = require('./calls.js');
const {
  changingError,
  clockSkewError,
  limitsOf,
  refusalOf,
  unsettledError,
} = require('./refusals.js');
const timing = require('./timing.js');

/** Owners of the slots that this thread is renewing, and of the lost ones that it has warned of. */
const renewing = new Set();
const warned = new Set();

/**
 * How often one search or renewal may create the namespace, and write any one record. Others may change a bucket 128 times: twice
 * for each of its slots.
 */
const MOST_CREATIONS = 5;
const MOST_WRITES = 150;

const FAILED = { kind: 'failed', records: [], called: 0 };

const clamp = (ms, [least, most]) => Math.min(Math.max(ms, least), most);

class StoreLease {
  #register;
  #settings;
  #calls;
  #machine;
  #isShared;
  #state = 'held';
  /** The owner of the slot from which this process draws, and what its page said last. */
  #owner;
  #slot;
  /** The kind of loss, and the slot before. */
  #lost;
  #before;
  #failure;
  /** Of the last calls that belong together: why one failed, the writes by key, whether one was a slot's, and their number. */
  #callFailure;
  #writes;
  #hasWrittenSlot;
  /** Whether the server was asked to describe its run, for this slot. */
  #isDescribed = false;
  #count;
  #timer;
  /** The steps under way. */
  #steps;
  /** A draw needs a higher ceiling. */
  #isRenewalWanted = false;
  /** Whether to look for a lower slot of the host: once after each report. */
  #mayMerge = false;
  /** `renewals` after the last renewal by this process, and how much later than its last renewer it renews, in ttls. */
  #ownRenewals = -1;
  #takeoverDelay;
  /** Owner and renewals of the slot in the last published report. */
  #published = {};
  #released;
  /** When a release gives up, by `monotonic`. */
  #releaseBy;
  #onChange = () => {};
  channel;

  constructor(register, settings) {
    const { leasing } = settings;
    const [least, most] = timing.TAKEOVER_DELAY;
    this.#takeoverDelay = least + Math.random() * (most - least);
    this.#register = register;
    this.#settings = settings;
    this.#calls = new StoreCalls(register, leasing.callTimeout);
    const own = { ...settings, scope: this.#scope() };
    this.#machine = unwrap(
      native.openLease(requestOf(own, { isLeased: true }), {
        ...limitsOf(settings),
        claim: settings.workerId,
        address: leasing.address,
        patience: timing.MAX_WAIT_CALLS * leasing.callTimeout,
        host: leasing.host,
        started: leasing.started,
        mayForget: register.mayForget === true,
      }),
    );
    this.#isShared = this.#machine.isOfHost();
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
    } catch (failure) {
      lease.channel?.close();
      await lease.#free();
      throw failure;
    }
    lease.#schedule();
    atExit.register(lease);
    await lease.#waitForFloor();
    lease.#onChange = onChange;
    lease.#publish();
    return lease;
  }

  get workerId() {
    return this.#slot.workerId;
  }

  /** The public `lease`: a tick is shown as its last ms, Unix ms. */
  report() {
    const { datacenterId, leasing } = this.#settings;
    const { owner, workerId, floor, expires, renewals, renewer, since, ceiling, isNamed, loss } =
      this.#read();
    const { skew } = this.#calls;
    const end = this.#tickEnd(Math.max(floor, ceiling));
    const hasPassed = this.#state !== 'released' && unixNow() > end;
    // As the page is now, before the next check.
    const ended =
      this.#state === 'held' && (loss === 'restored' ? loss : isNamed ? undefined : 'page');
    const state = ended ? 'lost' : this.#state;
    return {
      store: sanitize(this.#register.name),
      scope: this.#isShared ? 'host' : 'process',
      slot: { datacenterId, workerId },
      owner,
      floor: floor < 0 ? null : this.#tickEnd(floor),
      ceiling: end,
      expires: this.#register.scope === 'process' ? null : (expires ?? null),
      renewals,
      ...(this.#isShared ? { renewer: { pid: renewer, since } } : {}),
      state: hasPassed && state !== 'lost' ? 'expired' : state,
      ...(state === 'lost' ? { lost: ended || this.#lost } : {}),
      ...(Math.abs(skew) > leasing.maxClockSkew ? { clockSkew: Math.round(skew) } : {}),
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
    // At the pace of retries: a clock above the cap wants a renewal at each draw.
    const { loss, renewed } = this.#read();
    const least = timing.RETRY_MS[0];
    this.#schedule(loss === undefined ? clamp(least - (hostMonotonic() - renewed), [0, least]) : 0);
  }

  /** Moves to the lower slot at the next check, if the host has two. */
  wantMerge() {
    this.#mayMerge = this.#isShared;
  }

  async #release() {
    clearTimeout(this.#timer);
    this.#read();
    this.#state = 'released';
    this.channel.close();
    this.#publish();
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
    const { name, scope: only } = this.#register;
    if (only !== 'process') return scope;
    if (scope !== 'host') return only;
    throw configError(`${name} gives each process its own worker ID: leave out scope 'host'`);
  }

  /** Wants the worker ID that the store assigns, if it assigns any. */
  async #assign() {
    if (typeof this.#register.assign !== 'function') return;
    const { layout, datacenterId, workerId, leasing } = this.#settings;
    if (workerId !== undefined) {
      throw configError(
        `${this.#register.name} assigns a new workerId at each start: leave out workerId`,
      );
    }
    const { ttl, host, started } = leasing;
    const request = { datacenterId, workerIds: 2 ** layout.workerBits, ttl, host, started };
    this.#machine.claim(await this.#calls.assign(this.#register, request));
  }

  /** Notes how the server describes its own run. */
  async #describeRun() {
    this.#isDescribed = true;
    const run = await this.#calls.describeRun();
    if (run !== undefined) this.#machine.noteRun(run);
  }

  /** Makes calls until the machine wants none. Returns its last command. */
  async #perform(first) {
    this.#callFailure = undefined;
    this.#writes = new Map();
    this.#hasWrittenSlot = false;
    this.#count = 0;
    let command = first;
    while (command.kind === 'call') {
      let reply = FAILED;
      this.#count++;
      try {
        this.#noteWrite(command);
        // Before the call: while that is under way, others renew the slot that it reads.
        if (!this.#isDescribed && this.#machine.wantsRun()) await this.#describeRun();
        const made = await this.#calls.make(command, this.#callTime());
        // Before this process takes a slot.
        if (this.channel === undefined && this.#releaseBy === undefined) this.#checkClock();
        reply = made;
      } catch (failure) {
        this.#callFailure = failure;
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

  /** Refuses to write a record again and again: the store, or another program, does not keep what is written. */
  #noteWrite({ call, key, before }) {
    if (call !== 'write') return;
    this.#hasWrittenSlot ||= key !== 'namespace';
    const isCreation = key === 'namespace' && before === undefined;
    const name = isCreation ? 'create' : key;
    const count = (this.#writes.get(name) ?? 0) + 1;
    this.#writes.set(name, count);
    if (count <= (isCreation ? MOST_CREATIONS : MOST_WRITES)) return;
    throw changingError(key, this.#register.name);
  }

  /** Goes on until the machine has a slot. While none is free, tries until the deadline. */
  async #open(deadline) {
    const { ttl, callTimeout } = this.#settings.leasing;
    const unprovenUntil = monotonic() + ttl;
    const retryUntil = Math.max(deadline, unprovenUntil) + callTimeout;
    for (;;) {
      const command = await this.#perform(this.#machine.go(hostMonotonic()));
      switch (command.kind) {
        case 'held':
          this.#take();
          return;
        case 'join':
          await pause(timing.JOIN_MS);
          break;
        case 'retry':
        case 'lost':
          if (this.#callFailure !== undefined) throw this.#callFailure;
          if (monotonic() >= retryUntil) throw unsettledError(this.#register.name, ttl);
          await pause(timing.POLL_MS);
          break;
        default: {
          const until = command.kind === 'unproven' ? unprovenUntil : deadline;
          const mayPass = command.kind === 'unproven' || command.kind === 'no-slot';
          if (!mayPass || monotonic() >= until)
            throw refusalOf(command, this.#register.name, this.#settings);
          await pause(Math.min(this.#retryPause(timing.POLL_MS), until - monotonic()));
        }
      }
    }
  }

  /** Refuses a clock that differs from the store's by more than maxClockSkew. */
  #checkClock() {
    const { maxClockSkew } = this.#settings.leasing;
    const { skew } = this.#calls;
    if (Math.abs(skew) <= maxClockSkew) return;
    throw clockSkewError(skew, this.#register.name, maxClockSkew);
  }

  /** Draws from the slot that the machine has, unless it does so already. */
  #take() {
    const { owner, workerId } = this.#machine.state();
    if (owner !== this.#owner) {
      const settings = { ...this.#settings, workerId };
      const { inThread } = this.#settings.leasing;
      const basis = { isLeased: true, inThread, lease: this.#machine };
      if (this.channel === undefined) this.channel = openChannel(settings, basis);
      else moveChannel(this.channel, settings, basis);
      this.#owner = owner;
      this.#ownRenewals = -1;
    }
    this.#state = 'held';
    const { renewals, renewer } = this.#read();
    if (!this.#hasWrittenSlot || renewer !== process.pid) return;
    this.#ownRenewals = renewals;
    this.#show();
  }

  /** Shows people who holds the slot, or that nobody does any more. */
  #show(isHeld = true) {
    const { datacenterId, leasing } = this.#settings;
    const { host, address, started } = leasing;
    const holder = { host, address, pid: process.pid, started: new Date(started).toISOString() };
    const slot = { datacenterId, workerId: this.#slot.workerId };
    this.#calls.show(slot, isHeld ? holder : undefined);
  }

  /** Copies what the page says. Once the slot is left, it stays as it was. */
  #read() {
    const state = this.#machine.state();
    if (state && state.owner === this.#owner) this.#slot = state;
    return this.#slot;
  }

  #tickEnd(tick) {
    return unwrap(native.tickEnd(this.#settings.layout, tick));
  }

  #schedule(ms = this.#untilCheck()) {
    clearTimeout(this.#timer);
    if (this.#released !== undefined) return;
    this.#timer = setTimeout(() => this.#check(), ms);
    // The timer does not keep the event loop alive.
    this.#timer.unref();
  }

  #untilCheck() {
    const { ttl } = this.#settings.leasing;
    const due = Math.max(ttl * timing.RENEW_AFTER - (hostMonotonic() - this.#slot.renewed), 0);
    if (!this.#isShared) return due;
    return Math.min(due > 0 ? due : timing.CHECK_MS[0], clamp(ttl / 12, timing.CHECK_MS));
  }

  /** Whether this process should renew. It gives the process that renewed last a head start. */
  #isDue() {
    const { renewed, renewals, ttl, isAsked } = this.#slot;
    const elapsed = hostMonotonic() - renewed;
    if (isAsked) return true;
    if (this.#isRenewalWanted && elapsed >= timing.RETRY_MS[0]) return true;
    // Processes of one host may have different ttls. The hold lasts for the one confirmed last.
    const least = Math.min(this.#settings.leasing.ttl, ttl);
    const delay = this.#ownRenewals === renewals ? 0 : this.#takeoverDelay * least;
    // In a Linux time namespace the monotonic clock differs from the other processes'.
    return elapsed < 0 || elapsed >= least * timing.RENEW_AFTER + delay;
  }

  /** Checks the slot and schedules the next check. It never throws. */
  async #check() {
    if (this.#steps !== undefined) return;
    this.#steps = this.#begin().catch(() => timing.RETRY_MS[1]);
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
    const isLost = this.#state === 'lost';
    const { owner, loss, isNamed } = this.#read();
    const mustGo = isLost || loss !== undefined || !isNamed;
    const isDue = mustGo || this.#isDue();
    if (!isDue) {
      // Another process of the host has renewed it.
      this.#recover();
      if (!this.#mayMerge) return undefined;
    }
    // Another instance of this thread is renewing it.
    if (!mustGo && renewing.has(owner)) return undefined;
    renewing.add(owner);
    try {
      let command = await this.#perform(this.#next(mustGo, isDue));
      if (!isDue) this.#mayMerge = command.kind === 'retry' && this.#callFailure === undefined;
      if (command.kind === 'moved') {
        this.#show(false);
        this.#take();
        command = await this.#perform(this.#machine.go(hostMonotonic()));
      }
      if (command.kind === 'held' && this.#isBehind()) {
        command = await this.#perform(this.#machine.renew(hostMonotonic()));
      }
      while (command.kind === 'lost' && this.#state !== 'released') {
        this.#lose(command.lost);
        await this.#assign();
        command = await this.#perform(this.#machine.go(hostMonotonic()));
      }
      return this.#conclude(command);
    } catch (failure) {
      return this.#fail(failure);
    } finally {
      renewing.delete(owner);
    }
  }

  /** The first command of a check: to take a slot, to renew it, or to move to the lower one of two. */
  #next(mustGo, isDue) {
    const now = hostMonotonic();
    if (mustGo) return this.#machine.go(now);
    if (isDue) return this.#machine.renew(now);
    return this.#machine.merge(now);
  }

  /**
   * Whether the clock has passed the ceiling that was just confirmed. After a suspend, only the reply shows how far the store's
   * clock has gone on.
   */
  #isBehind() {
    if (this.#state === 'released') return false;
    const { maxClockSkew } = this.#settings.leasing;
    const isRight = Math.abs(this.#calls.skew) <= maxClockSkew;
    return isRight && unixNow() > this.#tickEnd(this.#read().ceiling);
  }

  /** Notes that the slot is held and renewed. */
  #recover() {
    const wasFailing = this.#failure !== undefined;
    // This server may be another one.
    if (wasFailing) this.#describeRun();
    this.#failure = undefined;
    this.#state = 'held';
    const { owner, renewals } = this.#slot;
    if (wasFailing || owner !== this.#published.owner || renewals !== this.#published.renewals) {
      this.#publish();
    }
  }

  #conclude(command) {
    if (this.#state === 'released') return undefined;
    switch (command.kind) {
      case 'held':
      case 'wait': {
        const wasLost = this.#state === 'lost';
        this.#take();
        if (wasLost) this.#warnOnce(warnOfNewSlot, { newWorkerId: this.#slot.workerId });
        this.#recover();
        return undefined;
      }
      case 'join':
        return timing.JOIN_MS;
      case 'retry':
        if (this.#callFailure === undefined) return timing.POLL_MS;
        return this.#fail(this.#callFailure);
      default:
        return this.#fail(refusalOf(command, this.#register.name, this.#settings));
    }
  }

  #fail(failure) {
    if (this.#state === 'released') return undefined;
    this.#failure = failure;
    if (this.#state === 'held') this.#state = 'failing';
    this.#publish();
    return this.#retryPause(this.#settings.leasing.ttl / 10);
  }

  /** The pause before the next try: at least `least`, and longer after many calls, as after a search of many buckets. */
  #retryPause(least) {
    return clamp(Math.max(least, this.#count * timing.CALL_MS), timing.RETRY_MS);
  }

  #lose(loss) {
    if (this.#state === 'released') return;
    // A slot in use is 'released' only because its page was deleted.
    this.#lost = loss === 'released' ? 'page' : loss;
    this.#before = this.#slot;
    this.#isDescribed = false;
    this.#state = 'lost';
    this.#show(false);
    if (this.#lost === 'missing' || this.#lost === 'reverted') {
      this.#warnOnce(warnOfNamespaceLoss, { reach: this.#machine.namespace().reach });
    }
    this.#publish();
  }

  /** Warns once of the loss of a slot. */
  #warnOnce(warnOf, more) {
    const { owner, workerId } = this.#before;
    if (warned.has(owner)) return;
    warned.add(owner);
    warnOf(this.#register, { workerId, lost: this.#lost, isShared: this.#isShared, ...more });
  }

  #publish() {
    const { owner, renewals } = this.#slot;
    this.#published = { owner, renewals };
    // The thread that draws has to move, too: only once it listens.
    if (!this.#settings.leasing.inThread) this.wantMerge();
    this.#onChange(this.report());
  }

  /**
   * Waits until the clock has passed a slot's floor, if the floor is no further than a holder that died just now,
   * or a new namespace, can leave it. nextId() refuses a floor further ahead.
   */
  async #waitForFloor() {
    const { callTimeout, maxClockSkew } = this.#settings.leasing;
    const namespace = this.#machine.namespace();
    const left = () => this.#tickEnd(this.#read().floor) + 1 - unixNow();
    // The store's clock is known to within the length of a call.
    const longest = namespace.reach + maxClockSkew + callTimeout;
    if (left() > longest) return;
    if (left() > timing.LONG_WAIT_MS) {
      const { workerId, floor } = this.#slot;
      const isNew = floor === namespace.floor;
      warnOfFloor(this.#register, { workerId, isNew, ms: Math.round(left()) });
    }
    const deadline = monotonic() + longest;
    while (left() > 0 && monotonic() < deadline && this.#released === undefined) {
      await pause(Math.min(left(), timing.POLL_MS));
    }
  }
}

module.exports = { StoreLease };
