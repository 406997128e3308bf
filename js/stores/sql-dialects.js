'use strict';
// SQL dialects, and the table of the SQL registers in each.

const { types } = require('node:util');

const { configError, describe } = require('../messages/errors.js');
const { readOptions } = require('./options.js');
const { NONE, propertyOf } = require('../ids/properties.js');

/** @import { Dialect, DialectName, ServerDialect, Text } from './types.d.ts' */

/**
 * Whether a server's error has this code, or this number.
 * @param {unknown} failure
 * @param {string} code
 * @param {number} [errno]
 */
const isError = (failure, code, errno) =>
  propertyOf(/** @type {object} */ (failure), 'code') === code ||
  (errno !== undefined && propertyOf(/** @type {object} */ (failure), 'errno') === errno);

/** The text of an ASCII column, whatever type the client returns. @param {Text} value */
const textOf = (value) => (typeof value === 'string' ? value : Buffer.from(value).toString());

/**
 * Whether a column that a statement selects has a value that can be read.
 * @param {string} column
 * @param {unknown} value
 */
function isColumn(column, value) {
  // Without a schema to be in.
  if (value === null) return column === 'home';
  if (column === 'now') return /^\d{1,20}$/.test(String(value));
  return typeof value === 'string' || types.isUint8Array(value);
}

/** A text of hexadecimal digits. @param {Text} value */
function fromHex(value) {
  const digits = textOf(value);
  // Buffer.from() would end at the first other character.
  if (/^(?:[0-9a-f]{2})*$/i.test(digits)) return Buffer.from(digits, 'hex').toString();
  throw new Error(`the database returned ${describe(digits)} for hexadecimal digits`);
}

/** @param {string} text */
const toHex = (text) => Buffer.from(text).toString('hex');

/** What `began` is in a transaction that is known to be open. */
const OPEN = 'open';

/** Of PostgreSQL. */
const NOW = 'CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT)';

/** When the transaction has begun: to the microsecond, and the same for all its statements. */
const BEGAN = 'CAST(CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) AS TEXT)';

/** The time of a statement. strftime() has its milliseconds in all versions. */
const SQLITE_NOW =
  "CAST(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) AS TEXT)";

/**
 * Values are sent and read as text, which is the same in all settings of sessions and clients: bytes as hexadecimal digits,
 * and numbers as digits, whether a client reads them as text or as binary.
 * @type {Record<DialectName, Dialect>}
 */
const DIALECTS = {
  postgres: {
    placeholder: '$1',
    home: (table) =>
      `SELECT COALESCE(
         (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = to_regclass('${table}')),
         current_schema()) AS home`,
    homes: (table) =>
      `SELECT n.nspname AS home FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relname = '${table}'`,
    homeColumn: 'n.nspname',
    quote: (name) => `"${name.replaceAll('"', '""')}"`,
    now: NOW,
    // Its equality is that of bytes.
    type: (length) => `VARCHAR(${length})`,
    // It holds \0, and any text whatever the database's encoding is.
    textType: 'BYTEA',
    toColumn: (text) => text,
    prepend: (column, length) => `substr(CAST(? AS VARCHAR) || ${column}, 1, ${length})`,
    toBytes: "decode(?, 'hex')",
    toValue: toHex,
    nameColumn: (name) => name,
    nameOf: textOf,
    textColumn: "encode(text, 'hex') AS text",
    toText: fromHex,
    lookUp: (table, columns, condition) =>
      `SELECT ${columns} FROM ${table} WHERE ${condition} FOR UPDATE`,
    unlessExists: ' ON CONFLICT DO NOTHING',
    returning: ` RETURNING ${NOW} AS now, ${BEGAN} AS began`,
    began: BEGAN,
    isMissing: (failure) => isError(failure, '42P01'),
    // Serialization failure and deadlock.
    isConflict: (failure) => isError(failure, '40001') || isError(failure, '40P01'),
  },
  mysql: {
    placeholder: '?',
    home: () => 'SELECT DATABASE() AS home',
    homes: (table) =>
      `SELECT table_schema AS home FROM information_schema.tables WHERE table_name = '${table}'`,
    homeColumn: 'table_schema',
    quote: (name) => `\`${name.replaceAll('`', '``')}\``,
    // In UTC, since a local time repeats when summer time ends.
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)",
    // Binary columns compare as bytes whatever the database's collation is.
    type: (length) => `VARBINARY(${length})`,
    textType: 'BLOB',
    toColumn: (/** @type {string} */ text) => Buffer.from(text),
    prepend: (column, length) => `SUBSTR(CONCAT(?, ${column}), 1, ${length})`,
    toBytes: 'UNHEX(?)',
    toValue: toHex,
    nameColumn: (name) => `HEX(${name}) AS ${name}`,
    nameOf: fromHex,
    textColumn: 'HEX(text) AS text',
    toText: fromHex,
    lookUp: (table, columns, condition) =>
      `SELECT ${columns} FROM ${table} WHERE ${condition} FOR UPDATE`,
    // INSERT IGNORE would cut values, too.
    unlessExists: '',
    returning: '',
    // Only MariaDB reads the comment, and only it can tell of a transaction.
    began: `CASE WHEN @@autocommit = 0 /*M! OR @@in_transaction = 1 */ THEN '${OPEN}' ELSE '' END`,
    isDuplicate: (failure) => isError(failure, 'ER_DUP_ENTRY', 1062),
    isMissing: (failure) => isError(failure, 'ER_NO_SUCH_TABLE', 1146),
    isConflict: (failure) => isError(failure, 'ER_LOCK_DEADLOCK', 1213),
  },
  sqlite: {
    placeholder: '?',
    home: () => "SELECT 'main' AS home",
    homes: (table) =>
      `SELECT 'main' AS home FROM main.sqlite_master WHERE type = 'table' AND name = '${table}'`,
    homeColumn: "'main'",
    quote: (name) => `"${name.replaceAll('"', '""')}"`,
    now: SQLITE_NOW,
    type: () => 'TEXT',
    textType: 'TEXT',
    toColumn: (text) => text,
    prepend: (column, length) => `substr(? || ${column}, 1, ${length})`,
    toBytes: '?',
    toValue: (text) => text,
    nameColumn: (name) => name,
    nameOf: textOf,
    // Some clients drop a byte order mark.
    textColumn: 'hex(text) AS text',
    toText: fromHex,
    // A write, so that no replica answers it.
    lookUp: (table, columns, condition) =>
      `UPDATE ${table} SET token = token WHERE ${condition} RETURNING ${columns}`,
    unlessExists: ' ON CONFLICT DO NOTHING',
    returning: '',
    began: "''",
    // Fails with "database table is locked" within a transaction; servers refuse it, who have no transactions over calls.
    check: 'PRAGMA wal_checkpoint',
    isMissing: () => false,
    isConflict: () => false,
  },
};

/** The table of records. */
const RECORDS = 'snowdrift_records';

/** How many characters of the last writes' numbers a record has: 32 of 16. */
const WRITES = 512;

/**
 * Its name, qualified where there is a schema.
 * @param {DialectName} dialect
 * @param {string | undefined} schema
 */
function recordsIn(dialect, schema) {
  if (schema === undefined) return RECORDS;
  checkSchema(dialect);
  return `${DIALECTS[dialect].quote(schema)}.${RECORDS}`;
}

/** @param {DialectName} dialect of a store with the option schema */
function checkSchema(dialect) {
  if (dialect === 'sqlite') throw configError('SQLite has no schemas: leave schema out');
}

/**
 * @param {DialectName} dialect
 * @param {string} [table]
 */
function createRecords(dialect, table = RECORDS) {
  const { type, textType } = DIALECTS[dialect];
  // With MariaDB's sql_mode ORACLE, '' is no default: it is NULL.
  return `CREATE TABLE IF NOT EXISTS ${table} (
  namespace ${type(64)} NOT NULL,
  name ${type(64)} NOT NULL,
  token ${type(16)} NOT NULL,
  text ${textType} NOT NULL,
  writes ${type(WRITES)} NOT NULL DEFAULT '-',
  PRIMARY KEY (namespace, name)
)`;
}

/** By type of a TypeORM DataSource. @type {Record<string, ServerDialect>} */
const TYPEORM = {
  postgres: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
};

/**
 * The type of a TypeORM DataSource, and its dialect.
 * @param {{ options?: { type?: string } }} dataSource
 */
function dialectOf(dataSource) {
  const { type } = dataSource.options ?? NONE;
  if (type !== undefined && Object.hasOwn(TYPEORM, type)) return { type, dialect: TYPEORM[type] };
  const known = Object.keys(TYPEORM).join(', ');
  throw configError(
    `typeorm() takes a DataSource of type ${known}; this one has the type ${describe(type)}`,
  );
}

/** @param {DialectName} dialect as an application gives it */
function checkDialect(dialect) {
  if (typeof dialect === 'string' && Object.hasOwn(DIALECTS, dialect)) return;
  const names = Object.keys(DIALECTS).join("', '");
  throw configError(`a dialect must be one of '${names}'; it is ${describe(dialect)}`);
}

/**
 * The table as a migration, for databases in which applications may not create tables.
 * @type {typeof import('./sql.d.ts').migration}
 */
function migration(dialect, options) {
  checkDialect(dialect);
  const { schema } = readOptions(options, ['schema']);
  return `${createRecords(dialect, recordsIn(dialect, schema))};\n`;
}

module.exports = {
  ...{ DIALECTS, OPEN, RECORDS, WRITES },
  ...{ checkDialect, checkSchema, createRecords, dialectOf, isColumn, migration, recordsIn },
  textOf,
};
