'use strict';
// `snowdrift/lease/worker-node`: worker IDs as UidGenerator assigns them. Each start inserts a row into its
// WORKER_NODE table, and the row's auto-increment ID is the worker ID. IDs are never reused, so nothing expires
// or is taken over, and no clock matters. Java and Node applications can share one table.
//
// UidGenerator's table has no columns for a namespace's record, so open() and raise() record nothing and return
// the request. No holder continues another one's slot, so none depends on the limits of others.
//
// A table that is emptied or created anew assigns worker IDs again. Each holder looks for its row when it renews:
// without the row it loses its slot. A holder that lost one starts above all that others can issue until they
// notice.

const { configError, SnowFlakeError, describe } = require('../errors.js');
const { choice, propertiesOf } = require('../checks.js');
const { runWithin, unixNow } = require('../time.js');
const { checkClient } = require('./options.js');
const { findHome, queryMysql, queryPostgres, uncommittedError } = require('./sql-clients.js');
const { DIALECTS, LOCK } = require('./sql-dialects.js');

/** UidGenerator's WorkerNodeType. */
const TYPES = { container: 1, actual: 2 };

/** The longest look for a holder's row, ms. IDs continue without an answer: the database may be away. */
const LOOK_MS = 1000;

/** The length of UidGenerator's columns. */
const MAX_NAME = 64;

const COLUMNS = `HOST_NAME VARCHAR(64) NOT NULL,
  PORT VARCHAR(64) NOT NULL,
  TYPE INT NOT NULL,
  LAUNCH_DATE DATE NOT NULL,
  MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CREATED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP`;
const insertInto = (table) =>
  `INSERT INTO ${table} (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES (?, ?, ?, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)`;

const DATABASES = {
  postgres: {
    create: (table) => `${LOCK};
CREATE TABLE IF NOT EXISTS ${table} (
  ID BIGSERIAL PRIMARY KEY,
  ${COLUMNS}
)`,
    created: 'EXTRACT(EPOCH FROM CREATED)',
    query: queryPostgres,
    insert: async (client, table, values, signal) => {
      const [row] = await queryPostgres(
        client,
        `${insertInto(table)} RETURNING ID`,
        values,
        signal,
      );
      return Number(row.id);
    },
  },
  mysql: {
    create: (table) => `CREATE TABLE IF NOT EXISTS ${table} (
  ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  ${COLUMNS}
)`,
    created: 'UNIX_TIMESTAMP(CREATED)',
    query: queryMysql,
    insert: async (client, table, values, signal) => {
      const inserted = await queryMysql(client, insertInto(table), values, signal);
      if (!DIALECTS.mysql.isCommitted(inserted)) throw uncommittedError('mysql:WORKER_NODE');
      return Number(inserted.insertId);
    },
  },
};

function workerNode(client, options = {}) {
  checkClient(client, 'query', 'workerNode() takes a pool of mysql2 or pg');
  const keys = ['type', 'host', 'port'];
  const given = propertiesOf(options, 'options of workerNode()', keys, configError);
  const { type = 'actual', host, port } = given;
  choice('type', type, Object.keys(TYPES));
  for (const [name, value] of Object.entries({ host, port })) {
    if (value !== undefined && (typeof value !== 'string' || value.length > MAX_NAME)) {
      throw configError(
        `${name} must be a string of up to ${MAX_NAME} characters; it is ${describe(value)}`,
      );
    }
  }
  // Clients of mysql2 have execute(), those of pg do not.
  const dialect = typeof client.execute === 'function' ? 'mysql' : 'postgres';
  const { create, created, query, insert } = DATABASES[dialect];
  const { isMissing, isUncommitted, now } = DIALECTS[dialect];
  const name = `${dialect}:WORKER_NODE`;

  /** With its schema or database. */
  let table;
  /** By ID. */
  const records = new Map();
  /** By owner: the holder's row, as it was read. */
  const rows = new Map();

  /** The row of this ID; if there is none, the row of the next higher ID. */
  async function readRow(workerId, signal) {
    const [row] = await query(
      client,
      `SELECT ID AS id, HOST_NAME AS host, PORT AS port, ${created} AS created, ${isUncommitted} AS uncommitted
       FROM ${table} WHERE ID >= ? ORDER BY ID LIMIT 1`,
      [workerId],
      signal,
    );
    if (row === undefined) return undefined;
    const { id, host, port, created: at, uncommitted } = row;
    // The processes of an application may have one host and port.
    const mark = `${host}:${port} ${at}`;
    return { id: Number(id), mark, isUncommitted: Number(uncommitted) !== 0 };
  }

  /** Whether the table has lost a row, and so assigns its ID again or has done so. */
  async function isRowLost({ workerId, ttl }, before) {
    try {
      const row = await runWithin(Math.min(LOOK_MS, ttl / 4), (signal) =>
        readRow(workerId, signal),
      );
      // Old rows may be deleted: without the row, a higher one shows that the table goes on from there.
      if (row === undefined || row.id > workerId) return row === undefined;
      return row.mark !== before.mark;
    } catch (failure) {
      return isMissing(failure);
    }
  }

  return {
    name,
    // Slots are never reused, so pages of the host would pile up.
    scope: 'process',

    async now({ signal } = {}) {
      const [{ ms }] = await query(client, `SELECT ${now} AS ms`, [], signal);
      return Number(ms);
    },

    async open({ signal, ...record }) {
      if (table === undefined) {
        const home = await findHome(name, dialect, 'worker_node', (text) =>
          query(client, text, [], signal),
        );
        table ??= `${home}WORKER_NODE`;
      }
      records.set(record.id, record);
      return record;
    },

    async raise({ namespace, signal: _, ...higher }) {
      const record = { ...records.get(namespace), ...higher };
      records.set(record.id, record);
      return record;
    },

    async acquire({ namespace, owner, datacenterId, workerIds, holder, signal }) {
      if (datacenterId !== 0) {
        throw configError(
          'workerNode() numbers the workers of all datacenters together: use a layout without datacenterBits, such as { ...layouts.uid, epoch }',
        );
      }
      const values = [
        (host ?? holder.host).slice(0, MAX_NAME),
        // Without a port, UidGenerator also writes a value that distinguishes the processes of a host.
        port ?? `${Number(holder.startedAt)}-${holder.pid}`,
        TYPES[type],
      ];
      signal.throwIfAborted();
      let workerId;
      try {
        workerId = await insert(client, table, values, signal);
      } catch (failure) {
        if (!isMissing(failure)) throw failure;
        await query(client, create(table), undefined, signal);
        workerId = await insert(client, table, values, signal);
      }
      // After a crash the server may assign a rolled-back ID again.
      const row = await readRow(workerId, signal);
      if (row?.id !== workerId || row.isUncommitted) throw uncommittedError(name);
      if (workerId >= workerIds) {
        throw new SnowFlakeError(
          'ERR_SNOWFLAKE_NO_SLOT',
          `${name} assigned worker ID ${workerId}, and the layout's worker IDs end at ${workerIds - 1}. Use a layout with more workerBits whose IDs are above all old ones`,
        );
      }
      rows.set(owner, row);
      const { floor } = records.get(namespace);
      return { workerId, floor, expires: null, now: unixNow() };
    },

    async renew(request) {
      if (await isRowLost(request, rows.get(request.owner)))
        return { isHeld: false, lost: 'missing' };
      // No other holder depends on this clock.
      return { isHeld: true, expires: null, now: unixNow() };
    },

    async release({ owner }) {
      rows.delete(owner);
    },
  };
}

module.exports = { workerNode };
