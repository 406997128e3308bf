'use strict';
// Runs statements of a store on a pool of `pg` or `mysql2`, each on a connection that nobody else has meanwhile, in a transaction
// of its own: a rollback would undo what a lease relies on. A connection inside a transaction of the application is refused,
// and that transaction stays.
//
// PostgreSQL: each reply of the server ends with the status of the connection. A connection inside a transaction is refused
// before a statement, and its statement is not confirmed if a hook of the pool has begun one meanwhile.
//
// MySQL: `DO 0` changes nothing, and its reply has the status of the connection: whether it is inside a transaction or without
// autocommit. It comes before each statement, since that would hold a lock in the application's transaction. The reply to a
// change has the status, too.
//
// A connection is destroyed when its call is given up, since it may be half-open.

const { promisify } = require('node:util');

const { configError } = require('../messages/errors.js');
const { untilAborted } = require('../runtime/limits.js');
const { propertyOf } = require('../ids/properties.js');
const { guardCall, ignoreErrors } = require('./sockets.js');

/**
 * @import {
 *   MysqlCallbacks, MysqlConnection, MysqlPool, MysqlResult, PgClient, PgPool, Pooled, Query, Row, Value,
 * } from './types.d.ts'
 */

/** @param {string} name */
function uncommittedError(name) {
  return configError(
    `${name} does not commit a lease's records: its connection is inside a transaction, or has autocommit = 0. Give the store a pool of its own, with autocommit`,
  );
}

/** By dialect: members of pools that single connections lack. */
const POOLS = {
  postgres: { connect: 'function', totalCount: 'number' },
  mysql: { getConnection: 'function' },
};

/**
 * By pool: the connections that calls have requested which were given up since.
 * @type {WeakMap<object, Set<Promise<Pooled>>>}
 */
const abandoned = new WeakMap();

/**
 * Takes a connection from a pool. A pool does not cancel a request: one of a call that was given up serves the next call,
 * so that waiting requests do not add up.
 * @template {Pooled} Connection
 * @param {object} pool
 * @param {AbortSignal} signal
 * @param {() => Promise<Connection>} request
 */
async function takeConnection(pool, signal, request) {
  if (!abandoned.has(pool)) abandoned.set(pool, new Set());
  const requests = /** @type {Set<Promise<Connection>>} */ (abandoned.get(pool));
  const [first] = requests;
  requests.delete(first);
  const requested = first ?? request();
  try {
    return await untilAborted(signal, () => requested);
  } catch (failure) {
    if (signal.aborted) {
      requests.add(requested);
      const isUnused = () => requests.delete(requested);
      requested.then((connection) => isUnused() && connection.release()).catch(isUnused);
    }
    throw failure;
  }
}

/**
 * Runs `run` on a connection of a pool.
 * @template {Pooled} Connection
 * @template T
 * @param {object} own `destroy` takes a connection out of its pool
 * @param {object} own.pool
 * @param {() => Promise<Connection>} own.request
 * @param {(connection: Connection) => void} own.destroy
 * @param {AbortSignal} signal
 * @param {(connection: Connection) => Promise<T>} run
 */
async function onPool({ pool, request, destroy }, signal, run) {
  signal.throwIfAborted();
  const connection = await takeConnection(pool, signal, request);
  let isOurs = true;
  const abort = () => {
    isOurs = false;
    destroy(connection);
  };
  signal.addEventListener('abort', abort);
  try {
    // It may have been given up while the connection arrived.
    signal.throwIfAborted();
    return await guardCall(connection, () => run(connection));
  } finally {
    signal.removeEventListener('abort', abort);
    if (isOurs) connection.release();
  }
}

/**
 * Reads values of pg as text: as sql-dialects.js selects them, they are the same as text and as binary. A server may name any
 * type, an application may have replaced pg's parsers, and pg's own parser of bytes never returns from some texts.
 */
const TYPES = { getTypeParser: () => String };

/**
 * Of connections whose version of pg has no getTransactionStatus(): the status, as far as it is known.
 * @type {WeakMap<PgClient, string | undefined>}
 */
const statuses = new WeakMap();

/**
 * 'I' outside a transaction, 'T' or 'E' inside; undefined or null before the first reply.
 * @param {PgClient} connection
 */
function statusOf(connection) {
  const ask = propertyOf(connection, 'getTransactionStatus');
  if (ask !== undefined) return ask.call(connection);
  if (!statuses.has(connection)) {
    statuses.set(connection, undefined);
    const wire = propertyOf(connection, 'connection');
    wire?.on('readyForQuery', ({ status }) => statuses.set(connection, status));
  }
  return statuses.get(connection);
}

/** Replaces each `?` with PostgreSQL's $1, $2, ... @param {string} text */
function numberParameters(text) {
  let n = 0;
  return text.replaceAll('?', () => `$${++n}`);
}

/**
 * Runs statements on a Pool of `pg`.
 * @param {string} name of the store
 * @param {object} pool a PgPool, unless there is a `request`
 * @param {() => Promise<PgClient>} [request] requests a connection of another pool
 * @returns {Query}
 */
function queryPostgres(name, pool, request = () => /** @type {PgPool} */ (pool).connect()) {
  const own = {
    pool,
    request: async () => ignoreErrors(await request()),
    /** @param {PgClient} connection */
    destroy: (connection) => connection.release(true),
  };
  return (text, values, signal) =>
    onPool(own, signal, async (connection) => {
      if ((statusOf(connection) ?? 'I') !== 'I') throw uncommittedError(name);
      // Without values, pg accepts several statements in one text.
      const query = { text: numberParameters(text), values, types: TYPES };
      const { rows } = await connection.query(query);
      if (statusOf(connection) !== 'I') throw uncommittedError(name);
      return rows;
    });
}

/** What a statement overrides of the options of the application's client. */
const OWN = { rowsAsArray: false, nestTables: false, typeCast: true, namedPlaceholders: false };

/** Bits of the status in MySQL's reply to a change. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

/**
 * A connection of `mysql2`, or of `mysql`, as one of `mysql2/promise`.
 * @template {MysqlCallbacks} Connection
 * @param {Connection} connection
 */
const promised = (connection) => ({
  connection,
  /** @type {MysqlConnection['query']} */
  query: async (statement) => [await promisify(connection.query).call(connection, statement)],
  release: () => connection.release(),
  destroy: () => connection.destroy(),
});

/**
 * Runs a statement on a connection of `mysql2/promise`.
 * @param {string} name of the store
 * @param {Pick<MysqlConnection, 'query'>} connection
 * @param {string} text
 * @param {Value[]} values
 * @returns {ReturnType<Query>} of a change as many rows as it has changed, with `insertId`
 */
async function runMysql(name, connection, text, values) {
  /** @param {[MysqlResult, ...unknown[]]} reply */
  const check = ([{ serverStatus }]) => {
    if ((serverStatus & (IN_TRANSACTION | AUTOCOMMIT)) !== AUTOCOMMIT) throw uncommittedError(name);
  };
  check(await connection.query('DO 0'));
  const reply = await connection.query({ ...OWN, sql: text, values });
  const [result] = reply;
  if (/^S(ELECT|HOW)/.test(text)) return result;
  check(reply);
  const { affectedRows, insertId } = result;
  return Array.from({ length: affectedRows }, () => /** @type {Row} */ ({ insertId }));
}

/**
 * As `queryPostgres`, on a pool of `mysql2` or `mysql2/promise`.
 * @param {string} name
 * @param {object} pool a MysqlPool, unless there is a `request`
 * @param {() => Promise<MysqlConnection>} [request]
 * @returns {Query}
 */
function queryMysql(name, pool, request) {
  const promise = propertyOf(pool, 'promise');
  const promising = /** @type {MysqlPool} */ (
    typeof promise === 'function' ? promise.call(pool) : pool
  );
  const own = {
    pool,
    async request() {
      const connection = await (request?.() ?? promising.getConnection());
      // What lasts is the connection within: each call gets a wrapper of its own, whose listeners would stay.
      ignoreErrors(connection.connection ?? connection);
      return connection;
    },
    /** @param {MysqlConnection} connection */
    destroy: (connection) => connection.destroy(),
  };
  return (text, values, signal) =>
    onPool(own, signal, (connection) => runMysql(name, connection, text, values));
}

module.exports = {
  ...{ POOLS, numberParameters, promised, queryMysql, queryPostgres, runMysql },
  uncommittedError,
};
