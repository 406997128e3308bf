'use strict';
// One holder's calls about slots: acquires, renews and releases one.

const { SnowFlakeError, faultError, unwrap } = require('../errors.js');
const native = require('../native.js');
const { monotonic, pause } = require('../time.js');
const { newId } = require('./namespace.js');
const { POLL_MS, RENEW_AFTER } = require('./timing.js');

/** The most times that one search for a slot opens its namespace again. */
const MAX_REOPENS = 5;

class StoreSlots {
  #store;
  #settings;
  #calls;
  #namespace;

  constructor(store, settings, calls, namespace) {
    this.#store = store;
    this.#settings = settings;
    this.#calls = calls;
    this.#namespace = namespace;
  }

  readClock() {
    return this.#calls.call('now', { ttl: this.#settings.leasing.ttl });
  }

  /** Refuses a clock that differs from the store's by more than maxClockSkew. */
  async checkClock() {
    const { maxClockSkew } = this.#settings.leasing;
    await this.readClock();
    const { skew } = this.#calls;
    if (Math.abs(skew) > maxClockSkew) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CLOCK_SKEW',
        `this machine's clock is ${Math.round(Math.abs(skew))} ms ${skew > 0 ? 'ahead of' : 'behind'} the clock of ${this.#store.name}; maxClockSkew allows ${maxClockSkew} ms. Set this machine's clock right (NTP), or the store's`,
      );
    }
  }

  /** Acquires the free slot with the lowest ceiling. While none is free, tries until the deadline. */
  async acquire(deadline) {
    const { layout, leasing } = this.#settings;
    const { ttl, maxAhead } = this.#namespace.ownLimits;
    const holder = {
      pid: process.pid,
      host: leasing.host,
      startedAt: new Date(leasing.started),
    };
    for (let reopens = 0; ; ) {
      const owner = newId();
      const wanted = unwrap(native.firstCeiling(layout, ttl + maxAhead));
      const ceiling = this.#namespace.capped(wanted);
      const request = { ...this.#identify({ owner }), holder, ceiling };
      const reply = await this.#calls.call('acquire', request, async ({ workerId, floor }) => {
        // A slot that arrives late has no process that would renew it.
        if (workerId === undefined) return;
        await this.#calls.call('release', { ...request, workerId, last: floor });
      });
      if (reply.isMissing) {
        if (++reopens > MAX_REOPENS) {
          throw new SnowFlakeError(
            'ERR_SNOWFLAKE_STORE',
            `${this.#store.name} failed to acquire a slot: its namespace keeps changing`,
          );
        }
        this.#namespace.isLost = true;
        // The horizon needs the store's present clock: other ceilings may have been confirmed meanwhile.
        await this.readClock();
        await this.#namespace.open();
      } else if (reply.workerId !== undefined) {
        const { workerId, floor, expires } = reply;
        return { owner, workerId, floor, ceiling, expires };
      } else {
        if (monotonic() >= deadline) throw this.#noSlotError(reply.holders);
        await pause(POLL_MS);
      }
    }
  }

  #noSlotError(holders) {
    return faultError({
      kind: 'no-slot',
      store: this.#store.name,
      datacenter: this.#settings.datacenterId,
      holders: holders.map(({ workerId, startedAt, ...holder }) => ({
        ...{ ...holder, kind: 'holder', worker: workerId, started: Number(startedAt) },
      })),
      unusable: [],
    });
  }

  /**
   * Renews a slot.
   * @param isReleased whether this process has released the slot meanwhile
   * @returns the kind of loss, as in the store's reply; null while the slot is held
   */
  async renew(channel, slot, isReleased) {
    const { layout, leasing } = this.#settings;
    // The last reply may be old: another process of the host may have renewed since.
    if (!this.#calls.repliesHaveTime || this.#calls.timeAge > leasing.ttl) await this.readClock();
    // A shorter ttl would cut the time that other processes of the host rely on.
    const ttl = Math.max(leasing.ttl, slot.refresh().ttl ?? 0);
    const wanted = channel.nextCeiling(leasing.ttl);
    // A second time if the reply shows that the store's clock is far ahead of the one noted before, as
    // after a suspend.
    for (let tries = 0; tries < 2; tries++) {
      const confirmed = slot.refresh().ceiling;
      const ceiling = this.#namespace.capped(wanted, confirmed);
      if (tries > 0 && (ceiling - confirmed) * layout.tickMs < leasing.ttl * RENEW_AFTER) break;
      const request = { ...this.#identify(slot), ttl, ceiling, confirmed };
      const reply = await this.#calls.call('renew', request);
      if (isReleased()) return null;
      if (!reply.isHeld) return reply.lost;
      // Only now: no ID may be above a ceiling that is not confirmed.
      slot.confirm(ceiling, reply.expires, ttl);
      if (ceiling >= wanted) break;
    }
    return null;
  }

  /**
   * A slot that was taken before its hold expired was taken in an older record, in which the hold had expired.
   * @param lost as in the store's reply
   * @returns 'reverted' in that case, else `lost`
   */
  async refineLoss(lost, { expires }) {
    if (lost !== 'taken' || expires === null) return lost;
    try {
      await this.readClock();
    } catch {
      return lost;
    }
    return this.#calls.latestNow < expires ? 'reverted' : lost;
  }

  /**
   * Releases a slot. It never throws: a slot that is not released expires, and its recorded ceiling is as safe.
   * @param last the highest tick issued
   */
  async release(slot, last) {
    try {
      const fields = this.#identify(slot);
      await this.#calls.call('release', { ...fields, last: Math.max(last, slot.floor) });
    } catch {}
  }

  /** The fields that name a slot and its holder in requests. */
  #identify({ owner, workerId }) {
    const { layout, datacenterId, leasing } = this.#settings;
    return {
      namespace: this.#namespace.id,
      datacenterId,
      workerIds: 2 ** layout.workerBits,
      workerId,
      owner,
      ttl: leasing.ttl,
    };
  }
}

module.exports = { StoreSlots };
