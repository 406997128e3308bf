'use strict';
// A register in a table of a SQL database, for any dialect and client: one row for each record.
//
// Each call is one statement in a transaction of its own, which the adapter has to ensure: it refuses a connection
// inside a transaction. An UPDATE compares the token. If it has changed no row, a read finds out why. No statement
// depends on the dialect's locks, transaction IDs or isolation level, so other databases of the same wire protocol run
// them, too.
//
// A read locks its row. So a proxy that sends reads to replicas sends it to the primary, and a replica refuses it. A list
// does not: PostgreSQL would write each row that it locks.
//
// The table's name is qualified, by the option `schema` or at the first call, so `SET search_path` and `USE` change nothing
// later. It is created at the first record that has no predecessor, and nowhere else.

const { SnowFlakeError } = require('../errors.js');
const { TableFailure } = require('./failures.js');
const { createRegister, decode } = require('./register.js');
const { findHome } = require('./sql-clients.js');
const { DIALECTS, RECORDS, createRecords, recordsIn } = require('./sql-dialects.js');

/** The most tries of a statement that fails with a conflict (`isConflict`). */
const MAX_TRIES = 20;

/** Records that a list reads at a time: their bytes stay below the limit of a call, MOST_RECEIVED. */
const PAGE = 2000;

/** A column's text, whatever type the client returns. */
const toText = (value) => (typeof value === 'string' ? value : Buffer.from(value).toString());

/**
 * @param schema the schema or database of the table; without it, the connection's
 * @param query runs one statement with `?` placeholders until `signal` is aborted, in a transaction of its own, or throws. It
 *   returns the rows of a SELECT or RETURNING; of another change as many rows as it has changed
 */
function sqlRegister({ name, namespace, schema, dialect, query }) {
  const { now, isConflict, isMissing, isDuplicate, hasReturning, ...differing } = DIALECTS[dialect];
  const { toColumn, startsWith, lock, unlessExists, describeRun } = differing;
  const returning = hasReturning ? ` RETURNING ${now} AS now` : '';
  const timeOf = (row) => (row?.now === undefined ? undefined : Number(row.now));
  let table = schema && recordsIn(dialect, schema);

  async function run(signal, text, values = []) {
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await query(text, values, signal);
      } catch (failure) {
        if (tries === MAX_TRIES || !isConflict(failure)) throw failure;
      }
    }
  }

  /** The table's qualified name. */
  async function tableOf(signal) {
    if (table !== undefined) return table;
    const home = await findHome(name, dialect, RECORDS, (text) => run(signal, text));
    table ??= `${home}${RECORDS}`;
    return table;
  }

  const create = async (signal) => run(signal, createRecords(dialect, await tableOf(signal)));

  /** The rows under a condition; none if there is no table. */
  async function selectAny(signal, columns, condition, ...values) {
    const text = `SELECT ${columns}, ${now} AS now FROM ${await tableOf(signal)} WHERE ${condition}`;
    return run(signal, text, values.map(toColumn)).catch((failure) => {
      if (isMissing(failure)) return [];
      throw failure;
    });
  }

  const select = (signal, columns, condition, ...values) =>
    selectAny(signal, columns, `namespace = ? AND ${condition}`, namespace, ...values);

  const recordOf = (key, { token, text }) => decode(name, key, `${toText(token)} ${toText(text)}`);

  async function read(key, signal) {
    const [row] = await select(signal, 'token, text', `name = ?${lock}`, key);
    return { record: row && recordOf(key, row), now: timeOf(row) };
  }

  async function update(signal, key, { token, text }, before) {
    const set = `UPDATE ${await tableOf(signal)} SET token = ?, text = ?`;
    return run(signal, `${set} WHERE namespace = ? AND name = ? AND token = ?${returning}`, [
      ...[toColumn(token), Buffer.from(text)],
      ...[namespace, key, before].map(toColumn),
    ]);
  }

  async function insert(signal, key, { token, text }) {
    const into = `INSERT INTO ${await tableOf(signal)} (namespace, name, token, text)`;
    return run(signal, `${into} VALUES (?, ?, ?, ?)${unlessExists}${returning}`, [
      ...[namespace, key, token].map(toColumn),
      Buffer.from(text),
    ]);
  }

  /** Inserts, and creates the table if it is missing. */
  async function insertAnywhere(signal, key, record) {
    try {
      return await insert(signal, key, record);
    } catch (failure) {
      if (!isMissing(failure)) throw failure;
    }
    let cause;
    try {
      await create(signal);
    } catch (failure) {
      // On PostgreSQL, one of two that create it at once may fail: then it is there.
      cause = failure instanceof SnowFlakeError ? failure : new TableFailure(table, failure);
    }
    return insert(signal, key, record).catch((failure) => {
      throw isMissing(failure) && cause !== undefined ? cause : failure;
    });
  }

  return createRegister({
    name,
    read,
    now: async (signal) => timeOf((await run(signal, `SELECT ${now} AS now`))[0]),

    describeRun:
      describeRun &&
      (async (signal) => {
        const description = await describeRun((text) => run(signal, text));
        return `${await tableOf(signal)} ${description}`;
      }),

    async write(key, record, before, signal) {
      const change = before === undefined ? insertAnywhere : update;
      const [changed] = await change(signal, key, record, before).catch((failure) => {
        if (isDuplicate?.(failure) || isMissing(failure)) return [];
        throw failure;
      });
      if (changed !== undefined) return { isWritten: true, now: timeOf(changed) };
      const { record: found, now: time } = await read(key, signal);
      return { isWritten: false, found, now: time };
    },

    async namespaces(signal) {
      const rows = await selectAny(signal, 'namespace', 'name = ?', 'namespace');
      return rows.map((row) => toText(row.namespace));
    },

    async list(prefix, signal) {
      const records = new Map();
      const [condition, ...values] = startsWith(prefix);
      const page = `${condition} AND name > ? ORDER BY name LIMIT ${PAGE}`;
      for (let last = ''; ; ) {
        const rows = await select(signal, 'name, token, text', page, ...values, last);
        for (const row of rows) {
          last = toText(row.name);
          records.set(last, recordOf(last, row));
        }
        if (rows.length < PAGE) return { records, now: timeOf(rows[0]) };
      }
    },
  });
}

module.exports = { sqlRegister };
