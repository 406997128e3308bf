'use strict';
// SQLite stores IDs as 64-bit integers, which sort. Its drivers for Node read each integer as a number, and round it,
// unless a statement asks for bigints. So this gives TypeORM connections whose statements ask for bigints: an integer
// beyond 2^53 becomes a string, as with the drivers of servers, and a smaller one a number, as before.

const { configError } = require('../../messages/errors.js');
const { ownOf } = require('../../ids/properties.js');

/**
 * @import { DataSource } from 'typeorm'
 * @typedef {Record<string, unknown>} Row
 *
 * What is used of the statements of better-sqlite3 and of sql.js.
 * @typedef {object} Statement
 * @property {boolean} reader
 * @property {(isOn: boolean) => void} safeIntegers
 * @property {(...parameters: unknown[]) => Row[]} all
 * @property {(parameters?: unknown, config?: object) => Row} getAsObject
 * @property {() => void} step
 * @property {() => void} free
 *
 * @typedef {{ prepare: (...sql: unknown[]) => Statement }} Connection
 * @typedef {(statement: Statement) => void} Prepare
 */

/**
 * Functions that make a statement read integers exactly, by the type of the DataSource.
 * @type {Record<string, Prepare>}
 */
const STATEMENTS = {
  'better-sqlite3': (statement) => {
    if (!statement.reader) return;
    statement.safeIntegers(true);
    const { all } = statement;
    statement.all = (...parameters) => all.apply(statement, parameters).map(withNumbers);
  },
  sqljs: (statement) => {
    const { getAsObject } = statement;
    statement.getAsObject = (parameters, config) =>
      withNumbers(getAsObject.call(statement, parameters, { ...config, useBigInt: true }));
  },
};

/** SQLite drivers that cannot read integers exactly. With them, IDs are stored as text. */
const TEXT_ONLY = ['sqlite', 'capacitor', 'cordova', 'expo', 'nativescript', 'react-native'];

/** @param {string} type */
const isSqlite = (type) => Object.hasOwn(STATEMENTS, type) || TEXT_ONLY.includes(type);

/**
 * The column type that keeps IDs exact, and sorts if the driver allows it.
 * @param {string} type
 */
function columnTypeFor(type) {
  return TEXT_ONLY.includes(type)
    ? { type: 'varchar', length: '20' }
    : { type: 'bigint', length: '' };
}

/**
 * Replaces the bigints of a row by numbers or strings, in place.
 * @param {Row} row
 */
function withNumbers(row) {
  for (const key of Object.keys(row)) {
    const value = row[key];
    if (typeof value !== 'bigint') continue;
    row[key] = Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  return row;
}

/** The prepared drivers. A DataSource keeps its driver when it is initialized again. */
const exact = new WeakSet();

/**
 * Makes a driver's connections read integers exactly: the present one, and later ones.
 * @param {DataSource} dataSource
 */
function readIntegersExactly({ driver: given, options }) {
  const driver = /** @type {DataSource['driver'] & { databaseConnection?: Connection }} */ (given);
  const prepareStatement = STATEMENTS[options.type];
  if (prepareStatement === undefined || exact.has(driver)) return;
  exact.add(driver);
  let connection = withExactStatements(driver.databaseConnection, prepareStatement, options.type);
  const accessors = {
    get: () => connection,
    set: (/** @type {Connection | undefined} */ opened) => {
      connection = withExactStatements(opened, prepareStatement, options.type);
    },
  };
  const descriptor = ownOf({ ...accessors, configurable: true, enumerable: true });
  Object.defineProperty(driver, 'databaseConnection', descriptor);
}

/**
 * @param {Connection | undefined} connection
 * @param {Prepare} prepareStatement
 * @param {string} type
 */
function withExactStatements(connection, prepareStatement, type) {
  if (typeof connection?.prepare !== 'function') return connection;
  const { prepare } = connection;
  connection.prepare = (...sql) => {
    const statement = prepare.apply(connection, sql);
    prepareStatement(statement);
    return statement;
  };
  check(connection, type);
  return connection;
}

/**
 * Checks that a driver reads integers exactly: an old or foreign one may not support bigints.
 * @param {Connection} connection
 * @param {string} type
 */
function check(connection, type) {
  const beyond = '9007199254740993';
  const statement = connection.prepare(`SELECT ${beyond} AS id`);
  let row;
  if (type === 'sqljs') {
    statement.step();
    row = statement.getAsObject();
    statement.free();
  } else {
    [row] = statement.all();
  }
  if (row.id === beyond) return;
  throw configError(
    `the driver of this DataSource reads ${beyond} as ${row.id}, and would round IDs: install the current version of ${type === 'sqljs' ? 'sql.js' : type}`,
  );
}

module.exports = { columnTypeFor, isSqlite, readIntegersExactly };
