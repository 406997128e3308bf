'use strict';
// `snowdrift/lease/typeorm`: slots in the database of a TypeORM DataSource: PostgreSQL, MySQL, MariaDB
// or SQLite.

const { configError, shown } = require('../errors.js');
const { checkClient, readNamespace } = require('./adapter.js');
const { numbered, sql, sqlStore } = require('./sql.js');

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
  const namespace = readNamespace(options);
  const { type } = dataSource.options ?? {};
  const dialect = DIALECTS[type];
  if (dialect === undefined) {
    const known = Object.keys(DIALECTS).join(', ');
    throw configError(`typeorm() knows DataSources of ${known}; this one is of ${shown(type)}`);
  }
  return sqlStore({
    name: `typeorm:${type}:${namespace}`,
    dialect,
    namespace,
    query: (text, values) =>
      dataSource.query(dialect === 'postgres' ? numbered(text) : text, values),
    // On SQLite all queries of a DataSource share one connection and its transaction.
    isInTransaction: () =>
      dialect === 'sqlite' && dataSource.createQueryRunner().isTransactionActive,
  });
}

module.exports = { sql, typeorm };
