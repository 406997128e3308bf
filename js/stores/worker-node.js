'use strict';
// `snowdrift/lease/worker-node`: worker IDs as UidGenerator assigns them. Each start inserts a row into its
// WORKER_NODE table, and the row's auto-increment ID is the worker ID. IDs are never reused, so nothing expires
// or is taken over, and no clock matters. Java and Node applications can share one table.
//
// The table has no columns for a lease's records, and no holder depends on those of another. So each lease has a register of
// its own, in this process's memory, with one slot that it wants.
//
// A table that is emptied or created anew assigns worker IDs again. Each holder looks for its row when it renews:
// without the row it loses its slot. A holder that lost one starts above all that others can issue until they
// notice.

const { configError, SnowFlakeError, describe } = require('../messages/errors.js');
const { choice, memberType } = require('../messages/checks.js');
const { runWithin } = require('../runtime/limits.js');
const { memory } = require('./memory.js');
const { ofClient } = require('./failures.js');
const { checkClient, nameOf, readOptions } = require('./options.js');
const { POOLS, queryMysql, queryPostgres, uncommittedError } = require('./sql-clients.js');
const { DIALECTS } = require('./sql-dialects.js');
const { insertAnywhere, locate } = require('./sql-table.js');

/** @import { Query, Register, RowRequest, RowStore, ServerDialect, Value } from './types.d.ts' */

/** A row of this process. `mark`: of what else it has. @typedef {{ id: number, mark: string }} Mark */

/** UidGenerator's WorkerNodeType. */
const TYPES = { container: 1, actual: 2 };

/** The longest look for a holder's row, ms. IDs continue without an answer: the database may be away. */
const LOOK_MS = 1000;

/** The length of UidGenerator's columns. */
const MAX_NAME = 64;

/**
 * By dialect: what differs.
 * @type {Record<ServerDialect, {
 *   queryOf: (name: string, pool: object) => Query,
 *   id: string,
 *   row: string,
 *   text: string,
 *   toText: (text: string) => Value,
 *   returning: string,
 * }>}
 */
const DATABASES = {
  postgres: {
    queryOf: queryPostgres,
    id: 'BIGSERIAL',
    row: 'CAST(ID AS TEXT) AS worker, HOST_NAME AS host, PORT AS port, CAST(EXTRACT(EPOCH FROM CREATED) AS TEXT) AS created',
    text: '?',
    toText: (text) => text,
    returning: ' RETURNING CAST(ID AS TEXT) AS "insertId"',
  },
  mysql: {
    queryOf: queryMysql,
    id: 'BIGINT NOT NULL AUTO_INCREMENT',
    row: 'ID AS worker, HOST_NAME AS host, PORT AS port, UNIX_TIMESTAMP(CREATED) AS created',
    // mysql2 writes bytes as digits, and escapes texts, wrongly for some modes of SQL.
    text: 'CONVERT(? USING utf8mb4)',
    toText: (text) => Buffer.from(text),
    returning: '',
  },
};

/**
 * @param {string} table
 * @param {string} id
 */
const createTable = (table, id) => `CREATE TABLE IF NOT EXISTS ${table} (
  ID ${id} PRIMARY KEY,
  HOST_NAME VARCHAR(64) NOT NULL,
  PORT VARCHAR(64) NOT NULL,
  TYPE INT NOT NULL,
  LAUNCH_DATE DATE NOT NULL,
  MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CREATED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)`;

/** @type {typeof import('./worker-node.d.ts').workerNode} */
function workerNode(pool, options) {
  const dialect = memberType(pool, 'getConnection') === 'undefined' ? 'postgres' : 'mysql';
  checkClient(pool, POOLS[dialect], 'workerNode() takes a pool of mysql2 or pg');
  const names = ['type', 'host', 'port', 'schema'];
  const given = readOptions(options, names, 'options of workerNode()');
  const { type = 'actual', host, port, schema } = given;
  choice('type', type, Object.keys(TYPES));
  for (const [name, value] of Object.entries({ host, port })) {
    if (value !== undefined && (typeof value !== 'string' || value.length > MAX_NAME)) {
      throw configError(
        `${name} must be a string of up to ${MAX_NAME} characters; it is ${describe(value)}`,
      );
    }
  }
  const { queryOf, id: idColumn, row: columns, text, toText, returning } = DATABASES[dialect];
  const { isMissing } = DIALECTS[dialect];
  const name = nameOf(dialect, schema, 'WORKER_NODE');
  const query = ofClient(queryOf(name, pool));
  const tableOf = locate('WORKER_NODE', { name, dialect, schema, query });

  /**
   * The row of this ID; if there is none, the row of the next higher ID. The order is that of the column: no alias has its name.
   * @param {number} workerId
   * @param {AbortSignal} signal
   * @returns {Promise<Mark | undefined>}
   */
  async function readRow(workerId, signal) {
    const [row] = await query(
      `SELECT ${columns} FROM ${(await tableOf(signal)).table} WHERE ID >= ? ORDER BY ID LIMIT 1`,
      [workerId],
      signal,
    );
    if (row === undefined) return undefined;
    const { worker: id, host, port, created: at } = row;
    // The processes of an application may have one host and port.
    return { id: Number(id), mark: `${host}:${port} ${at}` };
  }

  /**
   * Whether the table has lost a row, and so assigns its ID again or has done so.
   * @param {Mark} row
   * @param {number} ttl
   */
  async function isRowLost({ id, mark }, ttl) {
    try {
      const row = await runWithin(Math.min(LOOK_MS, ttl / 4), (signal) => readRow(id, signal));
      // Old rows may be deleted: without the row, a higher one shows that the table goes on from there.
      if (row === undefined || row.id > id) return row === undefined;
      return row.mark !== mark;
    } catch (failure) {
      return isMissing(failure);
    }
  }

  /**
   * Inserts a row. Returns it as it was committed.
   * @param {Pick<RowRequest, 'host' | 'started'>} holder
   * @param {AbortSignal} signal
   */
  async function insertRow(holder, signal) {
    const values = [
      toText((host ?? holder.host).slice(0, MAX_NAME)),
      // Without a port, UidGenerator also writes a value that distinguishes the processes of a host.
      toText(port ?? `${holder.started}-${process.pid}`),
      TYPES[type],
    ];
    const { table } = await tableOf(signal);
    const into = `INSERT INTO ${table} (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)`;
    const row = `VALUES (${text}, ${text}, ?, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)`;
    const [{ insertId }] = await insertAnywhere(
      isMissing,
      () => query(`${into} ${row}${returning}`, values, signal),
      () => query(createTable(table, idColumn), [], signal),
    );
    const workerId = Number(insertId);
    // After a crash the server may assign a rolled-back ID again.
    const inserted = await readRow(workerId, signal);
    if (inserted?.id !== workerId) throw uncommittedError(name);
    return inserted;
  }

  /**
   * A register for the holder of a row, without which each write finds that all is lost.
   * @param {Mark} row
   * @param {number} ttl
   * @returns {Register}
   */
  function registerOf(row, ttl) {
    const register = memory();
    return {
      ...register,
      name,
      async write(...values) {
        if (await isRowLost(row, ttl)) return { isWritten: false, found: undefined };
        return register.write(...values);
      },
    };
  }

  /** @type {RowStore} */
  const store = {
    name,
    // Worker IDs are never reused, so pages of the host would pile up.
    scope: 'process',

    async assignRow({ datacenterId, workerIds, ttl, signal, ...holder }) {
      if (datacenterId !== 0) {
        throw configError(
          'workerNode() numbers the workers of all datacenters together: use a layout without datacenterBits, such as { ...layouts.uid, epoch }',
        );
      }
      const row = await insertRow(holder, signal);
      if (row.id >= workerIds) {
        throw new SnowFlakeError(
          'ERR_SNOWFLAKE_NO_SLOT',
          `${name} assigned worker ID ${row.id}, and the layout's worker IDs end at ${workerIds - 1}. Use a layout with more workerBits whose IDs are above all old ones`,
        );
      }
      return { workerId: row.id, register: registerOf(row, ttl) };
    },
  };
  return store;
}

/** @satisfies {typeof import('./worker-node.js')} */
module.exports = { workerNode };
