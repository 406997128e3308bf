'use strict';
// A slot leased from an engine: taken, renewed, lost and taken anew, and released. The fence itself
// stands in Rust, on the way of every ID: whatever happens here, or does not happen in time, nothing
// is issued above the ceiling that the engine has confirmed.

const { randomBytes } = require('node:crypto');

const { SnowFlakeError, granted, held, shown } = require('../errors.js');
const native = require('../native.js');
const { readAnswer } = require('./answers.js');
const ending = require('./ending.js');
const { NoAnswer, storeFailure } = require('./failures.js');

/** The shortest and the longest pause after a call that failed, in ms. */
const RETRY_MS = [100, 1000];

/** How often it is looked again what is waited for, in ms. */
const POLL_MS = 100;

/** A wait for a floor that people are told of, in ms. */
const LONG_WAIT_MS = 1000;

/** How long a store has to release a slot, and to close, ms. */
const RELEASE_MS = 2000;
const CLOSE_MS = 1000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class EngineLease {
  #store;
  #settings;
  #channel;
  /** Unix ms. */
  #engineClock;
  #owner;
  #slot;
  #ceiling;
  #expires;
  #renewals = 0;
  #state = 'held';
  #failure;
  #timer;
  /** A renewal is under way, or about to be. */
  #isRenewing = false;
  #released;
  #changed = () => {};

  constructor(store, settings) {
    this.#store = store;
    this.#settings = settings;
  }

  /**
   * Takes a slot, and opens its generator.
   * @param changed called with how the lease stands, when it is taken and whenever that has changed
   */
  static async take(store, settings, changed = () => {}) {
    const lease = new EngineLease(store, settings);
    await lease.#checkClock();
    const deadline = performance.now() + settings.leasing.wait;
    const channel = await lease.#acquireUsable(deadline, (request, window) =>
      granted(native.openLeased(request, window)),
    );
    // How js/turn.js learns why there is no ID.
    channel.lease = () => lease.report();
    channel.wantRenewal = () => lease.#renewNow();
    lease.#channel = channel;
    lease.#schedule(settings.leasing.ttl / 3);
    ending.add(lease);
    await lease.#floorPassed();
    lease.#changed = changed;
    lease.#tell();
    return lease;
  }

  get channel() {
    return this.#channel;
  }

  get workerId() {
    return this.#slot.workerId;
  }

  /** How it stands. Ticks as the end of their time, in Unix ms. */
  report() {
    const { datacenterId } = this.#settings;
    const { workerId, floor } = this.#slot;
    const hasPassed = this.#state !== 'released' && Date.now() > this.#end(this.#ceiling);
    return {
      store: this.#store.name,
      slot: { datacenterId, workerId },
      owner: this.#owner,
      floor: floor < 0 ? null : this.#end(floor),
      ceiling: this.#end(this.#ceiling),
      expires: this.#expires,
      renewals: this.#renewals,
      state: hasPassed && this.#state !== 'lost' ? 'expired' : this.#state,
      ...(this.#failure === undefined ? {} : { failure: shown(this.#failure) }),
    };
  }

  #tell() {
    this.#changed(this.report());
  }

  /** The last ms of a tick, Unix ms. */
  #end(tick) {
    const { epoch, tickMs } = this.#settings.layout;
    return epoch + (tick + 1) * tickMs - 1;
  }

  /** Gives the slot up: nothing is issued from now on. */
  release() {
    this.#released ??= this.#giveUp();
    return this.#released;
  }

  async #giveUp() {
    clearTimeout(this.#timer);
    ending.remove(this);
    const isHeld = this.#state !== 'lost';
    const last = this.#channel.endWindow();
    this.#state = 'released';
    this.#tell();
    try {
      if (isHeld) {
        const { floor } = this.#slot;
        await this.#call('release', { ...this.#place(), last: Math.max(last ?? floor, floor) });
      }
    } catch {
      // It expires by itself; the ceiling that stands is as safe.
    } finally {
      await this.#closeStore();
    }
  }

  /** Whatever the store does: nobody who closes a lease waits longer. */
  async #closeStore() {
    let timer;
    const limit = new Promise((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    const closed = (async () => this.#store.close?.())().catch(() => {});
    await Promise.race([closed, limit]);
    clearTimeout(timer);
  }

  /** Asks for the engine's clock. */
  async #askClock() {
    const asked = performance.now();
    const { ttl } = this.#settings.leasing;
    const theirs = await this.#call('now', { ttl });
    const halfway = (asked + performance.now()) / 2;
    this.#engineClock = () => theirs + (performance.now() - halfway);
  }

  /** The engine's clock, against this one. */
  async #checkClock() {
    const { maxClockSkew } = this.#settings.leasing;
    await this.#askClock();
    const skew = Date.now() - this.#engineClock();
    if (Math.abs(skew) > maxClockSkew) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CLOCK_SKEW',
        `this machine's clock is ${Math.round(Math.abs(skew))} ms ${skew > 0 ? 'ahead of' : 'behind'} the clock of ${this.#store.name}; maxClockSkew allows ${maxClockSkew} ms. Set this machine's clock right (NTP), or the engine's`,
      );
    }
  }

  /**
   * Until IDs can be drawn, if a floor as it comes about stands before that: of a holder that died just
   * now, or of an engine that does not know what was issued. Of a floor further away nextId() tells.
   */
  async #floorPassed() {
    const { ttl, maxClockSkew } = this.#settings.leasing;
    const left = () => this.#end(this.#slot.floor) + 1 - Date.now();
    const longest = ttl + 2 * maxClockSkew;
    if (left() > longest) return;
    if (left() > LONG_WAIT_MS) {
      const ms = Math.round(left());
      process.emitWarning(`SnowFlake.lease() waits ${ms} ms for the first ID.`, {
        type: 'SnowFlakeWarning',
        code: 'SNOWFLAKE_FLOOR',
        detail: `Until then, IDs of workerId ${this.#slot.workerId} may have been issued by a holder that ${this.#store.name} does not know of any more.`,
      });
    }
    const deadline = performance.now() + longest;
    while (left() > 0 && performance.now() < deadline && this.#state !== 'released') {
      await pause(Math.min(left(), POLL_MS));
    }
  }

  /** What the slot and its holder are called in requests. */
  #place() {
    const { layout, datacenterId } = this.#settings;
    const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits } = layout;
    const bits = [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits].join('/');
    return {
      layout: `${bits} bits in ticks of ${layout.tickMs} ms from ${layout.epoch}`,
      datacenterId,
      workerIds: 2 ** layout.workerBits,
      workerId: this.#slot?.workerId,
      owner: this.#owner,
      ttl: this.#settings.leasing.ttl,
    };
  }

  /**
   * Takes a free slot and opens it. This process may have its node open already, as of another namespace:
   * such slots are kept until there is one that it can use, so that others are given.
   * @returns what `open` does
   */
  async #acquireUsable(deadline, open) {
    const unusable = [];
    let conflict;
    try {
      for (;;) {
        const { request, window } = await this.#acquire(deadline);
        try {
          return open(request, window);
        } catch (failure) {
          unusable.push({ ...this.#place(), last: window.floor });
          if (failure.code !== 'ERR_SNOWFLAKE_CONFLICT') throw failure;
          conflict = failure;
        }
      }
    } catch (refusal) {
      throw refusal.code === 'ERR_SNOWFLAKE_NO_SLOT' ? (conflict ?? refusal) : refusal;
    } finally {
      // What is not released expires.
      await Promise.allSettled(unusable.map((place) => this.#call('release', place)));
    }
  }

  /** Takes the free slot with the lowest ceiling, until the deadline if there is none. */
  async #acquire(deadline) {
    const { leasing, ...settings } = this.#settings;
    const { host, started, ttl, maxClockSkew } = leasing;
    const { epoch, tickMs } = settings.layout;
    for (;;) {
      this.#owner = randomBytes(16).toString('hex');
      const ceiling = granted(native.firstCeiling(settings.layout, ttl));
      const holder = { pid: process.pid, host, startedAt: new Date(started) };
      // By the engine's clock, which all holders' clocks were near to.
      const latest = this.#engineClock() + ttl + maxClockSkew;
      const horizon = Math.floor((latest - epoch) / tickMs);
      const request = { ...this.#place(), holder, ceiling, horizon };
      const answer = await this.#call('acquire', request, ({ workerId, floor }) => {
        // Nobody waits for it any more, so nobody will renew it.
        if (workerId === undefined) return;
        this.#call('release', { ...request, workerId, last: floor }).catch(() => {});
      });
      if (answer.workerId !== undefined) {
        const { workerId, floor } = answer;
        this.#slot = { workerId, floor };
        this.#ceiling = Math.max(ceiling, floor);
        this.#expires = answer.expires;
        return {
          request: { ...settings, workerId, ownClock: false },
          window: { floor, ceiling: this.#ceiling, inThread: leasing.inThread },
        };
      }
      if (performance.now() >= deadline) throw this.#noSlot(answer.holders);
      await pause(POLL_MS);
    }
  }

  #noSlot(holders) {
    return held({
      code: 'ERR_SNOWFLAKE_NO_SLOT',
      message: `all slots of datacenterId ${this.#settings.datacenterId} in ${this.#store.name} are held`,
      holders: holders.map(({ startedAt, ...rest }) => ({ ...rest, started: Number(startedAt) })),
    });
  }

  #schedule(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#renew(), ms);
    // A lease is no reason to stay alive.
    this.#timer.unref();
  }

  /**
   * Someone wants an ID above the ceiling. Where a machine was suspended, as serverless ones are, its timers
   * may have slept, too.
   */
  #renewNow() {
    // Not more often than is tried anyway where it fails.
    if (this.#isRenewing || this.#state !== 'held') return;
    this.#isRenewing = true;
    this.#schedule(0);
  }

  async #renew() {
    const { ttl } = this.#settings.leasing;
    this.#isRenewing = true;
    try {
      if (this.#state === 'lost') await this.#takeAnother();
      else await this.#raise();
      this.#failure = undefined;
      if (this.#state === 'failing') this.#state = 'held';
      if (this.#state !== 'held') return;
      this.#schedule(ttl / 3);
      this.#tell();
    } catch (failure) {
      if (this.#state === 'released') return;
      this.#failure = failure;
      if (this.#state === 'held') this.#state = 'failing';
      this.#schedule(Math.min(Math.max(ttl / 10, RETRY_MS[0]), RETRY_MS[1]));
      this.#tell();
    } finally {
      this.#isRenewing = false;
    }
  }

  async #raise() {
    const ceiling = this.#channel.nextCeiling(this.#settings.leasing.ttl);
    const { isHeld, expires } = await this.#call('renew', { ...this.#place(), ceiling });
    if (this.#state === 'released') return;
    if (!isHeld) {
      this.#channel.endWindow();
      this.#state = 'lost';
      this.#tell();
      await this.#takeAnother();
      return;
    }
    // Only now: what is not confirmed must not be issued.
    this.#channel.raiseCeiling(ceiling);
    this.#ceiling = Math.max(this.#ceiling, ceiling);
    this.#expires = expires;
    this.#renewals++;
  }

  async #takeAnother() {
    const lost = this.#slot.workerId;
    await this.#askClock();
    await this.#acquireUsable(0, (request, window) => {
      // While it was asked for: nobody else will give it up.
      if (this.#state === 'released') throw new Error('it was released');
      granted(this.#channel.moveTo(request, window));
    });
    this.#state = 'held';
    const how = `workerId ${lost} was taken over by another process`;
    process.emitWarning(`${how}; IDs go on under workerId ${this.#slot.workerId}.`, {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_SLOT_LOST',
      detail: `Its lease in ${this.#store.name} had expired: this process was stopped or cut off.`,
    });
  }

  /** One call to the engine, with a time limit of its own. */
  async #call(name, request, late = () => {}) {
    const { callTimeout } = this.#settings.leasing;
    // What is not released expires.
    const ms = name === 'release' ? Math.min(callTimeout, RELEASE_MS) : callTimeout;
    const abort = new AbortController();
    let timer;
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => {
        abort.abort();
        reject(new NoAnswer(ms));
      }, ms);
    });
    const answer = (async () => this.#store[name]({ ...request, signal: abort.signal }))();
    answer
      .then((value) => abort.signal.aborted && late(readAnswer(name, value, request)))
      .catch(() => {});
    try {
      return readAnswer(name, await Promise.race([answer, limit]), request);
    } catch (cause) {
      if (cause instanceof SnowFlakeError) throw cause;
      throw storeFailure(this.#store.server ?? this.#store.name, name, cause);
    } finally {
      clearTimeout(timer);
    }
  }
}

module.exports = { EngineLease };
