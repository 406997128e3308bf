'use strict';
// SQL dialects, and the table of the SQL registers in each.

const { argumentError, configError, describe } = require('../messages/errors.js');
const { readOptions } = require('./options.js');
const { NONE, propertyOf } = require('../ids/properties.js');

/** @import { Dialect, DialectName, Text } from './types.d.ts' */

/**
 * Whether a server's error has this code, or this number.
 * @param {unknown} failure
 * @param {string} code
 * @param {number} [errno]
 */
const isError = (failure, code, errno) =>
  propertyOf(/** @type {object} */ (failure), 'code') === code ||
  (errno !== undefined && propertyOf(/** @type {object} */ (failure), 'errno') === errno);

/** A column's text, whatever type the client returns. @param {Text} value */
const textOf = (value) => (typeof value === 'string' ? value : Buffer.from(value).toString());

/** Of PostgreSQL. */
const NOW = 'CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT)';

/**
 * PostgreSQL's values are read as text, which is the same in all settings of sessions and clients: bytes as hexadecimal
 * digits, whatever bytea_output is, and numbers as digits, whether a client reads them as text or as binary.
 * @type {Record<DialectName, Dialect>}
 */
const DIALECTS = {
  postgres: {
    home: (table) =>
      `SELECT COALESCE(
         (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = to_regclass('${table}')),
         current_schema()) AS home`,
    homes: (table) =>
      `SELECT n.nspname AS home FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relname = '${table}' LIMIT 100`,
    quote: (name) => `"${name.replaceAll('"', '""')}"`,
    now: NOW,
    // Its equality is that of bytes.
    type: (length) => `VARCHAR(${length})`,
    // It holds \0, and any text whatever the database's encoding is.
    textType: 'BYTEA',
    toColumn: (text) => text,
    textOfRecord: "encode(text, 'hex') AS text",
    toText: (/** @type {string} */ digits) => Buffer.from(digits, 'hex').toString(),
    unlessExists: ' ON CONFLICT DO NOTHING',
    returning: ` RETURNING ${NOW} AS now`,
    isMissing: (failure) => isError(failure, '42P01'),
    // Serialization failure and deadlock.
    isConflict: (failure) => isError(failure, '40001') || isError(failure, '40P01'),
  },
  mysql: {
    home: () => 'SELECT DATABASE() AS home',
    homes: (table) =>
      `SELECT table_schema AS home FROM information_schema.tables WHERE table_name = '${table}' LIMIT 100`,
    quote: (name) => `\`${name.replaceAll('`', '``')}\``,
    // In UTC, since a local time repeats when summer time ends.
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)",
    // Binary columns compare as bytes whatever the database's collation is.
    type: (length) => `VARBINARY(${length})`,
    textType: 'BLOB',
    toColumn: (/** @type {string} */ text) => Buffer.from(text),
    textOfRecord: 'text',
    toText: textOf,
    // INSERT IGNORE would cut values, too.
    unlessExists: '',
    returning: '',
    isDuplicate: (failure) => isError(failure, 'ER_DUP_ENTRY', 1062),
    isMissing: (failure) => isError(failure, 'ER_NO_SUCH_TABLE', 1146),
    isConflict: (failure) => isError(failure, 'ER_LOCK_DEADLOCK', 1213),
  },
};

/** The table of records. */
const RECORDS = 'snowdrift_records';

/**
 * Its name, qualified where there is a schema.
 * @param {DialectName} dialect
 * @param {string | undefined} schema
 */
const recordsIn = (dialect, schema) =>
  schema === undefined ? RECORDS : `${DIALECTS[dialect].quote(schema)}.${RECORDS}`;

/**
 * @param {DialectName} dialect
 * @param {string} [table]
 */
function createRecords(dialect, table = RECORDS) {
  const { type, textType } = DIALECTS[dialect];
  return `CREATE TABLE IF NOT EXISTS ${table} (
  namespace ${type(64)} NOT NULL,
  name ${type(64)} NOT NULL,
  token ${type(16)} NOT NULL,
  text ${textType} NOT NULL,
  PRIMARY KEY (namespace, name)
)`;
}

/** By type of a TypeORM DataSource. @type {Record<string, DialectName>} */
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

/**
 * The table as a migration, for databases in which applications may not create tables.
 * @type {typeof import('./postgres.d.ts').sql}
 */
function sql(dialect, options) {
  if (!Object.hasOwn(DIALECTS, dialect)) {
    const names = Object.keys(DIALECTS).join("', '");
    throw argumentError(`a dialect must be one of '${names}'; it is ${describe(dialect)}`);
  }
  const { schema } = readOptions(options, ['schema']);
  return `${createRecords(dialect, recordsIn(dialect, schema))};\n`;
}

module.exports = { DIALECTS, RECORDS, createRecords, dialectOf, recordsIn, sql, textOf };
