'use strict';
// A register in the database of a TypeORM DataSource: PostgreSQL, MySQL or MariaDB. sql-register.js has its table.
//
// TypeORM's connections are those of a pool of `pg` or of `mysql2`, and are used as such.

const { configError } = require('../messages/errors.js');
const { checkClient } = require('./options.js');
const { promised, queryMysql, queryPostgres } = require('./sql-clients.js');
const { dialectOf } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql-register.js');

/** @import { MysqlCallbacks, PgClient, Query, ServerDialect } from './types.d.ts' */

/**
 * What is used of a DataSource. A driver's connections are those of its client.
 * @typedef {{ driver: { obtainMasterConnection(): Promise<unknown> }, isInitialized?: boolean }} Source
 */

/**
 * By dialect: what runs statements in a transaction of their own.
 * @type {Record<ServerDialect, (name: string, source: Source) => Query>}
 */
const QUERIES = {
  postgres: (name, source) =>
    queryPostgres(name, source, async () => {
      const [client] = /** @type {[PgClient]} */ (await source.driver.obtainMasterConnection());
      return client;
    }),

  mysql: (name, source) =>
    queryMysql(name, source, async () =>
      promised(/** @type {MysqlCallbacks} */ (await source.driver.obtainMasterConnection())),
    ),
};

/** @type {typeof import('./typeorm.d.ts').typeorm} */
function typeorm(dataSource, options) {
  checkClient(dataSource, { createQueryRunner: 'function' }, 'typeorm() takes a DataSource');
  const { type, dialect } = dialectOf(dataSource);
  const source = /** @type {Source} */ (dataSource);
  /** @type {(name: string) => Query} */
  const queryOf = (name) => {
    const query = QUERIES[dialect](name, source);
    return async (...values) => {
      if (source.isInitialized !== false) return query(...values);
      throw configError(
        'the DataSource is not initialized: await dataSource.initialize() before the lease',
      );
    };
  };
  return sqlRegister(`typeorm:${type}`, dialect, options, queryOf);
}

/** @satisfies {typeof import('./typeorm.js')} */
module.exports = { typeorm };
