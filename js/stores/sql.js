'use strict';
// A register in a table of a SQL database, for any dialect and client: one row for each record.
//
// Each call is one statement in a transaction of its own, which the adapter has to ensure: it refuses a connection
// inside a transaction. An UPDATE compares the token. If it has changed no row, a read finds out why. No statement
// depends on the dialect's locks, transaction IDs or isolation level, so other databases of the same wire protocol run
// them, too.
//
// A read locks its row. So a proxy that sends reads to replicas sends it to the primary, and a replica refuses it.
//
// The table's name is qualified, by the option `schema` or at the first call, so `SET search_path` and `USE` change nothing
// later. It is created at the first record that has no predecessor, and nowhere else.

const { SnowFlakeError } = require('../messages/errors.js');
const { ownOf } = require('../ids/properties.js');
const { TableFailure } = require('./failures.js');
const { nameOf, readOptions } = require('./options.js');
const { createRegister, decode } = require('./register.js');
const { DIALECTS, RECORDS, createRecords, textOf } = require('./sql-dialects.js');
const { insertAnywhere, locate } = require('./sql-table.js');

/** @import { SqlStoreOptions } from './store.d.ts' */
/** @import { DialectName, LeaseRecord, Query, Row, Value } from './types.d.ts' */

/** The most tries of a statement that fails with a conflict (`isConflict`). */
const MAX_TRIES = 20;

/** The most names of namespaces that are read. */
const MOST_NAMES = 1000;

/**
 * @param {string} kind of the store, in its name
 * @param {DialectName} dialect
 * @param {SqlStoreOptions | undefined} options
 * @param {(name: string) => Query} queryOf returns what runs its statements, for the store's name
 */
function sqlRegister(kind, dialect, options, queryOf) {
  const { namespace, schema } = readOptions(options, ['namespace', 'schema']);
  const name = nameOf(kind, schema, namespace);
  const query = queryOf(name);
  const { now, toColumn, toText, textOfRecord, unlessExists, returning, ...differing } = ownOf(
    DIALECTS[dialect],
  );
  const { homes, quote, isConflict, isDuplicate, isMissing } = ownOf(differing);
  /** @param {Row} row */
  const timeOf = ({ now }) => (now === undefined ? undefined : Number(now));

  /** @type {Query} */
  async function run(text, values, signal) {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await query(text, values, signal);
      } catch (failure) {
        if (tries === MAX_TRIES || !isConflict(failure)) throw failure;
      }
    }
  }

  const tableOf = locate(RECORDS, { name, dialect, schema, query: run });

  /**
   * The rows under a condition; none if there is no table.
   * @param {AbortSignal} signal
   * @param {string} columns
   * @param {string} condition
   * @param {string[]} values
   */
  async function select(signal, columns, condition, ...values) {
    const text = `SELECT ${columns}, ${now} AS now FROM ${await tableOf(signal)} WHERE ${condition}`;
    return run(text, values.map(toColumn), signal).catch((failure) => {
      if (isMissing(failure)) return [];
      throw failure;
    });
  }

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function read(key, signal) {
    const condition = 'namespace = ? AND name = ? FOR UPDATE';
    const [row] = await select(signal, `token, ${textOfRecord}`, condition, namespace, key);
    if (row === undefined) return { record: undefined };
    const stored = `${textOf(row.token)} ${toText(row.text)}`;
    return { record: decode(name, key, stored), now: timeOf(row) };
  }

  /**
   * @typedef {[namespace: string, key: string, before: string | undefined]} Where
   * @param {string} table
   * @param {LeaseRecord} record
   * @param {Where} where
   * @param {AbortSignal} signal
   */
  async function update(table, { token, text }, where, signal) {
    const set = `UPDATE ${table} SET token = ?, text = ?`;
    const condition = 'namespace = ? AND name = ? AND token = ?';
    const values = [toColumn(token), Buffer.from(text), ...where.map(toColumn)];
    return run(`${set} WHERE ${condition}${returning}`, values, signal);
  }

  /** @type {typeof update} */
  async function insert(table, { token, text }, [, key], signal) {
    const into = `INSERT INTO ${table} (namespace, name, token, text) VALUES (?, ?, ?, ?)`;
    const values = [...[namespace, key, token].map(toColumn), Buffer.from(text)];
    const send = () => run(`${into}${unlessExists}${returning}`, values, signal);
    const create = () =>
      run(createRecords(dialect, table), [], signal).catch((failure) => {
        throw failure instanceof SnowFlakeError ? failure : new TableFailure(table, failure);
      });
    return insertAnywhere(DIALECTS[dialect], send, create);
  }

  return createRegister({
    name,
    read,
    now: async (signal) => Number((await run(`SELECT ${now} AS now`, [], signal))[0].now),

    async write(key, record, before, signal) {
      const change = before === undefined ? insert : update;
      const table = await tableOf(signal);
      /** @type {Where} */
      const where = [namespace, key, before];
      const [changed] = await change(table, record, where, signal).catch((failure) => {
        if (isDuplicate?.(failure) || isMissing(failure)) return [];
        throw failure;
      });
      if (changed !== undefined) return { isWritten: true, now: timeOf(changed) };
      const { record: found, now: time } = await read(key, signal);
      return { isWritten: false, found, now: time };
    },

    async namespaces(signal) {
      const condition = `name = ? ORDER BY namespace LIMIT ${MOST_NAMES}`;
      const rows = await select(signal, 'namespace', condition, 'namespace');
      return rows.map((row) => textOf(row.namespace));
    },

    /** The other schemas that have such a table. */
    async schemas(signal) {
      const table = await tableOf(signal);
      const rows = await run(homes(RECORDS), [], signal);
      const names = rows.map(({ home }) => String(home));
      return names.filter((home) => `${quote(home)}.${RECORDS}` !== table);
    },
  });
}

module.exports = { sqlRegister };
