'use strict';
// The calls that a lease makes to a register: each has a time limit and an abort signal, and its reply is checked, since an
// application's own register may return anything.

const { describe } = require('../messages/errors.js');
const { NONE, ownOf, propertyOf, readAll } = require('../ids/properties.js');
const { storeFailure } = require('../stores/failures.js');
const { runWithin } = require('../runtime/time.js');
const { CLOSE_MS, DESCRIBE_MS } = require('./timing.js');

const isObject = (value) => value !== null && typeof value === 'object';
const TOKEN = /^[0-9a-f]{16}$/;
const NAMESPACE = /^[\w.-]{1,64}$/;
/** Unix ms, with a fraction or without. */
const isTime = (value) => typeof value === 'number' && Math.abs(value) <= 8.64e15;
const isNow = (value) => value === undefined || isTime(value);

/**
 * A record as the machine takes it: its key, token and text; undefined if it is none. Each property is read once, since an
 * application's object may have getters.
 */
function recordOf(value, key = '') {
  if (!isObject(value)) return undefined;
  const { token, text } = readAll(value, ['token', 'text']);
  const isRecord = typeof token === 'string' && TOKEN.test(token) && typeof text === 'string';
  return isRecord ? [String(key), token, text] : undefined;
}

/** A list of one record, or of none; undefined if it is no record. */
function foundOf(value) {
  if (value === undefined) return [];
  const record = recordOf(value);
  return record && [record];
}

function listedOf(records) {
  if (!(records instanceof Map)) return undefined;
  const all = [];
  for (const [key, value] of records) {
    const record = recordOf(value, key);
    if (record === undefined) return undefined;
    all.push(record);
  }
  return all;
}

const writtenOf = ({ isWritten, found }) => ({
  __proto__: null,
  isWritten,
  records: isWritten === true ? [] : isWritten === false ? foundOf(found) : undefined,
});

const PROPERTIES = ['now', 'record', 'records', 'isWritten', 'found'];

/** By function: what a reply must be, and what the machine takes, whose `records` are undefined if it is something else. */
const REPLIES = {
  read: [
    '{ record } with the token and text that were written, or undefined',
    ({ record }) => ({ records: foundOf(record) }),
  ],
  list: [
    '{ records }, a Map with the token and text of each',
    ({ records }) => ({ records: listedOf(records) }),
  ],
  write: [
    '{ isWritten: true }, or { isWritten: false, found } with the record that it found',
    writtenOf,
  ],
  now: ['Unix ms', (now) => ({ now, records: isTime(now) ? [] : undefined })],
  // An empty text describes nothing: it would be equal to another server's.
  describeRun: [
    'a text',
    (run) => ({ run: run || undefined, records: typeof run === 'string' ? [] : undefined }),
  ],
};

function readReply(call, reply) {
  const [expected, read] = REPLIES[call];
  const isValue = call === 'now' || call === 'describeRun';
  const own = isObject(reply) ? readAll(reply, PROPERTIES) : reply;
  const isRight = isObject(reply) !== isValue;
  const taken = isRight ? ownOf({ now: isValue ? undefined : own.now, ...read(own) }) : NONE;
  if (taken.records !== undefined && isNow(taken.now)) return taken;
  throw new Error(`it returned ${describe(reply)}; it must return ${expected}`);
}

/** Ends a register's connection, or gives that up after a time. */
async function closeRegister(register) {
  await runWithin(CLOSE_MS, async () => propertyOf(register, 'close')?.call(register)).catch(
    () => {},
  );
}

class StoreCalls {
  #register;
  #callTimeout;
  /** The abort controllers of the calls under way. */
  #pending = new Set();
  #showing = Promise.resolve();
  #isAbandoned = false;
  /** Whether a write has created the namespace. */
  hasCreated = false;

  constructor(register, callTimeout) {
    this.#register = register;
    this.#callTimeout = callTimeout;
  }

  /** Ends the calls under way. A write may still be applied. */
  abandon() {
    this.#isAbandoned = true;
    for (const limit of this.#pending) limit.abort(new Error('the lease was released'));
  }

  /**
   * Makes a call. Returns the reply as the machine takes it.
   * @param call as the machine names it. With `noteFault`, records of another format are noted there, and left out
   */
  async make(wanted, ms) {
    const { call, key, prefix, token, text, before, noteFault } = ownOf(wanted);
    const send = async (signal) => {
      switch (call) {
        case 'write':
          return this.#register.write(key, { token, text }, before, { signal });
        case 'now':
        case 'describeRun':
          return propertyOf(this.#register, call).call(this.#register, { signal });
        default:
          return this.#register[call](key ?? prefix, { signal, noteFault });
      }
    };
    const limit = call === 'describeRun' ? Math.min(ms, DESCRIBE_MS) : ms;
    // Without a prototype.
    const reply = await this.#within(call, limit, async (signal) =>
      readReply(call, await send(signal)),
    );
    const { now, ...taken } = reply;
    if (key === 'namespace' && before === undefined && reply.isWritten) this.hasCreated = true;
    return { __proto__: null, ...taken, now };
  }

  /** Shows people that a process holds a slot, or without `holder` no longer does. Nothing waits for it, or depends on it. */
  show(slot, holder) {
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

  /** Has a store assign a worker ID. Calls go to the register of that from then on. */
  async assign(store, request) {
    const { workerId, register } = await this.#within('assign', this.#callTimeout, (signal) =>
      store.assign({ ...request, signal }),
    );
    this.#register = register;
    return workerId;
  }

  /** The names that a store tells within a second. */
  async #names(call) {
    const find = async (signal) => this.#register[call]({ signal });
    const names = await this.#within('list', DESCRIBE_MS, find).catch(() => undefined);
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  }

  /** The schemas of a SQL database, other than the store's own, that have records. */
  otherSchemas() {
    return this.#names('schemas');
  }

  /** The names of the store's other namespaces, as far as it tells. */
  async otherNamespaces() {
    const all = (await this.#names('namespaces')).filter((name) => NAMESPACE.test(name));
    const [own] = /[^:/]*$/.exec(this.#register.name);
    const others = all.filter((name) => name !== own);
    // An application's store may have a name that does not end with the namespace. Then one of them is its own.
    return others.length === 1 && all.length === 1 ? [] : others;
  }

  close() {
    return closeRegister(this.#register);
  }

  get #server() {
    return propertyOf(this.#register, 'server') ?? this.#register.name;
  }

  async #within(call, ms, send) {
    const limit = new AbortController();
    this.#pending.add(limit);
    try {
      return await runWithin(ms, send, limit);
    } catch (cause) {
      throw storeFailure(this.#server, call, cause, ms < this.#callTimeout);
    } finally {
      this.#pending.delete(limit);
    }
  }
}

module.exports = { StoreCalls, closeRegister };
