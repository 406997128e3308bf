'use strict';
// A table of a store in a SQL database: where it is, and how it comes to be there.

const { configError, describe } = require('../messages/errors.js');
const { DIALECTS } = require('./sql-dialects.js');

/** @import { DialectName, Query, Row } from './types.d.ts' */

/**
 * The row of a SELECT that always has one.
 * @param {string} name of the store
 * @param {Row[]} rows
 */
function onlyRow(name, [row]) {
  if (row !== undefined) return row;
  throw configError(
    `${name} got no row for a SELECT without a condition: its client must return the rows`,
  );
}

/**
 * A table's schema, and its qualified name: by the option `schema`, or where it is when it is looked for first. An application may move its
 * connection later (`SET search_path`, `USE`), and another table would give the same IDs.
 * @param {string} table
 * @param {{ name: string, dialect: DialectName, schema: string | undefined, query: Query }} store
 * @returns {(signal: AbortSignal) => Promise<{ place: string, table: string }>}
 */
function locate(table, { name, dialect, schema, query }) {
  const { home, quote } = DIALECTS[dialect];
  let place = schema;
  return async (signal) => {
    if (place === undefined) {
      const found = onlyRow(name, await query(home(table), [], signal, ['home']));
      if (found.home === null) {
        throw configError(
          `${name} has no place for its tables: name a database that exists in the URL or the client's options; on PostgreSQL, a schema that exists in search_path`,
        );
      }
      if (found.home.includes('?')) {
        throw configError(
          `${name} cannot use ${describe(found.home)}: a schema or database without '?'`,
        );
      }
      place ??= found.home;
    }
    return { place, table: `${quote(place)}.${table}` };
  };
}

/**
 * Inserts, and creates the table if it is missing.
 * @template T
 * @param {(failure: unknown) => boolean} isMissing
 * @param {() => Promise<T>} insert
 * @param {() => Promise<unknown>} create
 */
async function insertAnywhere(isMissing, insert, create) {
  try {
    return await insert();
  } catch (failure) {
    if (!isMissing(failure)) throw failure;
  }
  // On PostgreSQL, one of two that create it at once may fail: then it is there.
  const cause = await create().then(
    () => undefined,
    (failure) => failure,
  );
  return insert().catch((failure) => {
    throw isMissing(failure) && cause !== undefined ? cause : failure;
  });
}

module.exports = { insertAnywhere, locate, onlyRow };
