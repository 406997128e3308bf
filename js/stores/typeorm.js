'use strict';
// A register in the database of a TypeORM DataSource: PostgreSQL, MySQL or MariaDB. sql.js has its table.
//
// TypeORM's connections are those of a pool of `pg` or of `mysql2`, and are used as such.

const { configError } = require('../messages/errors.js');
const { checkClient } = require('./options.js');
const { promised, queryMysql, queryPostgres } = require('./sql-clients.js');
const { dialectOf, sql } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql.js');

/** By dialect: what runs statements in a transaction of their own. */
const QUERIES = {
  postgres: (name, source) =>
    queryPostgres(name, source, async () => (await source.driver.obtainMasterConnection())[0]),

  mysql: (name, source) =>
    queryMysql(name, source, async () => promised(await source.driver.obtainMasterConnection())),
};

function typeorm(dataSource, options) {
  checkClient(dataSource, { createQueryRunner: 'function' }, 'typeorm() takes a DataSource');
  const { type, dialect } = dialectOf(dataSource);
  const queryOf = (name) => {
    const query = QUERIES[dialect](name, dataSource);
    return async (...values) => {
      if (dataSource.isInitialized !== false) return query(...values);
      throw configError(
        'the DataSource is not initialized: await dataSource.initialize() before the lease',
      );
    };
  };
  return sqlRegister(`typeorm:${type}`, dialect, options, queryOf);
}

module.exports = { sql, typeorm };
