'use strict';
// A register in a table of a SQL database, for any dialect and client: one row for each record.
//
// Each call is one statement in a transaction of its own, which the adapter has to ensure: it refuses a connection
// inside a transaction. An UPDATE compares the token. If it has changed no row, a read finds out why. No statement
// depends on the dialect's locks, transaction IDs or isolation level, so other databases of the same wire protocol run
// them, too.
//
// A foreign client shows neither the rows that a statement has changed, nor what its errors mean, nor its transaction. So each write
// adds a random number to the record, which keeps those of the last 32, and a read in another transaction looks for it. After an error
// the database is asked whether the table is there.
//
// A read locks its row. So a proxy that sends reads to replicas sends it to the primary, and a replica refuses it.
//
// The table's name is qualified, by the option `schema` or at the first call, so `SET search_path` and `USE` change nothing
// later. It is created at the first record that has no predecessor, and nowhere else.

const { randomBytes } = require('node:crypto');

const { SnowFlakeError } = require('../messages/errors.js');
const { NONE, ownOf } = require('../ids/properties.js');
const { pause } = require('../runtime/time.js');
const { TableFailure } = require('./failures.js');
const { nameOf, readOptions } = require('./options.js');
const { createRegister, decode } = require('./register.js');
const {
  DIALECTS,
  OPEN,
  RECORDS,
  WRITES,
  checkSchema,
  createRecords,
} = require('./sql-dialects.js');
const { insertAnywhere, locate, onlyRow } = require('./sql-table.js');
const { uncommittedError } = require('./sql-clients.js');

/** @import { SqlStoreOptions } from './store.d.ts' */
/** @import { DialectName, ForeignClient, LeaseRecord, Query, Row, Value } from './types.d.ts' */

/** The most tries of a statement that fails with a conflict (`isConflict`). */
const MAX_TRIES = 20;

/** How much longer each wait before a further try may be, ms: SQLite has no queue of writers. */
const WAIT_MS = 5;

/** Of a write. */
const NUMBER_BYTES = 8;

/** @type {(writes: string) => string[]} */
const numbersIn = (writes) => writes.match(/.{16}/gs) ?? [];

/** The most names of namespaces that are read. */
const MOST_NAMES = 1000;

/** The most schemas that are named. */
const MOST_SCHEMAS = 100;

/** What a statement throws that finds no table. */
class MissingTable extends Error {
  /**
   * @param {string} table
   * @param {unknown} cause
   */
  constructor(table, cause) {
    super(`there is no table ${table}`, { cause });
  }
}

/**
 * @param {string} kind of the store, in its name
 * @param {DialectName} dialect
 * @param {SqlStoreOptions | undefined} options
 * @param {(name: string) => Query} queryOf returns what runs its statements, for the store's name
 * @param {ForeignClient} [foreign]
 */
function sqlRegister(kind, dialect, options, queryOf, foreign) {
  const { namespace, schema } = readOptions(options, ['namespace', 'schema']);
  if (schema !== undefined) checkSchema(dialect);
  const name = nameOf(kind, schema, namespace);
  const query = queryOf(name);
  const sql = ownOf(DIALECTS[dialect]);
  const { now, toColumn, nameColumn } = sql;
  /** @param {Row} row */
  const timeOf = ({ now }) => (now === undefined ? undefined : Number(now));

  /** @type {Query} */
  async function run(text, values, signal, columns) {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await query(text, values, signal, columns);
      } catch (failure) {
        if (tries === MAX_TRIES || !(foreign ?? sql).isConflict(failure)) throw failure;
        if (foreign) await pause(Math.random() * tries * WAIT_MS);
      }
    }
  }

  const locateTable = locate(RECORDS, { name, dialect, schema, query: run });

  /** @param {AbortSignal} signal */
  const tableOf = async (signal) => (await locateTable(signal)).table;

  const isMissing = foreign
    ? (/** @type {unknown} */ failure) => failure instanceof MissingTable
    : sql.isMissing;

  /**
   * Runs a statement on the table.
   * @type {Query}
   */
  async function attempt(text, values, signal, columns) {
    try {
      return await run(text, values, signal, columns);
    } catch (failure) {
      if (!foreign || failure instanceof SnowFlakeError) throw failure;
      const { place, table } = await locateTable(signal);
      const ask = `${sql.homes(RECORDS)} AND ${sql.homeColumn} = ?`;
      const found = await run(ask, [place], signal, ['home']).catch(() => {
        throw failure;
      });
      if (found.length === 0) throw new MissingTable(table, failure);
      // Another process may have created it meanwhile.
      return run(text, values, signal, columns);
    }
  }

  /**
   * The rows that a statement finds; none if there is no table.
   * @param {AbortSignal} signal
   * @param {string[]} columns
   * @param {(table: string) => string} text
   * @param {string[]} values
   */
  async function find(signal, columns, text, ...values) {
    const statement = text(await tableOf(signal));
    return attempt(statement, values.map(toColumn), signal, columns).catch((failure) => {
      if (isMissing(failure)) return [];
      throw failure;
    });
  }

  const columns = ['token', 'text', 'now'];
  const selected = [nameColumn('token'), sql.textColumn, `${now} AS now`];
  if (foreign) {
    columns.push('writes', 'began');
    selected.push(nameColumn('writes'), `${sql.began} AS began`);
  }

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function look(key, signal) {
    const condition = 'namespace = ? AND name = ?';
    const text = (/** @type {string} */ table) => sql.lookUp(table, selected.join(', '), condition);
    const [row] = await find(signal, columns, text, namespace, key);
    if (row === undefined) return { record: undefined };
    const stored = `${sql.nameOf(row.token)} ${sql.toText(row.text)}`;
    return { record: decode(name, key, stored), now: timeOf(row), row };
  }

  /** @param {unknown} failure of the dialect's `check` */
  function refuseLocked(failure) {
    if (foreign?.isLocked(failure)) throw uncommittedError(name);
  }

  /**
   * A record that is committed, since another transaction sees it.
   * @param {string} key
   * @param {AbortSignal} signal
   * @param {string} [last] when the transaction began in which it may have been written
   */
  async function lookFromOutside(key, signal, last) {
    if (sql.check) await run(sql.check, [], signal).catch(refuseLocked);
    let earlier = sql.returning === '' ? OPEN : last;
    // A clock may have whole milliseconds: then two transactions may begin at one time.
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = await look(key, signal);
      const { began } = found.row ?? NONE;
      if (!found.row || (earlier !== undefined && began !== earlier)) return found;
      if (began === OPEN) break;
      earlier = began;
    }
    throw uncommittedError(name);
  }

  const returned = sql.returning === '' ? undefined : ['now', 'began'];

  /**
   * @typedef {[namespace: string, key: string, before: string | undefined]} Where
   * @param {string} table
   * @param {LeaseRecord} record
   * @param {Where} where
   * @param {AbortSignal} signal
   * @param {string} [number] of the write, if the record is to keep it
   */
  async function update(table, { token, text }, where, signal, number) {
    const numbers = number === undefined ? [] : [number];
    const kept = numbers.map(() => `, writes = ${sql.prepend('writes', WRITES)}`);
    const set = `UPDATE ${table} SET token = ?, text = ${sql.toBytes}${kept}`;
    const condition = 'namespace = ? AND name = ? AND token = ?';
    const values = [toColumn(token), sql.toValue(text), ...[...numbers, ...where].map(toColumn)];
    return attempt(`${set} WHERE ${condition}${sql.returning}`, values, signal, returned);
  }

  /** @type {typeof update} */
  async function insert(table, { token, text }, [, key], signal, number) {
    const numbers = number === undefined ? [] : [number];
    const [column, value] = number === undefined ? ['', ''] : [', writes', ', ?'];
    const into = `INSERT INTO ${table} (namespace, name, token, text${column}) VALUES (?, ?, ?, ${sql.toBytes}${value})`;
    const names = [namespace, key, token].map(toColumn);
    const values = [...names, sql.toValue(text), ...numbers.map(toColumn)];
    const send = () =>
      attempt(`${into}${sql.unlessExists}${sql.returning}`, values, signal, returned);
    const create = () =>
      run(createRecords(dialect, table), [], signal).catch((failure) => {
        throw failure instanceof SnowFlakeError ? failure : new TableFailure(table, failure);
      });
    return insertAnywhere(isMissing, send, create);
  }

  /** @type {import('./types.d.ts').Adapter['write']} */
  async function write(key, record, before, signal) {
    const change = before === undefined ? insert : update;
    const table = await tableOf(signal);
    /** @type {Where} */
    const where = [namespace, key, before];
    const [changed] = await change(table, record, where, signal).catch((failure) => {
      if (sql.isDuplicate?.(failure) || isMissing(failure)) return [];
      throw failure;
    });
    if (changed !== undefined) return { isWritten: true, now: timeOf(changed) };
    const { record: found, now } = await look(key, signal);
    return { isWritten: false, found, now };
  }

  /**
   * As `write`, by a foreign client.
   * @type {typeof write}
   */
  async function writeAndLook(key, record, before, signal) {
    const change = before === undefined ? insert : update;
    const table = await tableOf(signal);
    const number = randomBytes(NUMBER_BYTES).toString('hex');
    /** @type {Where} */
    const where = [namespace, key, before];
    /** @type {unknown} */
    let cause;
    const changed = await change(table, record, where, signal, number).catch((failure) => {
      if (failure instanceof SnowFlakeError) throw failure;
      cause = failure;
    });
    const { record: found, now, row } = await lookFromOutside(key, signal, changed?.[0]?.began);
    if (row && numbersIn(sql.nameOf(row.writes)).includes(number)) return { isWritten: true, now };
    // It may still be under way: only a record over which it does not write tells that it has failed.
    if (cause !== undefined && found?.token === before) throw cause;
    return { isWritten: false, found, now };
  }

  return createRegister({
    name,
    read: foreign ? lookFromOutside : look,
    write: foreign ? writeAndLook : write,

    async now(signal) {
      const rows = await run(`SELECT ${now} AS now`, [], signal, ['now']);
      return Number(onlyRow(name, rows).now);
    },

    async namespaces(signal) {
      const text = (/** @type {string} */ table) =>
        `SELECT ${nameColumn('namespace')} FROM ${table} WHERE name = ? ORDER BY namespace LIMIT ${MOST_NAMES}`;
      const rows = await find(signal, ['namespace'], text, 'namespace');
      return rows.map((row) => sql.nameOf(row.namespace));
    },

    /** The other schemas that have such a table. */
    async schemas(signal) {
      const table = await tableOf(signal);
      const rows = await run(`${sql.homes(RECORDS)} LIMIT ${MOST_SCHEMAS}`, [], signal, ['home']);
      const names = rows.map(({ home }) => String(home));
      return names.filter((home) => `${sql.quote(home)}.${RECORDS}` !== table);
    },
  });
}

module.exports = { sqlRegister };
