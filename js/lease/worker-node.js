'use strict';
// `snowdrift/lease/worker-node`: UidGenerator's way to a worker ID. Each start inserts a row into its
// WORKER_NODE table, and the row's auto-increment ID is the worker ID. It is never given out again, so
// there is nothing to renew, to expire or to take over, and no clock to trust. Java and Node
// applications can share one table.
//
// The table is UidGenerator's own and has no room for a namespace's record. So open() and raise() record
// nothing and return what was requested: no holder starts where another one stopped, so nothing depends
// on the limits of others. A table that is emptied or made anew starts from worker ID 1 again: that is
// not noticed. Use it with a later epoch then.

const { configError, SnowFlakeError, shown } = require('../errors.js');
const { choice, propertiesOf } = require('../options.js');
const { checkClient } = require('./adapter.js');
const { DIALECTS, LOCK, queryMysql, queryPostgres, uncommitted } = require('./sql.js');

/** UidGenerator's WorkerNodeType. */
const TYPES = { container: 1, actual: 2 };

/** As long as UidGenerator's columns are. */
const LONGEST_NAME = 64;

const COLUMNS = `HOST_NAME VARCHAR(64) NOT NULL,
  PORT VARCHAR(64) NOT NULL,
  TYPE INT NOT NULL,
  LAUNCH_DATE DATE NOT NULL,
  MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CREATED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP`;
const INSERT =
  'INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES (?, ?, ?, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)';

const DATABASES = {
  postgres: {
    create: `${LOCK};
CREATE TABLE IF NOT EXISTS WORKER_NODE (
  ID BIGSERIAL PRIMARY KEY,
  ${COLUMNS}
)`,
    query: queryPostgres,
    insert: async (client, values) =>
      Number((await queryPostgres(client, `${INSERT} RETURNING ID`, values))[0].id),
  },
  mysql: {
    create: `CREATE TABLE IF NOT EXISTS WORKER_NODE (
  ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  ${COLUMNS}
)`,
    query: queryMysql,
    insert: async (client, values) => {
      const inserted = await queryMysql(client, INSERT, values);
      if (!DIALECTS.mysql.isCommitted(inserted)) throw uncommitted('mysql:WORKER_NODE');
      return Number(inserted.insertId);
    },
  },
};

function workerNode(client, options = {}) {
  checkClient(client, 'query', 'workerNode() takes a pool of mysql2 or pg');
  const {
    type = 'actual',
    host,
    port,
  } = propertiesOf(options, 'options of workerNode()', ['type', 'host', 'port'], configError);
  choice('type', type, Object.keys(TYPES));
  for (const [name, value] of Object.entries({ host, port })) {
    if (value !== undefined && (typeof value !== 'string' || value.length > LONGEST_NAME)) {
      throw configError(`${name} must be a string of up to 64 characters; it is ${shown(value)}`);
    }
  }
  // Clients of mysql2 can prepare a statement by themselves, those of pg cannot.
  const dialect = typeof client.execute === 'function' ? 'mysql' : 'postgres';
  const { create, query, insert } = DATABASES[dialect];
  const { isMissing, isUncommitted, now } = DIALECTS[dialect];
  const name = `${dialect}:WORKER_NODE`;

  let record;

  return {
    name,

    async now() {
      const [{ ms }] = await query(client, `SELECT ${now} AS ms`);
      return Number(ms);
    },

    async open({ id, layout, ttl, maxClockSkew, maxAhead, floor }) {
      record = { id, layout, ttl, maxClockSkew, maxAhead, floor };
      return record;
    },

    async raise({ namespace: _, signal: __, ...higher }) {
      record = { ...record, ...higher };
      return record;
    },

    async acquire({ datacenterId, workerIds, holder, signal }) {
      if (datacenterId !== 0) {
        throw configError(
          'workerNode() numbers workers through all datacenters: use it with a layout without datacenterBits, such as { ...layouts.uid, epoch }',
        );
      }
      const values = [
        (host ?? holder.host).slice(0, LONGEST_NAME),
        // UidGenerator, too, writes what tells the processes of a host apart where there is no port.
        port ?? `${Number(holder.startedAt)}-${holder.pid}`,
        TYPES[type],
      ];
      signal.throwIfAborted();
      let workerId;
      try {
        workerId = await insert(client, values);
      } catch (failure) {
        if (!isMissing(failure)) throw failure;
        await query(client, create);
        workerId = await insert(client, values);
      }
      // An ID that is rolled back may be given out again when the server has crashed.
      const [row] = await query(
        client,
        `SELECT ${isUncommitted} AS uncommitted FROM WORKER_NODE WHERE ID = ?`,
        [workerId],
      );
      if (row === undefined || Number(row.uncommitted) !== 0) throw uncommitted(name);
      if (workerId >= workerIds) {
        throw new SnowFlakeError(
          'ERR_SNOWFLAKE_NO_SLOT',
          `${name} has given out ID ${workerId}, and the layout's worker IDs end at ${workerIds - 1}. Use a layout with more workerBits and a later epoch, and an empty table with it`,
        );
      }
      return { workerId, floor: -1, expires: null, now: Date.now() };
    },

    // Without a query: IDs go on while the database is down. Nobody compares this holder's clock.
    async renew() {
      return { isHeld: true, expires: null, now: Date.now() };
    },

    async release() {},
  };
}

module.exports = { workerNode };
