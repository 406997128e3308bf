'use strict';
// Runs SQL statements through the clients of `pg` and `mysql2`, and statements whose changes must be committed at
// once: a rollback would undo what a lease relies on.

const { configError, describe } = require('../errors.js');
const { ofClient } = require('./failures.js');
const { guardCall, ignoreErrors } = require('./sockets.js');
const { DIALECTS } = require('./sql-dialects.js');

/** The most tries of a statement that fails with a conflict (`isConflict`). */
const MAX_TRIES = 20;

/** Replaces each `?` with PostgreSQL's $1, $2, ... */
function numberParameters(text) {
  let n = 0;
  return text.replaceAll('?', () => `$${++n}`);
}

/**
 * Runs one statement with `?` placeholders through a client of `pg`, and returns its rows.
 * @param signal when aborted, removes the connection from its pool, since it may be half-open
 */
async function queryPostgres(client, text, values, signal) {
  // Of pg, only a Pool has totalCount.
  const isPool = typeof client.totalCount === 'number';
  // It would keep the query until then.
  if (client._connected === false && client._connecting === false) {
    throw configError(
      'the Client of pg is not connected: await client.connect() first, or pass a Pool',
    );
  }
  // Without values, pg accepts several statements in one text.
  const run = async (on) => (await on.query(numberParameters(text), values)).rows;
  if (!isPool) return run(client);
  const connection = await takeConnection(client, signal, () => client.connect());
  ignoreErrors(connection);
  return onConnection('PostgreSQL', connection, signal, run, {
    release: () => connection.release(),
    destroy: () => connection.release(true),
  });
}

/** The same through a client of `mysql2` or `mysql2/promise`. */
async function queryMysql(client, text, values, signal) {
  const promised = typeof client.promise === 'function' ? client.promise() : client;
  const run = async (on) => (await on.query(text, values))[0];
  if (typeof promised.getConnection !== 'function') return run(promised);
  const connection = await takeConnection(client, signal, () => promised.getConnection());
  // What lasts is the connection within: each call gets a wrapper of its own, whose listeners would stay.
  ignoreErrors(connection.connection ?? connection);
  return onConnection('MySQL', connection, signal, run, connection);
}

/**
 * By pool: requests for a connection whose calls were given up. No pool takes a request back, so the next call adopts one: at
 * most one waits, and calls keep their place.
 */
const abandoned = new WeakMap();

/** Takes a connection, which has release(), from a pool. */
async function takeConnection(pool, signal, request) {
  if (!abandoned.has(pool)) abandoned.set(pool, []);
  const requests = abandoned.get(pool);
  const requested = requests.shift() ?? request();
  const abandon = () => requests.push(requested);
  /** @returns whether nobody has adopted it */
  const forget = () => {
    const at = requests.indexOf(requested);
    if (at >= 0) requests.splice(at, 1);
    return at >= 0;
  };
  signal?.addEventListener('abort', abandon);
  try {
    const connection = await requested;
    if (signal?.aborted && forget()) await connection.release();
    signal?.throwIfAborted();
    return connection;
  } catch (failure) {
    forget();
    throw failure;
  } finally {
    signal?.removeEventListener('abort', abandon);
  }
}

/** Runs a query on a pool's connection. An abort destroys the connection. */
async function onConnection(server, connection, signal, run, ends) {
  let isDestroyed = false;
  const destroy = () => {
    isDestroyed = true;
    ends.destroy();
  };
  if (signal?.aborted) ends.release();
  signal?.throwIfAborted();
  signal?.addEventListener('abort', destroy);
  try {
    return await guardCall(server, connection, () => run(connection));
  } finally {
    signal?.removeEventListener('abort', destroy);
    if (!isDestroyed) ends.release();
  }
}

function uncommittedError(name, options) {
  return configError(
    `${name} does not commit a lease's records: its connection is inside a transaction, or has autocommit = 0. Give the store a pool or a connection of its own, with autocommit`,
    options,
  );
}

/** @param options those of sqlStore() */
function createRunner({ name, dialect, query, isInTransaction = () => false }) {
  const { isCommitted, isConflict } = DIALECTS[dialect];

  /** Runs one statement, and again after a conflict, until the call is aborted. */
  async function run({ signal }, text, values) {
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        return await query(text, values, signal);
      } catch (failure) {
        if (tries === MAX_TRIES || !isConflict(failure)) throw failure;
      }
    }
  }

  /** Changes rows. Throws if the client does not commit each statement. */
  async function change(request, text, values) {
    if (isInTransaction()) throw uncommittedError(name);
    const result = await run(request, text, values);
    if (isCommitted && !isCommitted(result)) throw uncommittedError(name);
  }

  /** Reads committed rows. The statement selects `uncommitted`. */
  async function read(request, text, values) {
    const rows = await run(request, text, values);
    const isOpen = rows.some((row) => Number(row.uncommitted) !== 0);
    if (isOpen || isInTransaction()) throw uncommittedError(name);
    return rows;
  }

  return { change, read, run };
}

/**
 * Where a store's tables are: a schema or a database. Decided once, since an application may move its connection later
 * (`SET search_path`, `USE`), and another table would give the same IDs.
 * @param run runs a statement that reads, and returns its rows
 * @returns what qualifies the tables' names, with a dot
 */
async function findHome(name, dialect, table, run) {
  const [{ home }] = await run(DIALECTS[dialect].home(table));
  if (home === null) {
    throw configError(
      `${name} has no place for its tables: name a database that exists in the URL or the client's options; on PostgreSQL, a schema that exists in search_path`,
    );
  }
  if (home.includes('?')) {
    throw configError(`${name} cannot use ${describe(home)}: a schema or database without '?'`);
  }
  return `${DIALECTS[dialect].quote(home)}.`;
}

module.exports = {
  createRunner,
  findHome,
  numberParameters,
  queryMysql: ofClient(queryMysql),
  queryPostgres: ofClient(queryPostgres),
  takeConnection,
  uncommittedError,
};
