'use strict';
// A register in PostgreSQL, or a database of its wire protocol, through a Pool or a Client of `pg`: sql.js has its table.
//
// Each reply of the server ends with the status of the connection. A connection inside a transaction is refused before a
// statement, and its statement is not confirmed if the application has begun one meanwhile.
//
// The database must have committed durably when it answers: no `synchronous_commit = off`.

const { checkClient, readNamespace } = require('./options.js');
const { numberParameters, onPostgres, uncommittedError } = require('./sql-clients.js');
const { sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

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

/** Runs `query` on a connection, in a transaction of its own. */
async function runAlone(name, connection, query) {
  if ((statusOf(connection) ?? 'I') !== 'I') throw uncommittedError(name);
  const result = await query();
  if (statusOf(connection) !== 'I') throw uncommittedError(name);
  return result;
}

function postgres(client, options) {
  checkClient(client, 'query', 'postgres() takes a Pool or a Client of pg');
  const namespace = readNamespace(options);
  const name = `postgres:${namespace}`;
  const query = (text, values, signal) =>
    onPostgres(client, signal, async (connection) => {
      const run = () => connection.query(numberParameters(text), values);
      return (await runAlone(name, connection, run)).rows;
    });
  return sqlRegister({ name, namespace, dialect: 'postgres', query });
}

module.exports = { postgres, runAlone, sql };
