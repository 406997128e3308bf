'use strict';
// `snowdrift/lease/typeorm`: slots in the database of a TypeORM DataSource: PostgreSQL, MySQL, MariaDB
// or SQLite.

const { ofClient } = require('./failures.js');
const { checkClient } = require('./options.js');
const { connectRunner, numberParameters, takeConnection } = require('./sql-clients.js');
const { dialectOf, sql } = require('./sql-dialects.js');
const { sqlStore } = require('./sql.js');

function typeorm(dataSource, options) {
  checkClient(dataSource, 'query', 'typeorm() takes a DataSource');
  const { type, dialect } = dialectOf(dataSource);
  const connection = {
    kind: `typeorm:${type}`,
    dialect,
    query: ofClient(async (text, values, signal) => {
      const runner = await takeConnection(dataSource, signal, () => connectRunner(dataSource));
      try {
        return await runner.query(dialect === 'postgres' ? numberParameters(text) : text, values);
      } finally {
        await runner.release();
      }
    }),
    // On SQLite all queries of a DataSource share one connection, and so its transaction.
    isInTransaction: () =>
      dialect === 'sqlite' && dataSource.createQueryRunner().isTransactionActive,
  };
  return sqlStore(connection, options);
}

module.exports = { sql, typeorm };
