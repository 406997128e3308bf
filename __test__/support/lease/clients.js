'use strict';
// Clients of an application, each with one connection: how they connect, the store of a lease, and how the application moves
// their connection to another schema, database or number of a database.

const { mysql } = require('../../../js/stores/mysql.js');
const { postgres } = require('../../../js/stores/postgres.js');
const { redis } = require('../../../js/stores/redis.js');
const { typeorm } = require('../../../js/stores/typeorm.js');

/** None: a busy machine may stop a process for minutes. */
const CONNECT_TIMEOUT = 0;

const MOVE = { postgres: 'SET search_path = elsewhere', mysql: 'USE elsewhere' };

function connectTypeorm(type, url) {
  const { DataSource } = require('typeorm');
  const extra = { max: 1, connectionLimit: 1 };
  return new DataSource({ type, url, extra, connectTimeout: CONNECT_TIMEOUT }).initialize();
}

async function holdRunner(source) {
  const runner = source.createQueryRunner();
  await runner.connect();
  return () => runner.release();
}

/** By engine and name. Of pools also: takes the only connection until it is released, and how many wait for it. */
const CLIENTS = {
  postgres: {
    'a Pool of pg': {
      hold: async (pool) => (await pool.connect()).release,
      waiting: (pool) => pool.waitingCount,
      connect: (connectionString) => new (require('pg').Pool)({ connectionString, max: 1 }),
      store: postgres,
      move: (pool) => pool.query(MOVE.postgres),
      end: (pool) => pool.end(),
    },
    'a DataSource on PostgreSQL': {
      hold: holdRunner,
      waiting: ({ driver }) => driver.master.waitingCount,
      connect: (url) => connectTypeorm('postgres', url),
      store: typeorm,
      move: (source) => source.query(MOVE.postgres),
      end: (source) => source.destroy(),
    },
  },
  mysql: {
    'a pool of mysql2': {
      hold: async (pool) => {
        const connection = await pool.getConnection();
        return () => connection.release();
      },
      waiting: ({ pool }) => pool._connectionQueue.length,
      connect: (uri) =>
        require('mysql2/promise').createPool({
          ...{ uri, connectionLimit: 1, connectTimeout: CONNECT_TIMEOUT },
        }),
      store: mysql,
      move: (pool) => pool.query(MOVE.mysql),
      end: (pool) => pool.end(),
    },
    'a DataSource on MariaDB': {
      hold: holdRunner,
      waiting: ({ driver }) => driver.pool._connectionQueue.length,
      connect: (url) => connectTypeorm('mariadb', url),
      store: typeorm,
      move: (source) => source.query(MOVE.mysql),
      end: (source) => source.destroy(),
    },
  },
  redis: {
    'a client of ioredis': {
      connect: async (url) => new (require('ioredis'))(url),
      store: redis,
      move: (client) => client.select(1),
      end: (client) => client.disconnect(),
    },
    'a client of redis': {
      connect: (url) => require('redis').createClient({ url }).connect(),
      store: redis,
      move: (client) => client.sendCommand(['SELECT', '1']),
      end: (client) => client.close(),
    },
  },
};

/** A register of an application's client. As an application does, it ends the client once when no call is under way. */
function ofClient(register, end) {
  const calls = new Set();
  let ended;
  const tracked = ['read', 'write', 'now'].map((name) => [
    name,
    (...values) => {
      const call = register[name](...values);
      calls.add(call);
      return call.finally(() => calls.delete(call));
    },
  ]);
  return {
    ...register,
    ...Object.fromEntries(tracked),
    isOfClient: true,
    close() {
      // A pool also rejects for connections that were lost.
      ended ??= Promise.allSettled(calls)
        .then(end)
        .catch(() => {});
      return ended;
    },
  };
}

module.exports = { CLIENTS, ofClient };
