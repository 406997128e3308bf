'use strict';
// SQL dialects, and the tables of the SQL stores in each.

const { argumentError, configError, describe } = require('../errors.js');

/** On PostgreSQL, two concurrent CREATE TABLE IF NOT EXISTS can fail. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtext('snowdrift'))";

/** Bits of the status in MySQL's reply to a change. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

const DIALECTS = {
  postgres: {
    // Where the table is, else where it would be created.
    home: (table) =>
      `SELECT COALESCE(
         (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = to_regclass('${table}')),
         current_schema()) AS home`,
    quote: (name) => `"${name.replaceAll('"', '""')}"`,
    now: 'CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)',
    // True if this transaction has changed a row: a read must be a transaction of its own.
    isUncommitted: '(txid_current_if_assigned() IS NOT NULL)',
    greatest: 'GREATEST',
    text: (length) => `VARCHAR(${length})`,
    insert: (into) => `INSERT INTO ${into} ON CONFLICT DO NOTHING`,
    isMissing: ({ code }) => code === '42P01',
    isOtherTable: ({ code }) => code === '42703',
    // Serialization failure and deadlock.
    isConflict: ({ code }) => code === '40001' || code === '40P01',
  },
  mysql: {
    home: () => 'SELECT DATABASE() AS home',
    quote: (name) => `\`${name.replaceAll('`', '``')}\``,
    // In UTC, since a local time repeats when summer time ends.
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)",
    isUncommitted: '(@@autocommit = 0)',
    greatest: 'GREATEST',
    // A binary collation, whatever the database's default.
    text: (length) => `VARCHAR(${length}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    insert: (into) => `INSERT IGNORE INTO ${into}`,
    isMissing: ({ code, errno }) => code === 'ER_NO_SUCH_TABLE' || errno === 1146,
    isOtherTable: ({ code, errno }) => code === 'ER_BAD_FIELD_ERROR' || errno === 1054,
    isConflict: ({ code, errno }) => code === 'ER_LOCK_DEADLOCK' || errno === 1213,
    // Fails inside a transaction, which CREATE TABLE would commit.
    beforeCreating: 'SET TRANSACTION READ WRITE',
    isCommitted: ({ serverStatus }) =>
      (serverStatus & IN_TRANSACTION) === 0 && (serverStatus & AUTOCOMMIT) !== 0,
  },
  sqlite: {
    home: () => "SELECT 'main' AS home",
    quote: (name) => name,
    now: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    isUncommitted: '0',
    greatest: 'MAX',
    text: () => 'TEXT',
    insert: (into) => `INSERT OR IGNORE INTO ${into}`,
    isMissing: ({ message }) => /no such table/.test(message),
    isOtherTable: ({ message }) => /no such column/.test(message),
    isConflict: () => false,
  },
};

/**
 * The namespaces' table last: where it exists, a creation that was cut short has created both.
 * @param home what qualifies their names, with a dot
 */
function tables({ text }, home = '') {
  return [
    `CREATE TABLE IF NOT EXISTS ${home}snowdrift_slots (
  namespace ${text(64)} NOT NULL,
  datacenter_id BIGINT NOT NULL,
  worker_id BIGINT NOT NULL,
  ceiling BIGINT NOT NULL,
  owner ${text(32)},
  expires BIGINT NOT NULL,
  host ${text(255)},
  pid BIGINT,
  started BIGINT,
  PRIMARY KEY (namespace, datacenter_id, worker_id)
)`,
    `CREATE TABLE IF NOT EXISTS ${home}snowdrift_namespaces (
  namespace ${text(64)} NOT NULL PRIMARY KEY,
  id ${text(32)} NOT NULL,
  layout ${text(64)} NOT NULL,
  ttl BIGINT NOT NULL,
  max_clock_skew BIGINT NOT NULL,
  max_ahead BIGINT NOT NULL,
  floor BIGINT NOT NULL
)`,
  ];
}

/** By type of a TypeORM DataSource. */
const TYPEORM = {
  postgres: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
  'better-sqlite3': 'sqlite',
  sqlite: 'sqlite',
  sqljs: 'sqlite',
};

/** The type of a TypeORM DataSource, and its dialect. */
function dialectOf(dataSource) {
  const { type } = dataSource.options ?? {};
  const dialect = TYPEORM[type];
  if (dialect !== undefined) return { type, dialect };
  const known = Object.keys(TYPEORM).join(', ');
  throw configError(
    `typeorm() takes a DataSource of type ${known}; this one has the type ${describe(type)}`,
  );
}

/** The tables as a migration, for databases in which applications may not create tables. */
function sql(dialect) {
  if (!Object.hasOwn(DIALECTS, dialect)) {
    const names = Object.keys(DIALECTS).join("', '");
    throw argumentError(`a dialect must be one of '${names}'; it is ${describe(dialect)}`);
  }
  return `${tables(DIALECTS[dialect]).join(';\n')};\n`;
}

module.exports = { DIALECTS, LOCK, dialectOf, sql, tables };
