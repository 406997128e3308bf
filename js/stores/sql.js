'use strict';
// A register in a SQL database, through any client that has a function for statements: sql-register.js has its table.
//
// All that is known of the client is what `query` returns. Values are text, since clients have different types for bytes.

const { types } = require('node:util');

const { optionsOf } = require('../messages/checks.js');
const { configError, describe } = require('../messages/errors.js');
const { ownOf, readAll } = require('../ids/properties.js');
const { numberParameters } = require('./sql-clients.js');
const { DIALECTS, checkDialect, isColumn, migration, textOf } = require('./sql-dialects.js');
const { sqlRegister } = require('./sql-register.js');

/**
 * @import { SqlClient } from './sql.d.ts'
 * @import { Query, Row } from './types.d.ts'
 */

const PLACEHOLDERS = ['?', '$1'];

/** More than any statement selects. */
const MOST_ROWS = 1000;

/** The most errors that are looked at, each the cause of the one before. */
const MOST_CAUSES = 5;

/** The most characters of an error that are looked at. */
const MOST_READ = 1000;

/** Where clients have a server's code. */
const CODES = ['code', 'errno', 'sqlState', 'message'];
/** Where they have a driver's error. */
const CAUSES = ['cause', 'parent', 'original', 'meta'];

/** A transaction that has to be tried again: of PostgreSQL, of MySQL and TiDB, of SQLite. */
const CONFLICT =
  /\b(40001|40P01|1213|9007|ER_LOCK_DEADLOCK|SQLITE_BUSY\w*)\b|deadlock|could not serialize|write conflict|database is locked/i;

/** A connection of SQLite within a transaction. */
const LOCKED = /\bSQLITE_LOCKED\b|table is locked/;

/**
 * Whether an error is of a kind, or has a cause that is.
 * @param {RegExp} kind
 * @returns {(failure: unknown) => boolean}
 */
const isOf = (kind) => (failure) => {
  let each = failure;
  for (let n = 0; n < MOST_CAUSES && Object(each) === each; n++) {
    const one = /** @type {object} */ (each);
    const codes = Object.values(readAll(one, CODES));
    if (codes.some((code) => kind.test(String(code).slice(0, MOST_READ)))) return true;
    each = Object.values(readAll(one, CAUSES)).find((cause) => Object(cause) === cause);
  }
  return false;
};

const CLIENT = { isConflict: isOf(CONFLICT), isLocked: isOf(LOCKED) };

/**
 * What is wrong with the rows that `query` has returned.
 * @param {string} name of the store
 * @param {string} what
 */
const rowsError = (name, what) =>
  configError(
    `${name} got ${what}: query must return the rows of a statement, an array of objects, as in (text, values) => client.query(text, values).then(({ rows }) => rows)`,
  );

/**
 * @param {string} name
 * @param {unknown} found
 * @param {string[]} columns that each row has
 */
function rowsOf(name, found, columns) {
  if (!Array.isArray(found)) throw rowsError(name, describe(found));
  return found.slice(0, MOST_ROWS).map((row) => {
    if (Object(row) !== row) throw rowsError(name, `the row ${describe(row)}`);
    const own = readAll(row, columns);
    const wrong = columns.find((column) => !isColumn(column, own[column]));
    if (wrong !== undefined) {
      throw rowsError(name, `a row whose column ${wrong} is ${describe(own[wrong])}`);
    }
    // Of bytes, no two are the same, so that each look would be another transaction's.
    const texts = Object.entries(own).map(([column, value]) => [
      column,
      types.isUint8Array(value) ? textOf(value) : value,
    ]);
    return /** @type {Row} */ (ownOf(Object.fromEntries(texts)));
  });
}

/** @type {typeof import('./sql.d.ts').sql} */
function sql(client, options) {
  const names = ['dialect', 'query', 'placeholder'];
  /** @type {unknown} */
  const given = optionsOf(client, 'the client of sql({ dialect, query })', names);
  const { dialect, query, placeholder } = /** @type {SqlClient} */ (given);
  checkDialect(dialect);
  if (typeof query !== 'function') {
    throw configError(`query of sql() must be a function; it is ${describe(query)}`);
  }
  const { placeholder: usual } = DIALECTS[dialect];
  if (placeholder !== undefined && !PLACEHOLDERS.includes(placeholder)) {
    throw configError(
      `placeholder of sql() must be '${PLACEHOLDERS.join("' or '")}'; it is ${describe(placeholder)}`,
    );
  }
  const isNumbered = (placeholder ?? usual) === '$1';
  /** @type {(name: string) => Query} */
  const queryOf = (name) => async (text, values, _, columns) => {
    const sent = isNumbered ? numberParameters(text) : text;
    const found = await query(sent, values.map(String));
    return columns === undefined ? [] : rowsOf(name, found, columns);
  };
  return sqlRegister(`sql:${dialect}`, dialect, options, queryOf, CLIENT);
}

/** @satisfies {typeof import('./sql.js')} */
module.exports = { migration, sql };
