'use strict';
// A lease from a register. The driver in Rust decides (src/lease), and an executor does what it wants: this code opens the channel,
// and publishes reports. No ID is above the ceiling that the store has confirmed, even if this code fails or is late.

const { moveChannel, openChannel, requestOf } = require('../runtime/channel.js');
const { configError, describe, faultError, unwrap } = require('../messages/errors.js');
const { ownOf } = require('../ids/properties.js');
const native = require('../runtime/native.js');
const { sanitize } = require('../messages/secrets.js');
const { connect } = require('../stores/connect.js');
const { hostMonotonic, monotonic, pause, unixNow } = require('../runtime/time.js');
const { warnOfFloor, warnOfNamespace } = require('../messages/warnings.js');
const atExit = require('./release-at-exit.js');
const { StoreCalls, closeRegister } = require('./calls.js');
const { Executor } = require('./executor.js');
const { checkedRegister } = require('./own-store.js');
const { Losses, leaseInfo } = require('./report.js');
const timing = require('./timing.js');

/**
 * @import {
 *   Channel, Fault, Lease, LeaseInfo, LeaseReport, Loss, PageLease, StoreSettings,
 * } from '../types.js'
 */

/** Receives a report once there is a slot, and after each change. @typedef {(report: LeaseInfo) => void} OnChange */

/** @implements {Lease} */
class StoreLease {
  #register;
  #settings;
  #calls;
  #driver;
  /** @type {LeaseInfo['state']} */
  #state = 'held';
  /** The slot from which this process draws, as its page said last. @type {PageLease | undefined} */
  #opened;
  /** How far ahead of the store's clock the namespace's floor may be after a loss of data, when the slot was opened, ms. */
  #reach = 0;
  /** The kind of loss. @type {Loss | undefined} */
  #lost;
  #losses;
  /** @type {unknown} */
  #failure;
  #executor;
  /** @type {Promise<void> | undefined} */
  #released;
  /** @type {OnChange} */
  #onChange = () => {};
  /** Whether the store has assigned the worker ID that the driver wants. */
  #isAssigned = false;
  /** @type {Channel | undefined} */
  channel;
  /**
   * Leases from directories have a method of that name. An own property: somebody may have put another on Object.prototype.
   * @type {undefined}
   */
  publish;

  /**
   * @param {object} register
   * @param {StoreSettings} settings
   */
  constructor(register, settings) {
    const { leasing, workerId: claim, maxAhead = 0 } = settings;
    this.#register = checkedRegister(register);
    this.#losses = new Losses(this.#register);
    this.#settings = settings;
    this.#calls = new StoreCalls(this.#register, leasing.callTimeout);
    const { name: store, assign, mayForget, bucketSize: size } = this.#register;
    if (assign !== undefined && claim !== undefined) {
      throw configError(`${store} assigns a new workerId at each start: leave out workerId`);
    }
    const own = { __proto__: null, ...settings, scope: this.#scope() };
    const given = { __proto__: null, ...leasing, store, maxAhead, claim, mayForget, size };
    const request = requestOf(own, { isLeased: true });
    this.#driver = unwrap(native.openLease(request, given, hostMonotonic(), unixNow()));
    this.#executor = new Executor(this.#driver, this.#calls, {
      prepare: () => this.#assign(),
      note: (report) => this.#note(report),
      fail: (failure) => this.#fail(failure),
      phase: () =>
        this.channel === undefined && this.#state !== 'released' ? 'opening' : this.#state,
    });
  }

  /**
   * Takes a slot or joins the host's, and opens its channel.
   * @param {object} register a LeaseStore, or a store that assigns worker IDs
   * @param {StoreSettings} settings
   * @param {OnChange} [onChange]
   */
  static async take(register, settings, onChange = () => {}) {
    const lease = new StoreLease(register, settings);
    try {
      await lease.#assign();
      await lease.#executor.begin();
      if (lease.channel === undefined) throw lease.#failure;
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
    this.#state = 'released';
    try {
      this.channel?.close();
      await this.#executor.end();
    } finally {
      atExit.unregister(this);
    }
  }

  /** The same, once a first one was opened. */
  get #slot() {
    return /** @type {PageLease} */ (this.#opened);
  }

  get workerId() {
    return this.#slot.slot.workerId;
  }

  /** The public `lease`. */
  report() {
    const skew = this.#driver.skew();
    const isSkewed = Math.abs(skew) > this.#settings.leasing.maxClockSkew;
    // As the page is now, before the next look.
    const page = ownOf(this.#read());
    if (this.#register.scope === 'process') page.expires = null;
    return leaseInfo(sanitize(this.#register.name), page, {
      state: this.#state,
      lost: this.#lost,
      clockSkew: isSkewed ? skew : undefined,
      failure: this.#failure === undefined ? undefined : describe(this.#failure),
    });
  }

  /** Stops IDs and releases the slot, if no other process of the host uses it. */
  release() {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** Renews early, for a draw above the ceiling. A suspended machine's timers may have been late. */
  wantRenewal() {
    if (!this.#executor.isRunning && this.#state === 'held') this.#executor.want();
  }

  /** Ends the slot, since this machine was restored from a snapshot. Another one is taken. */
  afterRestore() {
    if (this.#state !== 'released') this.#executor.restore();
  }

  async #release() {
    this.#executor.pause();
    this.#read();
    this.#state = 'released';
    try {
      this.channel?.close();
      this.#publish();
    } finally {
      await this.#end();
    }
  }

  async #end() {
    try {
      await this.#executor.end();
    } finally {
      await this.#calls.close();
      // Last, since a process that ends waits for all registered leases.
      atExit.unregister(this);
    }
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
    const { assign } = this.#register;
    if (this.#isAssigned || assign === undefined) return;
    const { layout, datacenterId, leasing } = this.#settings;
    const { ttl, host, started } = leasing;
    const workerIds = 2 ** layout.workerBits;
    const request = { layout, datacenterId, workerIds, ttl, host, started };
    this.#driver.claim(await this.#calls.assign(assign, request));
    this.#isAssigned = true;
  }

  /** @param {LeaseReport} report */
  #note(report) {
    switch (report.kind) {
      case 'open':
        return this.#draw();
      case 'renewed':
        return this.#noteRenewal();
      case 'lost':
        return this.#lose(report.lost);
      case 'failed':
      case 'refused':
      case 'unsettled':
        return this.#fail(report.fault ? faultError(report.fault) : this.#executor.callFailure);
      // 'unlocked': another process of the host was stopped. Nothing depends on it.
    }
  }

  /** Draws from the slot that the driver has opened. */
  #draw() {
    const opened = /** @type {PageLease} */ (this.#driver.state());
    const settings = { __proto__: null, ...this.#settings, workerId: opened.slot.workerId };
    const authority = { isLeased: true, lease: this.#driver };
    if (this.channel === undefined) this.channel = openChannel(settings, authority);
    else moveChannel(this.channel, settings, authority);
    this.#opened = opened;
    this.#reach = this.#driver.reach();
    const wasLost = this.#state === 'lost';
    this.#state = 'held';
    if (wasLost) this.#losses.noteNext(this.workerId);
    // A slot of the host may have expired before this process joined it: it has IDs once it was renewed, or taken over.
    if (unixNow() <= opened.ceiling) this.#executor.settle();
  }

  /** Shows people who holds the slot, or that nobody does any more. */
  #show(isHeld = true) {
    const { host, address, started } = this.#settings.leasing;
    const holder = { host, address, pid: process.pid, started: new Date(started).toISOString() };
    this.#calls.show(this.#slot.slot, isHeld ? holder : undefined);
  }

  /** Copies what the page says. Once the slot is left, it stays as it was. */
  #read() {
    const state = this.#driver.state();
    if (state?.owner === this.#slot.owner) this.#opened = state;
    return this.#slot;
  }

  /** Notes that the slot was renewed, by this process or another one of the host. */
  #noteRenewal() {
    if (this.#state === 'released') return;
    // Its channel could not be opened before.
    if (this.#driver.state()?.owner !== this.#opened?.owner) this.#draw();
    this.#failure = undefined;
    this.#state = 'held';
    const { renewals: before } = this.#slot;
    const { renewer, renewals } = ownOf(this.#read());
    if (renewals > before) this.#executor.settle();
    if ((renewer?.pid ?? process.pid) === process.pid) this.#show();
    this.#publish();
  }

  /** @param {unknown} failure */
  #fail(failure) {
    if (this.#state === 'released') return;
    this.#failure = failure;
    if (this.channel === undefined) return;
    this.#executor.settle();
    if (this.#state === 'held') this.#state = 'failing';
    this.#publish();
  }

  /** @param {Loss} loss */
  #lose(loss) {
    if (this.#state === 'released') return;
    this.#lost = loss;
    this.#isAssigned = false;
    this.#state = 'lost';
    this.#show(false);
    const { maxClockSkew } = this.#settings.leasing;
    this.#losses.note(this.#slot, loss, this.#reach + maxClockSkew);
    this.#publish();
  }

  #publish() {
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
    const { maxAhead = 0, layout } = this.#settings;
    // In whole ticks.
    const ahead = maxAhead - (maxAhead % layout.tickMs);
    const left = () => (this.#read().floor ?? -Infinity) + 1 - ahead - unixNow();
    // The store's clock is known to within the length of a call.
    const longest = this.#reach + maxClockSkew + callTimeout;
    if (left() > longest) return;
    if (left() > timing.LONG_WAIT_MS) {
      warnOfFloor(this.#register, { workerId: this.workerId, ms: Math.round(left()) });
    }
    const deadline = monotonic() + longest;
    while (left() > 0 && monotonic() < deadline && this.#released === undefined) {
      await pause(Math.min(left(), timing.POLL_MS));
    }
  }
}

/**
 * Takes a lease by a connection of its own, which ends with it.
 * @param {URL} url
 * @param {StoreSettings} settings
 * @param {OnChange} onChange
 */
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
