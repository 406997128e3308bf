'use strict';
// A holder's view of a store's namespace: its record, and how far ahead of the store's clock ceilings may be.
//
// Invariant: a holder requests no ceiling above the cap, the store's own clock + ttl + maxClockSkew +
// maxAhead. So every ceiling confirmed until now is below the same sum, the horizon. A namespace that was
// lost starts above the horizon.

const { SnowFlakeError, configError, unwrap } = require('../errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const native = require('../native.js');
const { monotonic, pause, unixNow } = require('../time.js');
const { warnOfFloor } = require('../warnings.js');
const { LONG_WAIT_MS, POLL_MS } = require('./timing.js');

/** The limits of a namespace's record, and the command's options that raise them. */
const LIMITS = { ttl: 'ttl', maxClockSkew: 'max-clock-skew', maxAhead: 'max-ahead' };

const newId = () => require('node:crypto').randomBytes(16).toString('hex');

class Namespace {
  #store;
  #calls;
  #settings;
  #record;
  /** The record was found missing or outdated, and the horizon is not recorded yet. */
  isLost = false;

  constructor(store, calls, settings) {
    this.#store = store;
    this.#calls = calls;
    this.#settings = settings;
  }

  get id() {
    return this.#record.id;
  }

  get floor() {
    return this.#record.floor;
  }

  /** The limits that this holder uses. */
  get ownLimits() {
    const { leasing, maxAhead = 0 } = this.#settings;
    return { ttl: leasing.ttl, maxClockSkew: leasing.maxClockSkew, maxAhead };
  }

  /** The limits that any holder of the namespace may use, as far as known. */
  get limits() {
    const limits = this.ownLimits;
    for (const name of Object.keys(LIMITS)) {
      limits[name] = Math.max(limits[name], this.#record?.[name] ?? 0);
    }
    return limits;
  }

  /** The furthest that a holder's ceiling can be ahead of the store's clock, ms. */
  get reach() {
    const { ttl, maxClockSkew, maxAhead } = this.limits;
    return ttl + maxClockSkew + maxAhead;
  }

  /** The last ms of a tick, Unix ms. */
  tickEnd(tick) {
    return unwrap(native.tickEnd(this.#settings.layout, tick));
  }

  #tickAt(unixMs) {
    return unwrap(native.tickAt(this.#settings.layout, unixMs));
  }

  /** The ceiling to request: `wanted`, lowered to the cap, but never below `confirmed`. */
  capped(wanted, confirmed = -1) {
    const { ttl, maxClockSkew, maxAhead } = this.ownLimits;
    const cap = this.#tickAt(this.#calls.earliestNow + ttl + maxClockSkew + maxAhead);
    return Math.max(Math.min(wanted, cap), confirmed);
  }

  /**
   * Reads or creates the record, and checks that this holder fits it. A record with another ID than before was lost,
   * whether this holder noticed it or not.
   */
  async open() {
    const key = layoutKey(this.#settings.layout);
    const id = newId();
    const before = this.#record?.id;
    // A namespace that is created anew keeps the limits that were recorded for all holders.
    const { limits } = this;
    const mayBeLost = this.isLost || before !== undefined || this.#store.mayForget === true;
    const floor = mayBeLost ? this.#tickAt(this.#calls.latestNow + this.reach) : -1;
    let record = await this.#calls.call('open', { id, layout: key, ...limits, floor });
    if (record.layout !== key) throw this.#layoutConflict(record.layout, key);
    this.isLost ||= before !== undefined && record.id !== before;
    if (this.isLost && record.id !== id) {
      record = await this.#calls.call('raise', { namespace: record.id, ...limits, floor });
    }
    this.isLost = false;
    this.#checkLimits(record);
    this.#record = record;
  }

  /**
   * Waits until the clock has passed a slot's floor, if the floor is no further than a holder that died just now,
   * or a new namespace, can leave it. nextId() refuses a floor further ahead.
   */
  async waitForFloor(getSlot, isReleased) {
    const left = () => this.tickEnd(getSlot().floor) + 1 - unixNow();
    const { callTimeout } = this.#settings.leasing;
    // The store's clock is known to within the length of a call.
    const longest = this.reach + this.limits.maxClockSkew + callTimeout;
    if (left() > longest) return;
    if (left() > LONG_WAIT_MS) {
      const { workerId, floor } = getSlot();
      const isNew = floor === this.floor;
      warnOfFloor(this.#store, { workerId, isNew, ms: Math.round(left()) });
    }
    const deadline = monotonic() + longest;
    while (left() > 0 && monotonic() < deadline && !isReleased()) {
      await pause(Math.min(left(), POLL_MS));
    }
  }

  #layoutConflict(found, wanted) {
    return new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${this.#store.name} is for IDs of another layout or epoch: ${found}, and not ${wanted}. Use another namespace for each layout and epoch`,
    );
  }

  /** Refuses limits above the recorded ones, on which holders that take over or recover rely. */
  #checkLimits(record) {
    const larger = Object.entries(this.ownLimits).filter(([name, ms]) => ms > record[name]);
    if (larger.length === 0) return;
    const found = larger.map(([name, ms]) => `${name} ${ms} (recorded: ${record[name]})`);
    const flags = larger.map(([name, ms]) => `--${LIMITS[name]} ${ms}`);
    throw configError(
      `${found.join(' and ')} is more than ${this.#store.name} allows its holders, in ms. Lower it to the recorded value, or raise that for all holders: snowdrift raise URL ${flags.join(' ')}`,
    );
  }
}

module.exports = { LIMITS, Namespace, newId };
