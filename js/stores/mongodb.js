'use strict';
// A register in MongoDB, through the driver `mongodb`, 6 or 7. A record is a document of the collection
// `snowdrift_records`:
//
//   { _id: 'NAMESPACE:KEY', token, text }
//
// A write is one insert, or one update whose filter has the token. If it has changed nothing, a read finds out why.
// Its write concern is `majority`, on disk: what fewer members have is lost with the primary. A write whose concern
// fails rejects, and may have taken effect.
//
// Reads are linearizable. The primary confirms that it still is one before it replies; "majority" alone shows the
// past of a primary that was cut off. A server outside a replica set refuses them, as does one of another product
// that has none.
//
// The application's defaults for its client do not apply: neither other concerns, nor secondaries, nor values as bytes.

const { types } = require('node:util');

const { describe, configError } = require('../messages/errors.js');
const { memberType } = require('../messages/checks.js');
const { propertyOf } = require('../ids/properties.js');
const { checkClient, readOptions } = require('./options.js');
const { createRegister, decode } = require('./register.js');

/** A document: one of ours has texts. @typedef {{ _id: unknown, token: unknown, text: unknown }} Stored */

/**
 * What is used of a collection. The signal: of the driver since 6.13.
 * @typedef {object} Collection
 * @property {(filter: object, options: object) => Promise<Stored | null>} findOne
 * @property {(filter: object, options: object) => { toArray(): Promise<Stored[]> }} find
 * @property {(document: Stored) => Promise<unknown>} insertOne
 * @property {(filter: object, change: object) => Promise<{ matchedCount: number }>} updateOne
 */

/**
 * What is used of a Db.
 * @typedef {object} Db
 * @property {string} databaseName
 * @property {(name: string, options: object) => Collection} collection
 * @property {(command: object, options: object) => Promise<{ localTime: unknown }>} command
 */

/** What is used of a MongoClient. @typedef {{ db(name?: string): Db }} Client */

const CLIENTS =
  'mongodb() takes a MongoClient or a Db of mongodb; of mongoose, mongoose.connection.getClient()';

/** When the server ends what a caller may have given up: the connection is free again, ms. */
const MOST_MS = 30_000;

/** How replies are read: as by default. */
const VALUES = { raw: false, promoteValues: true, promoteLongs: true, useBigInt64: false };

const PRIMARY = { readPreference: 'primary', ...VALUES };

const CONCERNS = {
  ...PRIMARY,
  readConcern: { level: 'linearizable' },
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: MOST_MS },
};

/** The most names of namespaces that are read. */
const MOST_NAMES = 1000;

/** The code of an error of a second document with the same _id. */
const DUPLICATE_KEY = 11_000;

/**
 * The database of a client, or a Db itself.
 * @param {{ db: unknown } | { collection: unknown, command: unknown }} given
 * @param {string} [database]
 */
function databaseOf(given, database) {
  const isName = typeof database === 'string' && /^[^/\\. "$*<>:|?\0]{1,63}$/.test(database);
  if (database !== undefined && !isName) {
    throw configError(
      `database must be the name of a database of MongoDB; it is ${describe(database)}`,
    );
  }
  const own = /** @type {unknown} */ (given);
  if (memberType(given, 'db') === 'function') {
    checkClient(given, {}, CLIENTS);
    return /** @type {Client} */ (own).db(database);
  }
  checkClient(given, { collection: 'function', command: 'function' }, CLIENTS);
  if (database === undefined) return /** @type {Db} */ (own);
  throw configError('the option database needs a MongoClient: a Db is of one database already');
}

/** @type {typeof import('./mongodb.d.ts').mongodb} */
function mongodb(given, options) {
  const { namespace, database } = readOptions(options, ['namespace', 'database']);
  const db = databaseOf(given, database);
  const name = `mongodb:${db.databaseName}/${namespace}`;
  const records = db.collection('snowdrift_records', CONCERNS);
  /** @param {string} key */
  const idOf = (key) => `${namespace}:${key}`;

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function read(key, signal) {
    const found = await records.findOne({ _id: idOf(key) }, { maxTimeMS: MOST_MS, signal });
    if (found === null) return { record: undefined };
    const { token, text } = found;
    const isText = typeof token === 'string' && typeof text === 'string';
    return { record: decode(name, key, isText ? `${token} ${text}` : describe(found)) };
  }

  /** @param {Stored} document */
  async function insert(document) {
    try {
      await records.insertOne(document);
      return true;
    } catch (failure) {
      if (propertyOf(Object(failure), 'code') === DUPLICATE_KEY) return false;
      throw failure;
    }
  }

  /**
   * @param {object} filter
   * @param {object} change
   */
  async function update(filter, change) {
    const { matchedCount } = await records.updateOne(filter, change);
    if (matchedCount === 0 || matchedCount === 1) return matchedCount === 1;
    throw new Error(`an update has changed ${describe(matchedCount)} documents`);
  }

  return createRegister({
    name,
    read,

    async now(signal) {
      const { localTime } = await db.command({ hello: 1 }, { ...PRIMARY, signal });
      if (types.isDate(localTime)) return localTime.getTime();
      throw new Error(`hello returned the time ${describe(localTime)}`);
    },

    async write(key, { token, text }, before, signal) {
      const _id = idOf(key);
      const isWritten =
        before === undefined
          ? await insert({ _id, token, text })
          : await update({ _id, token: before }, { $set: { token, text } });
      if (isWritten) return { isWritten };
      signal.throwIfAborted();
      const { record: found } = await read(key, signal);
      return { isWritten, found };
    },

    async namespaces(signal) {
      const filter = { _id: /:namespace$/ };
      const limits = { limit: MOST_NAMES, maxTimeMS: MOST_MS, signal };
      const found = await records.find(filter, { projection: { _id: 1 }, ...limits }).toArray();
      return found.map(({ _id }) => String(_id).split(':')[0]);
    },
  });
}

/** @satisfies {typeof import('./mongodb.js')} */
module.exports = { mongodb };
