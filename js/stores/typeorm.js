'use strict';
// `snowdrift/lease/typeorm`: slots in the database of a TypeORM DataSource: PostgreSQL, MySQL, MariaDB
// or SQLite.

const { configError, describe } = require('../errors.js');
const { ofClient } = require('./failures.js');
const { checkClient } = require('./options.js');
const { numberParameters, takeConnection } = require('./sql-clients.js');
const { sql } = require('./sql-dialects.js');
const { sqlStore } = require('./sql.js');

const DIALECTS = {
  postgres: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
  'better-sqlite3': 'sqlite',
  sqlite: 'sqlite',
  sqljs: 'sqlite',
};

function typeorm(dataSource, options) {
  checkClient(dataSource, 'query', 'typeorm() takes a DataSource');
  const { type } = dataSource.options ?? {};
  const dialect = DIALECTS[type];
  if (dialect === undefined) {
    const known = Object.keys(DIALECTS).join(', ');
    throw configError(
      `typeorm() takes a DataSource of type ${known}; this one has the type ${describe(type)}`,
    );
  }
  const connection = {
    kind: `typeorm:${type}`,
    dialect,
    query: ofClient(async (text, values, signal) => {
      const runner = await takeConnection(dataSource, signal, async () => {
        const created = dataSource.createQueryRunner();
        await created.connect();
        return created;
      });
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
