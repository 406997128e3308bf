'use strict';
// A lease from a store: renews its slot, acquires another one when the slot is lost, and releases it. The
// fence itself is in Rust, on the issue path: no ID is above the ceiling that the store has confirmed, even
// if this code fails or is late.
//
// The processes of a host share one slot. The first one acquires it, one of them renews it, and the last one
// to close releases it. Each checks the shared page at intervals: whether its renewal is due, and whether the
// slot was lost.

const { requestOf } = require('../channel.js');
const { configError, unwrap, describe } = require('../errors.js');
const native = require('../native.js');
const { sanitize } = require('../secrets.js');
const { clearTimeout, hostMonotonic, monotonic, setTimeout, unixNow } = require('../time.js');
const { warnOfNamespaceLoss, warnOfNewSlot } = require('../warnings.js');
const { StoreCalls } = require('./calls.js');
const atExit = require('./release-at-exit.js');
const { Namespace } = require('./namespace.js');
const { SlotFinder } = require('./slot-finder.js');
const { StoreSlots } = require('./store-slots.js');
const { CHECK_MS, POLL_MS, RENEW_AFTER, RETRY_MS } = require('./timing.js');

/** Owners of the slots that this thread is renewing, and of the lost ones that it has warned of. */
const renewing = new Set();
const warned = new Set();

const clamp = (ms, [least, most]) => Math.min(Math.max(ms, least), most);

class StoreLease {
  #store;
  #settings;
  #calls;
  #namespace;
  #slots;
  #isShared;
  #finder;
  #state = 'held';
  /** The end of the wait for a free slot, by `monotonic`. It has passed once the lease is open. */
  #deadline;
  /** The kind of loss, as in a store's reply. */
  #lost;
  #failure;
  #timer;
  /** A renewal is under way or scheduled. */
  #isRenewing = false;
  /** A draw needs a higher ceiling. */
  #isRenewalWanted = false;
  /** When to check for another slot of this host, by `monotonic`. */
  #mergeAt = monotonic() + POLL_MS;
  /** Owner and renewals of the slot in the last published report. */
  #published = {};
  #released;
  #onChange = () => {};

  constructor(store, settings) {
    this.#store = store;
    this.#settings = settings;
    this.#calls = new StoreCalls(store, settings.leasing.callTimeout);
    this.#namespace = new Namespace(store, this.#calls, settings);
    this.#slots = new StoreSlots(store, settings, this.#calls, this.#namespace);
    this.#isShared = this.#isHostShared();
    this.#finder = new SlotFinder(settings, this.#namespace, this.#slots, {
      isShared: this.#isShared,
      onOpen: () => {
        this.#state = 'held';
      },
    });
  }

  /**
   * Acquires a slot or joins the host's, and opens its generator.
   * @param onChange receives a report once the slot is acquired, and after each change
   */
  static async take(store, settings, onChange = () => {}) {
    const lease = new StoreLease(store, settings);
    await lease.#slots.checkClock();
    lease.#deadline = monotonic() + settings.leasing.wait;
    try {
      await lease.#finder.joinOrAcquire(lease.#deadline);
    } catch (failure) {
      lease.channel?.close();
      await lease.#calls.settle();
      throw failure;
    }
    lease.#schedule();
    atExit.register(lease);
    const isReleased = () => lease.#state === 'released';
    await lease.#namespace.waitForFloor(() => lease.#slot, isReleased);
    lease.#onChange = onChange;
    lease.#publish();
    return lease;
  }

  get channel() {
    return this.#finder.channel;
  }

  get #slot() {
    return this.#finder.slot;
  }

  get workerId() {
    return this.#slot.workerId;
  }

  /** The public `lease`: a tick is shown as its last ms, Unix ms. */
  report() {
    const { datacenterId, leasing } = this.#settings;
    const slot = this.#slot.refresh();
    const { owner, workerId, floor, expires, renewals, renewer, since } = slot;
    const { skew } = this.#calls;
    const ceiling = this.#namespace.tickEnd(Math.max(floor, slot.ceiling));
    const hasPassed = this.#state !== 'released' && unixNow() > ceiling;
    const isDeleted = this.#state === 'held' && !slot.isNamed;
    const state = isDeleted ? 'lost' : this.#state;
    return {
      store: sanitize(this.#store.name),
      scope: this.#isShared ? 'host' : 'process',
      slot: { datacenterId, workerId },
      owner,
      floor: floor < 0 ? null : this.#namespace.tickEnd(floor),
      ceiling,
      expires,
      renewals,
      ...(this.#isShared ? { renewer: { pid: renewer, since } } : {}),
      state: hasPassed && state !== 'lost' ? 'expired' : state,
      ...(state === 'lost' ? { lost: isDeleted ? 'page' : this.#lost } : {}),
      ...(Math.abs(skew) > leasing.maxClockSkew ? { clockSkew: Math.round(skew) } : {}),
      ...(this.#failure === undefined ? {} : { failure: describe(this.#failure) }),
    };
  }

  #publish() {
    const { owner, renewals } = this.#slot;
    this.#published = { owner, renewals };
    this.#onChange(this.report());
  }

  /** Stops IDs and releases the slot, if no other process of the host uses it. */
  release() {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release() {
    clearTimeout(this.#timer);
    const slot = this.#slot;
    const last = slot.leave();
    this.#state = 'released';
    this.#finder.isReleased = true;
    this.#publish();
    this.#calls.abandonAll();
    // `last` is undefined for a slot that was lost or that other processes use.
    if (last !== undefined) await this.#slots.release(slot, last);
    await this.#calls.close();
    // Last, since a process that ends waits for all registered leases.
    atExit.unregister(this);
  }

  #isHostShared() {
    const { scope } = this.#settings;
    if (this.#store.scope === 'process') {
      if (scope !== 'host') return false;
      throw configError(
        `${this.#store.name} gives each process its own worker ID: leave out scope 'host'`,
      );
    }
    return unwrap(native.sharesHost(requestOf(this.#settings)));
  }

  #schedule(ms = this.#untilCheck()) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), ms);
    // The timer does not keep the event loop alive.
    this.#timer.unref();
  }

  #untilCheck() {
    const { ttl } = this.#settings.leasing;
    const due = Math.max(ttl * RENEW_AFTER - (hostMonotonic() - this.#slot.renewedAt), 0);
    if (!this.#isShared) return due;
    return Math.min(due > 0 ? due : CHECK_MS[0], clamp(ttl / 12, CHECK_MS));
  }

  /** Renews early, for a draw above the ceiling. A suspended machine's timers may have been late. */
  wantRenewal() {
    if (this.#isRenewing || this.#state !== 'held') return;
    this.#isRenewing = true;
    this.#isRenewalWanted = true;
    // At the pace of retries: a clock above the cap wants a renewal at each draw.
    const since = hostMonotonic() - this.#slot.refresh().renewedAt;
    this.#schedule(this.#slot.loss === null ? clamp(RETRY_MS[0] - since, [0, RETRY_MS[0]]) : 0);
  }

  /** Checks the slot and schedules the next check. It never throws. */
  async #check() {
    const { ttl } = this.#settings.leasing;
    this.#isRenewing = true;
    try {
      await this.#checkSlot();
      this.#failure = undefined;
      if (this.#state === 'failing') this.#state = 'held';
      if (this.#state !== 'held') return;
      this.#schedule();
      const { owner, renewals } = this.#slot;
      if (owner !== this.#published.owner || renewals !== this.#published.renewals) this.#publish();
    } catch (failure) {
      if (this.#state === 'released') return;
      this.#failure = failure;
      if (this.#state === 'held') this.#state = 'failing';
      this.#schedule(clamp(ttl / 10, RETRY_MS));
      this.#publish();
    } finally {
      this.#isRenewing = false;
      this.#isRenewalWanted = false;
    }
  }

  /** Renews the slot if that is due, and replaces it if it was lost. */
  async #checkSlot() {
    if (this.#state === 'lost') return await this.#acquireAnother();
    const { ttl } = this.#settings.leasing;
    const slot = this.#slot.refresh();
    // The process that found the loss may not know its kind yet.
    if (slot.loss !== null) return await this.#lose(await this.#slots.refineLoss(slot.loss, slot));
    if (!slot.isNamed) return await this.#leaveDeletedPage();
    if (this.#isShared && monotonic() >= this.#mergeAt) {
      this.#mergeAt = monotonic() + ttl * RENEW_AFTER;
      if (await this.#finder.moveToLowerSlot()) return;
    }
    const isJustRenewed = hostMonotonic() - slot.renewedAt < RETRY_MS[0];
    if (!slot.isDue(ttl) && (!this.#isRenewalWanted || isJustRenewed)) return;
    // Another instance of this thread is renewing it.
    if (renewing.has(slot.owner)) return;
    renewing.add(slot.owner);
    try {
      await this.#renew();
    } finally {
      renewing.delete(slot.owner);
    }
  }

  /** Other processes cannot find a deleted page, so this one stops using it. */
  async #leaveDeletedPage() {
    const last = this.#slot.end('released');
    if (last !== undefined) await this.#slots.release(this.#slot, last);
    await this.#lose('released');
  }

  async #renew() {
    const slot = this.#slot;
    const isReleased = () => this.#state === 'released';
    const loss = await this.#slots.renew(this.channel, slot, isReleased);
    if (loss === null || isReleased()) return;
    slot.end(loss);
    const refined = await this.#slots.refineLoss(loss, slot);
    slot.end(refined);
    await this.#lose(refined);
  }

  /** @param loss from a store's reply, or from another process of the host through the page */
  async #lose(loss) {
    if (this.#state === 'released') return;
    // A slot in use is 'released' only because its page was deleted.
    this.#lost = loss === 'released' ? 'page' : loss;
    this.#state = 'lost';
    if (this.#lost === 'missing' || this.#lost === 'reverted') {
      this.#namespace.isLost = true;
      this.#warnOnce(this.#slot, warnOfNamespaceLoss, { reach: this.#namespace.reach });
    }
    this.#publish();
    await this.#acquireAnother();
  }

  async #acquireAnother() {
    const before = this.#slot;
    await this.#slots.readClock();
    await this.#finder.joinOrAcquire(this.#deadline);
    if (this.#state === 'released') return;
    this.#warnOnce(before, warnOfNewSlot, { newWorkerId: this.#slot.workerId });
  }

  /** Warns once of the loss of a slot. */
  #warnOnce({ owner, workerId }, warnOf, more) {
    if (warned.has(owner)) return;
    warned.add(owner);
    warnOf(this.#store, { workerId, lost: this.#lost, isShared: this.#isShared, ...more });
  }
}

module.exports = { StoreLease };
