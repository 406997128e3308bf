'use strict';
// Connections of the clients `pg`, `mysql2` and TypeORM, each for one call: from a pool, in turn, destroyed when the call is
// given up.

const { configError, describe } = require('../errors.js');
const { untilAborted } = require('../time.js');
const { guardCall, ignoreErrors } = require('./sockets.js');
const { DIALECTS } = require('./sql-dialects.js');

/** Replaces each `?` with PostgreSQL's $1, $2, ... */
function numberParameters(text) {
  let n = 0;
  return text.replaceAll('?', () => `$${++n}`);
}

/** By pool: the connections that calls have requested which were given up since. */
const abandoned = new WeakMap();

/**
 * Takes a connection from a pool. A pool does not cancel a request: one of a call that was given up serves the next call,
 * so that waiting requests do not add up.
 * @param request requests a connection, which has release()
 */
async function takeConnection(pool, signal, request) {
  if (!abandoned.has(pool)) abandoned.set(pool, new Set());
  const requests = abandoned.get(pool);
  signal.throwIfAborted();
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

/** A connected query runner of a TypeORM DataSource. */
async function connectRunner(dataSource) {
  const runner = dataSource.createQueryRunner();
  await runner.connect();
  return runner;
}

/** By Client of pg: the end of its last call. */
const turns = new WeakMap();

/** Runs calls one after the other: pg deprecates queries of a Client that overlap. */
async function inTurn(client, signal, run) {
  const last = turns.get(client);
  const call = (async () => {
    await last;
    signal.throwIfAborted();
    return run(client);
  })();
  turns.set(
    client,
    call.catch(() => {}),
  );
  return call;
}

/**
 * Runs `run` on a client of `pg`: on itself, or on a connection of a pool.
 * @param signal when aborted, removes the connection from its pool, since it may be half-open
 */
async function onPostgres(client, signal, run) {
  // Of pg, only a Pool has totalCount.
  const isPool = typeof client.totalCount === 'number';
  // It would keep the query until then.
  if (client._connected === false && client._connecting === false) {
    throw configError(
      'the Client of pg is not connected: await client.connect() first, or pass a Pool',
    );
  }
  if (!isPool) return inTurn(client, signal, run);
  const connection = await takeConnection(client, signal, () => client.connect());
  ignoreErrors(connection);
  return onConnection('PostgreSQL', connection, signal, run, {
    release: () => connection.release(),
    destroy: () => connection.release(true),
  });
}

/** The same with a client of `mysql2` or `mysql2/promise`. */
async function onMysql(client, signal, run) {
  const promised = typeof client.promise === 'function' ? client.promise() : client;
  if (typeof promised.getConnection !== 'function') return run(promised);
  const connection = await takeConnection(client, signal, () => promised.getConnection());
  // What lasts is the connection within: each call gets a wrapper of its own, whose listeners would stay.
  ignoreErrors(connection.connection ?? connection);
  return onConnection('MySQL', connection, signal, run, connection);
}

/** Runs a query on a pool's connection. An abort destroys the connection. */
async function onConnection(server, connection, signal, run, ends) {
  let isDestroyed = false;
  const destroy = () => {
    isDestroyed = true;
    ends.destroy();
  };
  if (signal.aborted) ends.release();
  signal.throwIfAborted();
  signal.addEventListener('abort', destroy);
  try {
    return await guardCall(server, connection, () => run(connection));
  } finally {
    signal.removeEventListener('abort', destroy);
    if (!isDestroyed) ends.release();
  }
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
  connectRunner,
  findHome,
  numberParameters,
  onMysql,
  onPostgres,
  takeConnection,
};
