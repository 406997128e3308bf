'use strict';
// A slot leased from a store: acquired, renewed, lost and acquired anew, and released. The fence itself
// is in Rust, on the way of every ID: whatever happens here, or does not happen in time, nothing is
// issued above the ceiling that the store has confirmed.
//
// A ceiling is requested up to the store's own clock + ttl + maxClockSkew + maxAhead, the cap. So all
// that holders can have been confirmed by now ends below the same sum, the horizon: a namespace that
// was lost starts above it.

const { randomBytes } = require('node:crypto');

const { SnowFlakeError, configError, granted, held, shown } = require('../errors.js');
const { layoutKey } = require('../layout-key.js');
const native = require('../native.js');
const { clearTimeout, monotonic, setTimeout, unixNow } = require('../time.js');
const { readAnswer } = require('./answers.js');
const ending = require('./ending.js');
const { DOING, NoAnswer, storeFailure } = require('./failures.js');

/** The shortest and the longest pause after a call that failed, in ms. */
const RETRY_MS = [100, 1000];

/** How often a slot is tried for, or a floor looked at, that is waited for, in ms. */
const POLL_MS = 100;

/** A wait for a floor that is worth a warning, in ms. */
const LONG_WAIT_MS = 1000;

/** How long a store has to release a slot, and to close, ms. */
const RELEASE_MS = 2000;
const CLOSE_MS = 1000;

/** How often one search for a slot may find its namespace gone. */
const MOST_REOPENED = 5;

/** Of a namespace's record, what a holder must not exceed, and the flag that raises it. */
const LIMITS = { ttl: '--ttl', maxClockSkew: '--max-clock-skew', maxAhead: '--max-ahead' };

/** What a renewal found of a slot that was lost, in errors and warnings. */
const LOST = {
  missing: 'is no longer recorded: a table or key was dropped, or a server lost its data',
  reverted:
    'is recorded as it was before: a backup was restored, or a replica that lagged took over',
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const newId = () => randomBytes(16).toString('hex');

class EngineLease {
  #store;
  #settings;
  #channel;
  /** The store's clock, as answered last, and when that was asked and answered by `monotonic`. */
  #storeTime;
  /** This machine's clock minus the store's at that time, ms; the least that it can have been. */
  #skew = 0;
  /** Whether answers of acquire and renew have the store's time. */
  #answersHaveTime = false;
  /** The namespace's record, as opened last. */
  #namespace;
  /** The namespace was found missing or older than it was, and the horizon is not recorded yet. */
  #isNamespaceLost = false;
  /** The slot: owner, workerId, floor, ceiling (what the store has confirmed) and expires. */
  #hold;
  #renewals = 0;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #state = 'held';
  /** Why it was lost: as a store answers. */
  #lost;
  #failure;
  #timer;
  /** Abandon the calls under way. */
  #calls = new Set();
  /** A renewal is under way, or about to be. */
  #isRenewing = false;
  #released;
  #changed = () => {};

  constructor(store, settings) {
    this.#store = store;
    this.#settings = settings;
  }

  /**
   * Acquires a slot, and opens its generator.
   * @param changed called with how the lease stands, when it is acquired and whenever that has changed
   */
  static async take(store, settings, changed = () => {}) {
    const lease = new EngineLease(store, settings);
    await lease.#checkClock();
    const deadline = monotonic() + settings.leasing.wait;
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
    return this.#hold.workerId;
  }

  /** How it stands. Ticks as the end of their time, in Unix ms. */
  report() {
    const { datacenterId, leasing } = this.#settings;
    const { owner, workerId, floor, expires } = this.#hold;
    const ceiling = this.#end(Math.max(floor, this.#hold.ceiling));
    const hasPassed = this.#state !== 'released' && unixNow() > ceiling;
    return {
      store: this.#store.name,
      slot: { datacenterId, workerId },
      owner,
      floor: floor < 0 ? null : this.#end(floor),
      ceiling,
      expires,
      renewals: this.#renewals,
      state: hasPassed && this.#state !== 'lost' ? 'expired' : this.#state,
      ...(this.#state === 'lost' ? { lost: this.#lost } : {}),
      ...(Math.abs(this.#skew) > leasing.maxClockSkew ? { clockSkew: Math.round(this.#skew) } : {}),
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

  /** The tick of a time, Unix ms; -1 before the epoch. */
  #tick(unixMs) {
    const { epoch, tickMs } = this.#settings.layout;
    return Math.max(Math.floor((unixMs - epoch) / tickMs), -1);
  }

  /** Gives the slot up: nothing is issued from now on. */
  release() {
    this.#released ??= this.#giveUp();
    return this.#released;
  }

  async #giveUp() {
    clearTimeout(this.#timer);
    const isHeld = this.#state !== 'lost';
    const last = this.#channel.endWindow();
    this.#state = 'released';
    this.#tell();
    for (const abandon of this.#calls) abandon();
    try {
      if (isHeld) {
        const { floor } = this.#hold;
        const place = this.#place(this.#hold);
        await this.#call('release', { ...place, last: Math.max(last ?? floor, floor) });
      }
    } catch {
      // It expires by itself; the ceiling that is recorded is as safe.
    } finally {
      await this.#closeStore();
      // Only now: a process that is ended meanwhile waits for it.
      ending.remove(this);
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

  /** What this holder needs: the sum of it is how far ahead of the store's clock a ceiling may be. */
  get #terms() {
    const { leasing, maxAhead = 0 } = this.#settings;
    return { ttl: leasing.ttl, maxClockSkew: leasing.maxClockSkew, maxAhead };
  }

  /** What any holder of the namespace may have, as far as it is known. */
  get #limits() {
    const limits = this.#terms;
    for (const what of Object.keys(LIMITS)) {
      limits[what] = Math.max(limits[what], this.#namespace?.[what] ?? 0);
    }
    return limits;
  }

  /**
   * As much of `wanted` as may be requested: no more than the cap, by the earliest time that the store's
   * clock can show; and no less than what is confirmed.
   */
  #capped(wanted, confirmed = -1) {
    const { ttl, maxClockSkew, maxAhead } = this.#terms;
    const { unixMs, answered } = this.#storeTime;
    const earliest = unixMs + (monotonic() - answered);
    const cap = this.#tick(earliest + ttl + maxClockSkew + maxAhead);
    return Math.max(Math.min(wanted, cap), confirmed);
  }

  /** The tick up to which any holder can have been confirmed by now. */
  #horizon() {
    const { ttl, maxClockSkew, maxAhead } = this.#limits;
    const { unixMs, asked } = this.#storeTime;
    const latest = unixMs + (monotonic() - asked);
    return this.#tick(latest + ttl + maxClockSkew + maxAhead);
  }

  #readClock() {
    return this.#call('now', { ttl: this.#settings.leasing.ttl });
  }

  /** The store's clock, against this one. */
  async #checkClock() {
    const { maxClockSkew } = this.#settings.leasing;
    await this.#readClock();
    const skew = this.#skew;
    if (Math.abs(skew) > maxClockSkew) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CLOCK_SKEW',
        `this machine's clock is ${Math.round(Math.abs(skew))} ms ${skew > 0 ? 'ahead of' : 'behind'} the clock of ${this.#store.name}; maxClockSkew allows ${maxClockSkew} ms. Set this machine's clock right (NTP), or the store's`,
      );
    }
  }

  /** Reads or creates the namespace's record, and checks that this holder fits it. */
  async #openNamespace() {
    const key = layoutKey(this.#settings.layout);
    const id = newId();
    const isLost = this.#isNamespaceLost;
    // The limits recorded for all holders stay, also when the namespace is created anew.
    const limits = this.#limits;
    const floor = isLost || this.#store.mayForget === true ? this.#horizon() : -1;
    let namespace = await this.#call('open', { id, layout: key, ...limits, floor });
    if (namespace.layout !== key) throw this.#layoutConflict(namespace.layout, key);
    if (isLost && namespace.id !== id) {
      namespace = await this.#call('raise', { namespace: namespace.id, ...limits, floor });
    }
    this.#isNamespaceLost = false;
    this.#checkTerms(namespace);
    this.#namespace = namespace;
  }

  #layoutConflict(found, wanted) {
    return new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${this.#store.name} is for IDs of another layout or epoch: ${found}, and not ${wanted}. Use another namespace for each layout and epoch`,
    );
  }

  /** Who takes a slot over, or recovers a namespace, counts on what is recorded. */
  #checkTerms(namespace) {
    const terms = Object.entries(this.#terms);
    const larger = terms.filter(([what, ms]) => ms > namespace[what]);
    if (larger.length === 0) return;
    const found = larger.map(([what, ms]) => `${what} ${ms} (recorded: ${namespace[what]})`);
    const flags = larger.map(([what, ms]) => `${LIMITS[what]} ${ms}`);
    throw configError(
      `${found.join(' and ')} is more than ${this.#store.name} allows its holders, in ms. Use no more than is recorded, or raise that for all of them: snowdrift raise URL ${flags.join(' ')}`,
    );
  }

  /**
   * Until IDs can be drawn, if the slot's floor is as near as it usually is: of a holder that died just
   * now, or of a namespace that starts at the horizon. For a floor further away nextId() refuses.
   */
  async #floorPassed() {
    const { ttl, maxClockSkew, maxAhead } = this.#limits;
    const left = () => this.#end(this.#hold.floor) + 1 - unixNow();
    // The store's clock is known to the length of a call.
    const longest = ttl + 2 * maxClockSkew + maxAhead + this.#settings.leasing.callTimeout;
    if (left() > longest) return;
    if (left() > LONG_WAIT_MS) this.#warnOfFloor(Math.round(left()));
    const deadline = monotonic() + longest;
    while (left() > 0 && monotonic() < deadline && this.#state !== 'released') {
      await pause(Math.min(left(), POLL_MS));
    }
  }

  #warnOfFloor(ms) {
    const { workerId, floor } = this.#hold;
    const create = this.#store.mayForget
      ? ' Where none ever was, create it ahead: snowdrift create URL --new'
      : '';
    const why =
      floor === this.#namespace.floor
        ? `the namespace is new, or was lost and recovered, and earlier holders of it may issue IDs up to then.${create}`
        : `the last holder of workerId ${workerId} did not release it, and may have issued IDs up to then.`;
    process.emitWarning(`SnowFlake.lease() waits ${ms} ms for its first ID.`, {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_FLOOR',
      detail: `${this.#store.name}: ${why}`,
    });
  }

  /** What a slot and its holder are called in requests. */
  #place({ owner, workerId }) {
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

  /**
   * Acquires a free slot and opens it. This process may have its node open already, as of another
   * namespace: such slots are kept until there is one that it can use, so that others are given.
   * @returns what `open` does
   */
  async #acquireUsable(deadline, open) {
    const { leasing, ...settings } = this.#settings;
    await this.#openNamespace();
    const unusable = [];
    let conflict;
    try {
      for (;;) {
        const hold = await this.#acquire(deadline);
        const { workerId, floor } = hold;
        try {
          const window = {
            floor,
            ceiling: Math.max(floor, hold.ceiling),
            inThread: leasing.inThread,
          };
          // Without a prototype: what somebody has put on Object.prototype is no option.
          const request = { __proto__: null, ...settings, workerId, ownClock: false };
          const opened = open(request, window);
          // In one step: a close() from now on releases this slot.
          this.#hold = hold;
          this.#state = 'held';
          return opened;
        } catch (failure) {
          unusable.push({ ...this.#place(hold), last: floor });
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

  /** Acquires the free slot with the lowest ceiling; until the deadline, if there is none. */
  async #acquire(deadline) {
    const { layout, leasing } = this.#settings;
    const { ttl, maxAhead } = this.#terms;
    const holder = {
      pid: process.pid,
      host: leasing.host,
      startedAt: new Date(leasing.started),
    };
    for (let reopened = 0; ; ) {
      const owner = newId();
      const ceiling = this.#capped(granted(native.firstCeiling(layout, ttl + maxAhead)));
      const request = { ...this.#place({ owner }), holder, ceiling };
      const answer = await this.#call('acquire', request, ({ workerId, floor }) => {
        // Nobody waits for it any more, so nobody will renew it.
        if (workerId === undefined) return;
        this.#call('release', { ...request, workerId, last: floor }).catch(() => {});
      });
      if (answer.isMissing) {
        if (++reopened > MOST_REOPENED)
          throw this.#failed('acquire', 'its namespace keeps changing');
        this.#isNamespaceLost = true;
        // The horizon is by the store's clock of now: others may have been confirmed meanwhile.
        await this.#readClock();
        await this.#openNamespace();
      } else if (answer.workerId !== undefined) {
        const { workerId, floor, expires } = answer;
        return { owner, workerId, floor, ceiling, expires };
      } else {
        if (monotonic() >= deadline) throw this.#noSlot(answer.holders);
        await pause(POLL_MS);
      }
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
    if (this.#isRenewing || this.#state !== 'held') return;
    this.#isRenewing = true;
    // Not more often than after a failure: where the clock is above the cap, each draw wants a renewal.
    this.#schedule(Math.max(this.#renewedAt + RETRY_MS[0] - monotonic(), 0));
  }

  async #renew() {
    const { ttl } = this.#settings.leasing;
    this.#isRenewing = true;
    try {
      if (this.#state === 'lost') await this.#acquireAnother();
      else await this.#raiseCeiling();
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

  async #raiseCeiling() {
    const hold = this.#hold;
    if (!this.#answersHaveTime) await this.#readClock();
    const { layout, leasing } = this.#settings;
    const wanted = this.#channel.nextCeiling(leasing.ttl);
    // Once more if the answer shows that the store's clock has gone on much further than this process
    // has seen, as on a machine that was suspended.
    for (let tries = 0; tries < 2; tries++) {
      const confirmed = hold.ceiling;
      const ceiling = this.#capped(wanted, confirmed);
      if (tries > 0 && (ceiling - confirmed) * layout.tickMs < leasing.ttl / 3) break;
      const request = { ...this.#place(hold), ceiling, confirmed };
      const answer = await this.#call('renew', request);
      if (this.#state === 'released') return;
      if (!answer.isHeld) {
        this.#channel.endWindow();
        const lost = await this.#whyLost(answer.lost);
        if (this.#state === 'released') return;
        return await this.#lose(lost);
      }
      // Only now: what is not confirmed must not be issued.
      this.#channel.raiseCeiling(ceiling);
      hold.ceiling = ceiling;
      hold.expires = answer.expires;
      if (ceiling >= wanted) break;
    }
    this.#renewals++;
    this.#renewedAt = monotonic();
  }

  /**
   * Who takes a slot before its hold has expired has found an older record of it, in which it had.
   * @param lost as a store answers
   */
  async #whyLost(lost) {
    const { expires } = this.#hold;
    if (lost !== 'taken' || expires === null) return lost;
    try {
      await this.#readClock();
    } catch {
      return lost;
    }
    const { unixMs, asked } = this.#storeTime;
    return unixMs + (monotonic() - asked) < expires ? 'reverted' : lost;
  }

  /** @param lost as a store answers, or as it was found out */
  async #lose(lost) {
    this.#channel.endWindow();
    this.#state = 'lost';
    this.#lost = lost;
    if (lost !== 'taken') {
      this.#isNamespaceLost = true;
      this.#warnOfLoss();
    }
    this.#tell();
    await this.#acquireAnother();
  }

  #warnOfLoss() {
    const { ttl, maxClockSkew, maxAhead } = this.#limits;
    const { name } = this.#store;
    process.emitWarning(`workerId ${this.#hold.workerId} of ${name} ${LOST[this.#lost]}.`, {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_NAMESPACE_LOST',
      detail: `IDs of this process stop, for up to ${ttl + maxClockSkew + maxAhead} ms, until all that was issued before has passed. Since the loss, other holders of ${name} may have issued IDs that this process issued, too. After a restore, run: snowdrift recover URL`,
    });
  }

  async #acquireAnother() {
    const { workerId: before } = this.#hold;
    await this.#readClock();
    await this.#acquireUsable(monotonic(), (request, window) => {
      // While it was asked for: nobody else will give it up.
      if (this.#state === 'released') throw new Error('it was released');
      granted(this.#channel.moveTo(request, window));
    });
    if (this.#state === 'released') return;
    // Of any other loss there was a warning already.
    if (this.#lost !== 'taken') return;
    const how = `workerId ${before} was taken over by another process`;
    process.emitWarning(`${how}; IDs go on under workerId ${this.#hold.workerId}.`, {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_SLOT_LOST',
      detail: `Its lease in ${this.#store.name} had expired: this process was stopped or cut off.`,
    });
  }

  #failed(name, why, options) {
    const message = `${this.#store.name} failed to ${DOING[name]}: ${why}`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', message, options);
  }

  /** One call to the store, with a time limit of its own. */
  async #call(name, request, late = () => {}) {
    const { callTimeout } = this.#settings.leasing;
    // What is not released expires.
    const ms = name === 'release' ? Math.min(callTimeout, RELEASE_MS) : callTimeout;
    const abort = new AbortController();
    let timer;
    let abandon;
    const limit = new Promise((_, reject) => {
      const giveUp = (reason) => {
        abort.abort();
        reject(reason);
      };
      timer = setTimeout(() => giveUp(new NoAnswer(ms)), ms);
      abandon = () => giveUp(new Error('the lease was released'));
    });
    limit.catch(() => {});
    this.#calls.add(abandon);
    const asked = { wall: unixNow(), monotonic: monotonic() };
    const pending = (async () => this.#store[name]({ ...request, signal: abort.signal }))();
    pending
      .then((value) => abort.signal.aborted && late(readAnswer(name, value, request)))
      .catch(() => {});
    try {
      const answer = readAnswer(name, await Promise.race([pending, limit]), request);
      this.#noteTime(name, answer, asked);
      return answer;
    } catch (cause) {
      if (cause instanceof SnowFlakeError) throw cause;
      throw storeFailure(this.#store.server ?? this.#store.name, name, cause);
    } finally {
      clearTimeout(timer);
      this.#calls.delete(abandon);
    }
  }

  /** Notes the store's time, if an answer has it. */
  #noteTime(name, answer, asked) {
    const unixMs = name === 'now' ? answer : answer?.now;
    if (name === 'acquire' || name === 'renew') this.#answersHaveTime = unixMs !== undefined;
    if (unixMs === undefined) return;
    this.#storeTime = { unixMs, asked: asked.monotonic, answered: monotonic() };
    // The store read its clock at some moment of the call, which may have connected first. Of what the
    // skew can be, this is the least.
    const [least, most] = [asked.wall - unixMs, unixNow() - unixMs];
    this.#skew = Math.max(least, Math.min(most, 0));
  }
}

module.exports = { EngineLease };
