'use strict';
// A register in the database of a TypeORM DataSource: PostgreSQL, MySQL, MariaDB or SQLite. sql.js has its table,
// sql-alone.js says how a connection inside a transaction is refused.
//
// On SQLite all queries of a DataSource share one connection, and so its transaction, which TypeORM knows.

const { checkClient, readSqlOptions } = require('./options.js');
const { ignoreErrors } = require('./sockets.js');
const { aloneMysql, alonePostgres, uncommittedError } = require('./sql-alone.js');
const { connectRunner, numberParameters, takeConnection } = require('./sql-clients.js');
const { dialectOf, sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

/** By dialect: runs a statement with a query runner, in a transaction of its own. */
const RUN = {
  async postgres(name, runner, text, values) {
    const run = () => runner.query(numberParameters(text), values, true);
    return (await alonePostgres(name, await runner.connect(), run)).records;
  },

  mysql: (name, runner, text, values) =>
    aloneMysql(name, (...statement) => runner.query(...statement), false, text, values),

  async sqlite(name, runner, text, values) {
    if (runner.isTransactionActive) throw uncommittedError(name);
    const { records } = await runner.query(text, values, true);
    if (runner.isTransactionActive) throw uncommittedError(name);
    return records ?? [];
  },
};

function typeorm(dataSource, options) {
  checkClient(dataSource, 'createQueryRunner', 'typeorm() takes a DataSource');
  const { type, dialect } = dialectOf(dataSource);
  const given = readSqlOptions(options);
  const name = `typeorm:${type}:${given.namespace}`;

  async function query(text, values, signal) {
    const request = () => connectRunner(dataSource);
    if (dialect === 'sqlite') return RUN.sqlite(name, await request(), text, values);
    const runner = await takeConnection(dataSource, signal, request);
    const connection = ignoreErrors(await runner.connect());
    // The clients of PostgreSQL and of MySQL. The pool then opens another connection.
    const abort = () => (connection.connection ?? connection).stream.destroy();
    signal.addEventListener('abort', abort);
    try {
      signal.throwIfAborted();
      return await RUN[dialect](name, runner, text, values);
    } finally {
      signal.removeEventListener('abort', abort);
      await runner.release();
    }
  }

  return sqlRegister({ ...given, name, dialect, query });
}

module.exports = { sql, typeorm };
