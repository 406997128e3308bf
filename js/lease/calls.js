'use strict';
// Calls to a store. Each has a time limit and an abort signal. Notes the store's clock from the replies.

const { SnowFlakeError } = require('../errors.js');
const { monotonic, runWithin, unixNow } = require('../time.js');
const { readReply } = require('../stores/replies.js');
const { storeFailure } = require('../stores/failures.js');
const { CLOSE_MS, RELEASE_MS } = require('./timing.js');

class StoreCalls {
  #store;
  #callTimeout;
  /** The store's clock in the last reply, and when the call began and ended, by `monotonic`. */
  #time;
  /** The least that this machine's clock minus the store's was then, ms. */
  skew = 0;
  /** Whether replies to acquire and renew include the store's time. */
  repliesHaveTime = false;
  /** The abort controllers of the calls under way. */
  #pending = new Set();
  /** What is left of calls to acquire: one that was given up may have acquired a slot, and then releases it. */
  #acquiring = new Set();

  constructor(store, callTimeout) {
    this.#store = store;
    this.#callTimeout = callTimeout;
  }

  /** The earliest and the latest time that the store's clock can show now, Unix ms. */
  get earliestNow() {
    return this.#time.unixMs + this.timeAge;
  }

  get latestNow() {
    return this.#time.unixMs + (monotonic() - this.#time.called);
  }

  /** ms since the store's clock was read. */
  get timeAge() {
    return monotonic() - this.#time.replied;
  }

  abandonAll() {
    for (const limit of this.#pending) limit.abort(new Error('the lease was released'));
  }

  /** @param onLate receives a reply that arrives after the time limit */
  async call(name, request, onLate = () => {}) {
    // Short for a release: a slot that is not released expires.
    const ms = name === 'release' ? Math.min(this.#callTimeout, RELEASE_MS) : this.#callTimeout;
    const send = async (signal) => this.#store[name]({ ...request, signal });
    const call = (signal) => {
      const sent = send(signal);
      const late = sent
        .then((value) => signal.aborted && onLate(readReply(name, value, request)))
        .catch(() => {})
        .finally(() => this.#acquiring.delete(late));
      if (name === 'acquire') this.#acquiring.add(late);
      return sent;
    };
    const limit = new AbortController();
    this.#pending.add(limit);
    const called = { wall: unixNow(), monotonic: monotonic() };
    try {
      const reply = readReply(name, await runWithin(ms, call, limit), request);
      this.#noteTime(name, reply, called);
      return reply;
    } catch (cause) {
      if (cause instanceof SnowFlakeError) throw cause;
      throw storeFailure(this.#store.server ?? this.#store.name, name, cause);
    } finally {
      this.#pending.delete(limit);
    }
  }

  #noteTime(name, reply, called) {
    const unixMs = name === 'now' ? reply : reply?.now;
    if (name === 'acquire' || name === 'renew') this.repliesHaveTime = unixMs !== undefined;
    if (unixMs === undefined) return;
    this.#time = { unixMs, called: called.monotonic, replied: monotonic() };
    // The store read its clock at some moment of the call, which may have begun with connecting. This is
    // the smallest skew that agrees with that.
    const [least, most] = [called.wall - unixMs, unixNow() - unixMs];
    this.skew = Math.max(least, Math.min(most, 0));
  }

  /** Until nothing is left of calls to acquire, within the time limit of a release. */
  async settle() {
    await runWithin(RELEASE_MS, () => Promise.all(this.#acquiring)).catch(() => {});
  }

  async close() {
    await runWithin(CLOSE_MS, async () => this.#store.close?.()).catch(() => {});
  }
}

module.exports = { StoreCalls };
