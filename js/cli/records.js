'use strict';
// The records of a namespace, for commands. Rust reads them, and makes those that are written.

/**
 * @import { BucketKeys, BucketValues, Layout, NamespaceValues, UnreadableValues } from '../types.js'
 * @import { FileRecord, LeaseRecord, Register } from '../stores/types.js'
 *
 * What was found under a key. One that is none of snowdrift's has a `fault` instead, and a file that nobody can use a `failure`.
 * @typedef {LeaseRecord | FileRecord | Absent} Found
 * @typedef {{ fault?: unknown, failure?: Error, token?: undefined, text?: undefined }} Absent
 *
 * The values of records, with the text.
 * @typedef {NamespaceValues & { text: string }} Namespace
 * @typedef {BucketValues & { text: string }} Bucket
 * @typedef {UnreadableValues & (Kept | OfOthers)} Unreadable
 * @typedef {{ text: string, failure?: undefined }} Kept
 * @typedef {{ isOther: true, text?: undefined, failure?: Error }} OfOthers
 *
 * Of the holders of a namespace, ms.
 * @typedef {{ ttl: number, maxClockSkew: number, maxAhead: number }} Limits
 *
 * @typedef {InstanceType<typeof Records>} Store
 */

const { SnowFlakeError, unwrap } = require('../messages/errors.js');
const { urlOf } = require('../messages/faults.js');
const { printable } = require('../messages/secrets.js');
const { layoutKey } = require('../ids/layout-key.js');
const { layouts } = require('../ids/layouts.js');
const { closeRegister } = require('../lease/calls.js');
const native = require('../runtime/native.js');
const { connect } = require('../stores/connect.js');
const { isFormatConflict, storeFailure } = require('../stores/failures.js');
const { runWithin } = require('../runtime/limits.js');
const { hostMonotonic, moment } = require('../runtime/time.js');
const { table } = require('./table.js');
const { distance, layoutWord } = require('./words.js');

/** Time limit of a call to a store, ms. */
const CALL_MS = 10_000;

/** The buckets that are read or written at one time, and how long a command goes on to read others, ms. */
const AT_ONCE = 8;
const READ_MS = 60_000;

/** The largest error of a store's clock reading, ms: etcd's clock has whole seconds. */
const RESOLUTION_MS = 500;

/** The most tries of a change while other processes change the same record. A holder renews thrice in a ttl. */
const MAX_TRIES = 20;

/** The most names of other namespaces, and of schemas, in an error, and what a name of a namespace is. */
const MOST_NAMES = 20;
const NAME = /^[\w.-]{1,64}$/;

/**
 * The first of many names, and how many more there are.
 * @param {string[]} names
 */
function shorten(names) {
  const more = names.length - MOST_NAMES;
  if (more <= 0) return names;
  return [...names.slice(0, MOST_NAMES - 1), `${names[MOST_NAMES - 1]} and ${more} more`];
}

/** The key of the namespace's own record. */
const KEY = /** @type {const} */ ('namespace');

/** Of records of no namespace, to find buckets whose namespace is lost. */
const ANY_LIMITS = { ttl: 1000, maxClockSkew: 0, maxAhead: 0 };

const newId = () => native.newToken();

/**
 * Why nobody can read a record. `isOther`: another version or another program wrote it.
 * @param {UnreadableValues} values
 */
function reasonOf({ isOther, line, bytes }) {
  if (isOther) return 'is no record of this version of snowdrift';
  return bytes === undefined ? `is damaged in line ${line}` : `is damaged: it has ${bytes} bytes`;
}

/**
 * The values of a record that was read; undefined if there was none.
 * @param {string} key
 * @param {Found | undefined} record
 * @param {number} [now] the store's clock, for the states of lines
 * @param {string} [namespace] the text of the namespace, for these, too
 */
function valuesOf(key, record, now, namespace) {
  if (record === undefined) return undefined;
  const { text } = record;
  if (text === undefined) {
    const { failure } = record;
    return /** @type {Unreadable} */ ({ kind: 'unreadable', isOther: true, failure });
  }
  const values = native.readRecord(key, text, now, namespace);
  return /** @type {Namespace | Bucket | Unreadable} */ ({ ...values, text });
}

/** @param {Found | undefined} record */
function namespaceIn(record) {
  return /** @type {Namespace | Unreadable | undefined} */ (valuesOf(KEY, record));
}

/**
 * @param {string} key
 * @param {Found} record
 * @param {[now: number, namespace?: string]} given
 */
function bucketIn(key, record, ...given) {
  return /** @type {Bucket | Unreadable} */ (valuesOf(key, record, ...given));
}

/** @param {string} text which was read before, or is Rust's own */
function namespaceOf(text) {
  return /** @type {Namespace} */ (valuesOf(KEY, { token: '', text }));
}

/**
 * The keys of a namespace's buckets. With `isAll` also those that it does not count, where there are few.
 * @param {string} text of the namespace, which was read before, or is Rust's own
 * @param {boolean} isAll
 * @param {number} [datacenterId]
 */
function keysOf(text, isAll, datacenterId) {
  return /** @type {BucketKeys} */ (native.bucketKeys(text, isAll, datacenterId));
}

/** The records of a namespace. */
class Records {
  #register;

  /** @param {Register<LeaseRecord> | Register<FileRecord>} register */
  constructor(register) {
    this.name = register.name;
    /** Of a namespace that is created: the worker IDs of a bucket. */
    this.size = register.bucketSize ?? 32;
    this.isDirectory = register.isDirectory === true;
    /** Of its leases, unless their options have one. */
    this.ttl = register.ttl;
    /** As a command takes it. */
    this.url = urlOf(this.name);
    /** Where a record is, for people. */
    this.placeOf =
      register.placeOf ?? ((/** @type {string} */ key) => `${this.name}: the key ${key}`);
    this.#register = register;
  }

  /**
   * @template T
   * @param {string} name
   * @param {(signal: AbortSignal) => Promise<T>} send
   */
  async #call(name, send) {
    try {
      return await runWithin(CALL_MS, send);
    } catch (cause) {
      throw storeFailure(this.#register.server ?? this.name, name, cause);
    }
  }

  /** Reads the latest time that the store's clock can show now, Unix ms. */
  async latestNow() {
    const called = hostMonotonic();
    const now = await this.#call('now', (signal) => this.#register.now({ signal }));
    return now + hostMonotonic() - called + RESOLUTION_MS;
  }

  /**
   * A record: its token and text; undefined if there is none. One that is none of snowdrift's has a `fault` instead, and a
   * file that nobody can use a `failure`.
   * @param {string} key
   * @returns {Promise<Found | undefined>}
   */
  async read(key) {
    const read = (/** @type {AbortSignal} */ signal) => this.#register.read(key, { signal });
    try {
      return (await this.#call('read', read)).record;
    } catch (fault) {
      if (isFormatConflict(fault)) return { fault };
      throw fault;
    }
  }

  /**
   * Writes a record in the place of the one with the token `before`; undefined where there must be none.
   * @param {string} key
   * @param {string} text
   * @param {string | undefined} before
   * @returns the token, or with `isWritten` false what it `found` instead: undefined for nothing
   */
  async write(key, text, before) {
    const token = native.newToken();
    const reply = await this.#call('write', (signal) =>
      this.#register.write(key, { token, text }, before, { signal }),
    );
    return reply.isWritten
      ? { isWritten: reply.isWritten, token }
      : { isWritten: reply.isWritten, found: reply.found };
  }

  /**
   * Changes a record until it is written.
   * @template {string | undefined} Text
   * @param {string} key
   * @param {(found: Found | undefined) => Promise<Text>} change returns the text for the record that was found; undefined to leave it
   * @returns the text that was written; undefined if nothing was
   */
  async change(key, change) {
    let found = await this.read(key);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const text = await change(found);
      if (text === undefined) return text;
      const reply = await this.write(key, text, found?.token);
      if (reply.isWritten) return text;
      found = reply.found;
    }
    const record = key === KEY ? 'the record of the namespace' : `the record ${key}`;
    const what = `${this.name}: other processes keep changing ${record}. Run the command again`;
    throw new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  }

  /** The values of the namespace; undefined if there is none. */
  async namespace() {
    return namespaceIn(await this.read(KEY));
  }

  /**
   * The text of a new namespace.
   * @param {Layout} [layout]
   * @param {Limits} [limits]
   */
  newNamespace(layout = layouts.node, { ttl, maxClockSkew, maxAhead } = ANY_LIMITS) {
    const limits = /** @type {const} */ ([ttl, maxClockSkew, maxAhead]);
    return /** @type {string} */ (native.newNamespaceText(newId(), layout, ...limits, this.size));
  }

  /**
   * Calls `use` with each of these keys, several at a time. The first failure ends it, unless each key is a file of its own.
   * @param {string[]} keys
   * @param {(key: string) => Promise<void>} use
   */
  async each(keys, use) {
    const left = keys.values();
    /** @type {unknown[]} */
    const failures = [];
    const next = async () => {
      for (const key of left) {
        if (failures.length > 0 && !this.isDirectory) return;
        await use(key).catch((failure) => failures.push(failure));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
    if (failures.length > 0) throw failures[0];
  }

  /**
   * The keys of the files that a directory has; undefined of another store.
   * @returns {Promise<string[] | undefined>}
   */
  async files() {
    const { buckets } = this.#register;
    if (!this.isDirectory || buckets === undefined) return undefined;
    return await this.#call('read', (signal) => buckets({ signal }));
  }

  /**
   * Reads buckets. One that could not be read has the `failure`.
   * @param {string[]} keys
   * @returns the records that there are, by key, and the number of those that were not read in time
   */
  async readBuckets(keys) {
    const end = hostMonotonic() + READ_MS;
    /** @type {[key: string, record: Found][]} */
    const found = [];
    let unread = 0;
    await this.each(keys, async (key) => {
      if (hostMonotonic() > end) {
        unread++;
        return;
      }
      const record = await this.read(key).catch((failure) => ({ failure }));
      if (record !== undefined) found.push([key, record]);
    });
    return { found, unread };
  }

  /**
   * Names of the store, as far as it tells.
   * @param {'namespaces' | 'schemas'} call
   */
  async #names(call) {
    /** @type {(signal: AbortSignal) => Promise<string[]>} */
    const find = async (signal) => (await this.#register[call]?.({ signal })) ?? [];
    const names = await runWithin(CALL_MS, find).catch(() => /** @type {string[]} */ ([]));
    return names.sort();
  }

  /** The other namespaces of the store, and the other schemas of its database that have records. */
  async #others() {
    const names = (await this.#names('namespaces')).filter((name) => NAME.test(name));
    const schemas = (await this.#names('schemas')).map((name) => `schema ${printable(name)}`);
    return [...shorten(names), ...shorten(schemas)];
  }

  /**
   * The error of a namespace that there is not.
   * @param {string} advice what to do then
   */
  async missing(advice) {
    const others = await this.#others();
    const has = others.length > 0 ? `: this store has ${others.join(', ')}` : '';
    const name = this.#register.schemas === undefined ? 'name' : 'name and schema';
    const what = `${this.name} has no record of a namespace. Check its ${this.isDirectory ? 'path' : name}${has}. ${advice}`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  }

  close() {
    return closeRegister(this.#register);
  }
}

/**
 * Opens the records of a URL for `use`, and closes the store afterwards.
 * @template T
 * @param {URL} url
 * @param {(records: Store) => Promise<T>} use
 */
async function withRecords(url, use) {
  const records = new Records(await connect(url));
  try {
    return await use(records);
  } finally {
    await records.close();
  }
}

/**
 * The last ms of a tick, Unix ms; null for the floor of a new namespace.
 * @param {Layout} layout
 * @param {number} tick
 */
const endOf = (layout, tick) => (tick > 0 ? unwrap(native.tickEnd(layout, tick)) : null);

/** @type {(layout: Layout, tick: number) => string} */
const momentOf = (layout, tick) => moment(unwrap(native.tickEnd(layout, tick)));

/**
 * Why nobody takes a line whose ceiling is impossible.
 * @type {(layout: Layout, tick: number) => string}
 */
const aheadOf = (layout, tick) =>
  `has a ceiling that no holder can have: ${momentOf(layout, tick)}`;

/**
 * A namespace with its floor in Unix ms.
 * @param {Namespace} namespace
 */
function asJson({ id, layout, ttl, maxClockSkew, maxAhead, floor }) {
  const limits = { ttl, maxClockSkew, maxAhead };
  return { id, layout: layoutKey(layout), ...limits, floor: endOf(layout, floor) };
}

/**
 * @param {string} store its name
 * @param {Namespace} namespace
 * @param {number} [now] the store's clock; without it, the floor is left out
 */
function namespaceLines(store, namespace, now) {
  const { id, layout, ttl, maxClockSkew, maxAhead, floor } = asJson(namespace);
  const word = layoutWord(namespace.layout);
  const wait = (floor ?? 0) > (now ?? 0) ? ` (${distance(floor ?? 0, now ?? 0)})` : '';
  const shown = floor === null ? 'none' : `${moment(floor)}${wait}`;
  return table([
    ['store', store],
    ['namespace ID', id],
    ['layout', word === layout ? word : `${word} (${layout})`],
    ['limits', `ttl ${ttl} ms, maxClockSkew ${maxClockSkew} ms, maxAhead ${maxAhead} ms`],
    ...(now === undefined ? [] : [['floor', shown]]),
  ]);
}

module.exports = {
  KEY,
  Records,
  aheadOf,
  asJson,
  bucketIn,
  endOf,
  keysOf,
  namespaceIn,
  namespaceLines,
  namespaceOf,
  newId,
  reasonOf,
  withRecords,
};
