'use strict';
// The calls that a lease makes to a register: each has a time limit and an abort signal, and its reply is checked, since an
// application's own register may return anything. Notes the store's clock.

const { SnowFlakeError, describe } = require('../errors.js');
const { storeFailure } = require('../stores/failures.js');
const { hostMonotonic, runWithin, unixNow } = require('../time.js');
const { CLOSE_MS } = require('./timing.js');

const isObject = (value) => value !== null && typeof value === 'object';
/** Unix ms, with a fraction or without. */
const isTime = (value) => typeof value === 'number' && Math.abs(value) <= 8.64e15;
const isNow = (value) => value === undefined || isTime(value);
const isRecord = (value) =>
  isObject(value) && /^[0-9a-f]{16}$/.test(value.token) && typeof value.text === 'string';
const isFound = (value) => value === undefined || isRecord(value);
/** As the machine takes what was found: keys, tokens and texts. */
const listOf = (record) => (record === undefined ? [] : [['', record.token, record.text]]);

/** By function: the check of a reply, what it should be, and what the lease reads in it. */
const REPLIES = {
  now: [isTime, 'Unix ms', () => ({ kind: 'time' })],
  read: [
    (reply) => isFound(reply.record),
    '{ record } with the token and text that were written, or undefined',
    ({ record }) => ({ kind: 'read', records: listOf(record) }),
  ],
  list: [
    ({ records }) => records instanceof Map && [...records.values()].every(isRecord),
    '{ records }, a Map with the token and text of each',
    ({ records }) => ({
      kind: 'listed',
      records: [...records].map(([key, { token, text }]) => [String(key), token, text]),
    }),
  ],
  write: [
    (reply) => reply.isWritten === true || (reply.isWritten === false && isFound(reply.found)),
    '{ isWritten: true }, or { isWritten: false, found } with the record that it found',
    ({ isWritten, found }) => ({
      kind: isWritten ? 'written' : 'differs',
      records: listOf(found),
    }),
  ],
};

class StoreCalls {
  #register;
  #callTimeout;
  /** The abort controllers of the calls under way. */
  #pending = new Set();
  /** The least that this machine's clock minus the store's was in the last reply that had it, ms. */
  skew = 0;

  constructor(register, callTimeout) {
    this.#register = register;
    this.#callTimeout = callTimeout;
  }

  /** Ends the calls under way. A write may still be applied. */
  abandon() {
    for (const limit of this.#pending) limit.abort(new Error('the lease was released'));
  }

  /** Makes a call. Returns the reply as the machine takes it. */
  async make({ call, key, prefix, token, text, before }, ms = this.#callTimeout) {
    const send = async (signal) => {
      switch (call) {
        case 'write':
          return this.#register.write(key, { token, text }, before, { signal });
        case 'now':
          return this.#register.now({ signal });
        default:
          return this.#register[call](key ?? prefix, { signal });
      }
    };
    const called = { wall: unixNow(), monotonic: hostMonotonic() };
    const reply = await this.#within(call, Math.min(ms, this.#callTimeout), send);
    const [isValid, expected, read] = REPLIES[call];
    const isRight = call === 'now' || (isObject(reply) && isNow(reply.now));
    if (!isRight || !isValid(reply)) {
      const wrong = `it returned ${describe(reply)}; it must return ${expected}`;
      throw storeFailure(this.#server, call, new Error(wrong));
    }
    const now = call === 'now' ? reply : reply.now;
    if (now !== undefined) this.#noteTime(now, called.wall);
    return { records: [], ...read(reply), now, called: called.monotonic };
  }

  /** How the server describes its own run; undefined if it does not. */
  async describeRun() {
    if (typeof this.#register.describeRun !== 'function') return undefined;
    try {
      const run = await this.#within('describeRun', this.#callTimeout, (signal) =>
        this.#register.describeRun({ signal }),
      );
      return typeof run === 'string' && run !== '' ? run : undefined;
    } catch {
      return undefined;
    }
  }

  /** Has WORKER_NODE assign a worker ID. Calls go to its register from then on. */
  async assign(store, request) {
    const called = unixNow();
    const { workerId, now, register } = await this.#within('assign', this.#callTimeout, (signal) =>
      store.assign({ ...request, signal }),
    );
    this.#noteTime(now, called);
    this.#register = register;
    return workerId;
  }

  /** The store read its clock at some moment of the call, which may have begun with connecting. */
  #noteTime(now, called) {
    // The smallest skew that agrees with that.
    const [least, most] = [called - now, unixNow() - now];
    this.skew = Math.max(least, Math.min(most, 0));
  }

  async close() {
    await runWithin(CLOSE_MS, async () => this.#register.close?.()).catch(() => {});
  }

  get #server() {
    return this.#register.server ?? this.#register.name;
  }

  async #within(call, ms, send) {
    const limit = new AbortController();
    this.#pending.add(limit);
    try {
      return await runWithin(ms, send, limit);
    } catch (cause) {
      if (cause instanceof SnowFlakeError) throw cause;
      throw storeFailure(this.#server, call, cause);
    } finally {
      this.#pending.delete(limit);
    }
  }
}

module.exports = { StoreCalls };
