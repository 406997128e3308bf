'use strict';
// The calls that a lease makes to a register: each has a time limit and an abort signal, and its reply is checked, since an
// application's own register may return anything.

const { AsyncResource } = require('node:async_hooks');
const { describe } = require('../messages/errors.js');
const { propertyOf, readAll } = require('../ids/properties.js');
const { storeFailure } = require('../stores/failures.js');
const { runWithin } = require('../runtime/limits.js');
const { OUTSIDE } = require('../runtime/originals.js');
const { CLOSE_MS, NAMES_MS } = require('./timing.js');

/**
 * @import { LeaseInput } from '../runtime/addon-types.d.ts'
 * @import { Assign, ForeignStore, Holder, Slot, WantedWorker } from '../stores/types.d.ts'
 * @import { Bare, CallCommand } from '../types.js'
 */

/** A reply that was read. @typedef {Bare & { now?: unknown, record?: unknown, isWritten?: unknown, found?: unknown }} Reply */

/**
 * @param {unknown} value
 * @returns {value is object}
 */
const isObject = (value) => value !== null && typeof value === 'object';
/** Zeros are none. */
const TOKEN = /^(?!0{16})[0-9a-f]{16}$/;
const NAMESPACE = /^[\w.-]{1,64}$/;
/**
 * Unix ms, with a fraction or without; undefined where a reply leaves it out.
 * @param {unknown} value
 * @returns {value is number | undefined}
 */
const isNow = (value) =>
  value === undefined || (typeof value === 'number' && Math.abs(value) <= 8.64e15);

/**
 * What was found, as the driver takes it; undefined if it is no record. Each property is read once, since an application's object
 * may have getters.
 * @param {unknown} value
 * @returns {LeaseInput | undefined}
 */
function foundOf(value) {
  const kind = 'found';
  if (value === undefined) return { kind };
  if (!isObject(value)) return undefined;
  const { token, text } = readAll(value, ['token', 'text']);
  const isRecord = typeof token === 'string' && TOKEN.test(token) && typeof text === 'string';
  return isRecord ? { kind, token, text } : undefined;
}

/**
 * By call: what its reply must be, and what the driver takes; undefined if it is something else.
 * @type {Record<CallCommand['call'], [expected: string, read: (reply: Reply) => LeaseInput | undefined]>}
 */
const REPLIES = {
  read: [
    '{ record } with the token and text that were written, or undefined',
    ({ record }) => foundOf(record),
  ],
  write: [
    '{ isWritten: true }, or { isWritten: false, found } with the record that it found',
    ({ isWritten, found }) => {
      if (isWritten === true) return { kind: 'written' };
      return isWritten === false ? foundOf(found) : undefined;
    },
  ],
  now: ['Unix ms', ({ now }) => (now === undefined ? undefined : { kind: 'found' })],
};

/**
 * @param {CallCommand['call']} call
 * @param {unknown} reply
 * @returns {LeaseInput & Bare}
 */
function readReply(call, reply) {
  const [expected, read] = REPLIES[call];
  /** @type {Reply | undefined} */
  let own;
  if (call === 'now') own = { __proto__: null, now: reply };
  else if (isObject(reply)) own = readAll(reply, ['now', 'record', 'isWritten', 'found']);
  const now = own?.now;
  if (own !== undefined && isNow(now)) {
    const taken = read(own);
    if (taken !== undefined) return { __proto__: null, ...taken, now };
  }
  throw new Error(`it returned ${describe(reply)}; it must return ${expected}`);
}

/** Ends a register's connection, or gives that up after a time. @param {{ close?(): unknown }} register */
async function closeRegister(register) {
  await runWithin(CLOSE_MS, async () => propertyOf(register, 'close')?.call(register)).catch(
    () => {},
  );
}

class StoreCalls {
  #register;
  /** Its name in errors, also once it has assigned a register of its own. */
  #server;
  #callTimeout;
  /** The abort controllers of the calls under way. @type {Set<AbortController>} */
  #pending = new Set();
  /** @type {Promise<unknown>} */
  #showing = Promise.resolve();
  #isAbandoned = false;
  /** Whether a write has created the namespace. */
  hasCreated = false;

  /**
   * @param {ForeignStore} register
   * @param {number} callTimeout
   */
  constructor(register, callTimeout) {
    this.#register = register;
    this.#server = propertyOf(register, 'server') ?? register.name;
    this.#callTimeout = callTimeout;
  }

  /** Ends the calls under way. A write may still be applied. */
  abandon() {
    this.#isAbandoned = true;
    for (const limit of this.#pending) limit.abort(new Error('the lease was released'));
  }

  /**
   * Makes the call that the driver wants, within its time. Returns the driver's next input.
   * @param {CallCommand} wanted
   */
  async make(wanted) {
    const { call, within } = wanted;
    const reply = await this.#within(call, within, async (signal) =>
      readReply(call, await this.#send(wanted, { signal })),
    );
    if (wanted.call === 'write' && reply.kind === 'written') {
      if (wanted.key === 'namespace' && wanted.before === undefined) this.hasCreated = true;
    }
    return reply;
  }

  /**
   * @param {CallCommand} wanted
   * @param {{ signal: AbortSignal }} options
   */
  async #send(wanted, options) {
    if (wanted.call === 'now') return this.#register.now(options);
    if (wanted.call === 'read') return this.#register.read(wanted.key, options);
    const { key, token, text, before } = wanted;
    return this.#register.write(key, { token, text }, before, options);
  }

  /**
   * Shows people that a process holds a slot, or without `holder` no longer does. Nothing waits for it, or depends on it.
   * @param {Slot} slot
   * @param {Holder} holder
   */
  show(slot, holder) {
    /** @param {AbortSignal} signal */
    const send = (signal) =>
      propertyOf(this.#register, 'show')?.call(this.#register, slot, holder, { signal });
    this.#showing = this.#showing
      .then(
        () =>
          this.#isAbandoned ||
          this.#within('show', this.#callTimeout, async (signal) => send(signal)),
      )
      .catch(() => {});
  }

  /**
   * Has a store assign a worker ID. Calls go to the register of that from then on.
   * @param {Assign} assign
   * @param {Omit<WantedWorker, 'signal'>} request
   */
  async assign(assign, request) {
    // In the caller's context, which knows the assigners that have called this one.
    const send = AsyncResource.bind((/** @type {AbortSignal} */ signal) =>
      assign({ ...request, signal }),
    );
    const { workerId, register } = await this.#within('assign', this.#callTimeout, send);
    this.#register = register;
    return workerId;
  }

  /**
   * The names that a store tells within a second.
   * @param {'namespaces' | 'schemas'} call
   * @returns {Promise<string[]>}
   */
  async #names(call) {
    /** @param {AbortSignal} signal */
    const find = async (signal) =>
      propertyOf(this.#register, call)?.call(this.#register, { signal });
    const names = await this.#within(call, NAMES_MS, find).catch(() => undefined);
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  }

  /** The schemas of a SQL database, other than the store's own, that have records. */
  otherSchemas() {
    return this.#names('schemas');
  }

  /** The names of the store's other namespaces, as far as it tells. */
  async otherNamespaces() {
    const all = (await this.#names('namespaces')).filter((name) => NAMESPACE.test(name));
    const [own] = /[^:/]*$/.exec(this.#register.name) ?? [];
    const others = all.filter((name) => name !== own);
    // An application's store may have a name that does not end with the namespace. Then one of them is its own.
    return others.length === 1 && all.length === 1 ? [] : others;
  }

  close() {
    return closeRegister(this.#register);
  }

  /**
   * Makes a call, outside of the async context of the lease, the ID or the end that needs it: a client may run what is called within a
   * transaction's callback in that transaction, as Sequelize does with CLS, and a rollback would undo what the lease relies on.
   * @template T
   * @param {string} call
   * @param {number} ms
   * @param {(signal: AbortSignal) => Promise<T>} send
   */
  async #within(call, ms, send) {
    const limit = new AbortController();
    this.#pending.add(limit);
    try {
      return await OUTSIDE.runInAsyncScope(() => runWithin(ms, send, limit));
    } catch (cause) {
      throw storeFailure(this.#server, call, cause, ms < this.#callTimeout);
    } finally {
      this.#pending.delete(limit);
    }
  }
}

module.exports = { StoreCalls, closeRegister };
