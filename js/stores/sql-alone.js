'use strict';
// Runs statements of a store, each in a transaction of its own: a rollback would undo what a lease relies on. A connection inside
// a transaction of the application is refused, and that transaction stays.
//
// PostgreSQL: each reply of the server ends with the status of the connection. A connection inside a transaction is refused
// before a statement, and its statement is not confirmed if the application has begun one meanwhile.
//
// MySQL: `DO 0` changes nothing, and its reply has the status of the connection: whether it is inside a transaction or without
// autocommit. It comes before each statement, since that would hold a lock in the application's transaction. On a
// connection that the application uses meanwhile, it may begin one in between. The reply to a change has the status, too.
// A SELECT is followed by another `DO 0` there: both are queued at once, so nothing comes between these.

const { configError } = require('../errors.js');
const { numberParameters, onMysql, onPostgres } = require('./sql-clients.js');

/** Bits of the status in MySQL's reply to a change. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

function uncommittedError(name) {
  return configError(
    `${name} does not commit a lease's records: its connection is inside a transaction, or has autocommit = 0. Give the store a pool or a connection of its own, with autocommit`,
  );
}

/** PostgreSQL's type of bytes. */
const BYTEA = 17;

/**
 * Reads values of pg: bytes, and all others as text. A server may name any type, and pg's own parser of bytes never returns from
 * some texts.
 */
const TYPES = {
  getTypeParser: (type) => (value) =>
    type === BYTEA ? Buffer.from(String(value).replace(/^\\x/, ''), 'hex') : value,
};

/** Of connections whose version of pg has no getTransactionStatus(): the status, as far as it is known. */
const statuses = new WeakMap();

/** 'I' outside a transaction, 'T' or 'E' inside; undefined or null before the first reply. */
function statusOf(connection) {
  if (connection.getTransactionStatus !== undefined) return connection.getTransactionStatus();
  if (!statuses.has(connection)) {
    statuses.set(connection, undefined);
    connection.connection?.on('readyForQuery', ({ status }) => statuses.set(connection, status));
  }
  return statuses.get(connection);
}

/** Runs `query` on a connection of `pg`. */
async function alonePostgres(name, connection, query) {
  if ((statusOf(connection) ?? 'I') !== 'I') throw uncommittedError(name);
  const result = await query();
  if (statusOf(connection) !== 'I') throw uncommittedError(name);
  return result;
}

/**
 * Runs a statement on a connection of `mysql2`.
 * @param query runs a statement, and returns rows or the reply to a change
 * @param isShared whether the application uses the connection meanwhile
 * @returns the rows of a SELECT; of a change as many as it has changed, with `insertId`
 */
async function aloneMysql(name, query, isShared, text, values) {
  const check = ({ serverStatus }) => {
    if ((serverStatus & (IN_TRANSACTION | AUTOCOMMIT)) !== AUTOCOMMIT) throw uncommittedError(name);
  };
  check(await query('DO 0'));
  const isSelect = /^S(ELECT|HOW)/.test(text);
  const [result, status] = await Promise.all([
    query(text, values),
    isSelect && isShared ? query('DO 0') : undefined,
  ]);
  if (!isSelect) check(result);
  else if (isShared) check(status);
  if (isSelect) return result;
  const { affectedRows, insertId } = result;
  return Array.from({ length: affectedRows }, () => ({ insertId }));
}

/**
 * Runs statements with `?` placeholders on a Pool or a Client of `pg`.
 * @returns a function of a statement, its values and a signal, which returns rows
 */
const queryPostgres = (name, client) => (text, values, signal) =>
  onPostgres(client, signal, async (connection) => {
    // Without values, pg accepts several statements in one text.
    const query = { text: numberParameters(text), values, types: TYPES };
    const run = () => connection.query(query);
    return (await alonePostgres(name, connection, run)).rows;
  });

/** The same for a pool or a connection of `mysql2`. Of a change, the rows are those of aloneMysql(). */
function queryMysql(name, client) {
  const isShared = typeof client.getConnection !== 'function';
  return (text, values, signal) =>
    onMysql(client, signal, (connection) => {
      const run = async (...statement) => (await connection.query(...statement))[0];
      return aloneMysql(name, run, isShared, text, values);
    });
}

module.exports = { aloneMysql, alonePostgres, queryMysql, queryPostgres, uncommittedError };
