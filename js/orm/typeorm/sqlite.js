'use strict';
// SQLite stores IDs as 64-bit integers, which sort. Its drivers for Node read each integer as a number, and round
// it, unless every statement asks for bigints. So TypeORM gets connections whose statements ask: an integer
// beyond 2^53 is then a string, as with the drivers of servers, and a smaller one a number, as before.

const { configError } = require('../../messages/errors.js');

/** By type of DataSource: makes a statement read integers exactly. */
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

/** Drivers of SQLite that have no exact way to read an integer. With them, IDs are text. */
const TEXT_ONLY = ['sqlite', 'capacitor', 'cordova', 'expo', 'nativescript', 'react-native'];

const isSqlite = (type) => Object.hasOwn(STATEMENTS, type) || TEXT_ONLY.includes(type);

/** The column type that keeps an ID exact, and sorts if the driver permits. */
function columnTypeFor(type) {
  return TEXT_ONLY.includes(type)
    ? { type: 'varchar', length: '20' }
    : { type: 'bigint', length: '' };
}

/** Changes a row in place. */
function withNumbers(row) {
  for (const key of Object.keys(row)) {
    const value = row[key];
    if (typeof value !== 'bigint') continue;
    row[key] = Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  return row;
}

/** Drivers prepared. A DataSource keeps its driver when it is initialized again. */
const exact = new WeakSet();

/** Makes a driver's connections read integers exactly: the present one, and those that it opens later. */
function readIntegersExactly({ driver, options }) {
  const prepareStatement = STATEMENTS[options.type];
  if (prepareStatement === undefined || exact.has(driver)) return;
  exact.add(driver);
  let connection = withExactStatements(driver.databaseConnection, prepareStatement, options.type);
  Object.defineProperty(driver, 'databaseConnection', {
    __proto__: null,
    get: () => connection,
    set: (opened) => {
      connection = withExactStatements(opened, prepareStatement, options.type);
    },
    configurable: true,
    enumerable: true,
  });
}

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

/** An old or foreign driver may not know bigints. */
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
