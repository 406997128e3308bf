'use strict';
// What stores in SQL databases must do besides the contract: refuse clients that do not commit and
// tables of another version, stop when a call was given up, read a clock without summer time, and
// notice tables that were dropped. On real servers.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { after, before, describe, test } = require('node:test');
const { createInterface } = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

const { storm } = require('../support/amount.js');
const {
  SnowFlake,
  countDuplicates,
  entry,
  layouts,
  rejects,
  until,
} = require('../support/support.js');
const { open, take } = require('../support/lease/contract.js');
const { Server, missing } = require('../support/lease/servers.js');

const OPTIONS = { datacenterId: 1, ttl: 1000, maxClockSkew: 500, callTimeout: 60_000 };
/** Of a process that shares no slot with others of its host. */
const ALONE = { ...OPTIONS, scope: 'process' };
/** Of the client mysql2: longer than a busy machine stops a process. */
const CONNECT_TIMEOUT = 60_000;

/** For each engine: its store, and how the tests use a client of their own. */
const DATABASES = {
  postgres: {
    store: (client, options) => require('../../js/stores/postgres.js').postgres(client, options),
    pool: (url) => new (require('pg').Pool)({ connectionString: url }),
    /** One connection, outside a pool. */
    async connection(url) {
      const client = new (require('pg').Client)({ connectionString: url });
      await client.connect();
      return client;
    },
    /** A pool whose connections a hook has put into a transaction. */
    hooked(url) {
      const pool = new (require('pg').Pool)({ connectionString: url, max: 3 });
      pool.on('connect', (client) => client.query('BEGIN'));
      return pool;
    },
    serializable: (url) =>
      new (require('pg').Pool)({
        connectionString: url,
        max: 24,
        options: '-c default_transaction_isolation=serializable',
      }),
    type: 'postgres',
  },
  mysql: {
    store: (client, options) => require('../../js/stores/mysql.js').mysql(client, options),
    pool: (url) =>
      require('mysql2/promise').createPool({ uri: url, connectTimeout: CONNECT_TIMEOUT }),
    connection: (url) =>
      require('mysql2/promise').createConnection({ uri: url, connectTimeout: CONNECT_TIMEOUT }),
    hooked(url) {
      const pool = require('mysql2').createPool({
        ...{ uri: url, connectionLimit: 3 },
        connectTimeout: CONNECT_TIMEOUT,
      });
      pool.on('connection', (connection) => connection.query('SET autocommit = 0'));
      return pool.promise();
    },
    serializable(url) {
      const pool = require('mysql2').createPool({ uri: url, connectionLimit: 24 });
      pool.on('connection', (connection) =>
        connection.query('SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'),
      );
      return pool.promise();
    },
    type: 'mariadb',
  },
};

/** A process that draws an ID each ms, until its parent ends it. */
class Drawer {
  ids = [];
  /** Codes of its warnings. */
  warnings = [];
  state;

  constructor(url) {
    const script = `
      const { SnowFlake } = require(${JSON.stringify(entry)});
      const tell = (what) => console.log(JSON.stringify(what));
      process.on('warning', ({ code }) => tell({ warning: code }));
      SnowFlake.lease(process.env.URL_OF_STORE, ${JSON.stringify(OPTIONS)}).then((flake) => {
        tell({ state: 'held' });
        let ids = [];
        const draw = () => { try { ids.push(String(flake.nextId())); } catch {} };
        const send = () => { tell({ ids }); ids = []; };
        const timers = [setInterval(draw, 1), setInterval(send, 50)];
        process.stdin.once('data', () => {
          timers.forEach(clearInterval);
          send();
          process.exit();
        });
      }, ({ code, message }) => { tell({ state: code + message }); process.exit(); });`;
    this.#process = spawn(process.execPath, ['-e', script], {
      env: { ...process.env, URL_OF_STORE: url, NODE_NO_WARNINGS: '1' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    createInterface(this.#process.stdout).on('line', (line) => {
      const { ids = [], warning, state } = JSON.parse(line);
      this.ids.push(...ids);
      if (warning) this.warnings.push(warning);
      if (state) this.state = state;
    });
  }

  #process;

  async end() {
    const closed = once(this.#process, 'close');
    this.#process.stdin.write('end');
    await closed;
  }

  kill() {
    this.#process.kill('SIGKILL');
  }
}

for (const [engine, database] of Object.entries(DATABASES)) {
  describe(`on ${engine}`, { skip: missing(engine), concurrency: 1 }, () => {
    let server;
    /** A client of the tests' own. */
    let pool;
    let namespaces = 0;
    const newNamespace = () => `sql-${namespaces++}`;
    before(async () => {
      server = await Server.start(engine);
      pool = database.pool(server.url);
      await open(database.store(pool));
    });
    after(async () => {
      await pool?.end();
      await server?.stop();
    });

    const UNCOMMITTED =
      /does not commit a lease's records: .*Give the store a pool or a connection/;

    /** A client that is closed when the test has ended, and its locks with it. */
    async function client(t, kind) {
      const one = await database[kind](server.url);
      t.after(() => one.end());
      return one;
    }

    async function dropTables() {
      for (const table of ['slots', 'namespaces']) {
        await pool.query(`DROP TABLE snowdrift_${table}`);
      }
    }

    async function refused(one, namespace = newNamespace()) {
      const store = database.store(one, { namespace });
      const { message } = await rejects(SnowFlake.lease(store, OPTIONS), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, UNCOMMITTED);
    }

    test('a connection inside a transaction is refused, and the transaction stays', async (t) => {
      const connection = await client(t, 'connection');
      await connection.query('CREATE TABLE mine (n INT)');
      for (const prepare of [() => open(database.store(pool)), dropTables]) {
        await connection.query('BEGIN');
        await connection.query('INSERT INTO mine VALUES (1)');
        await prepare();
        const store = database.store(connection, { namespace: newNamespace() });
        await SnowFlake.lease(store, OPTIONS).then(
          () => assert.fail('it was not refused'),
          // After a missing table PostgreSQL allows nothing more in the transaction.
          ({ message }) => assert.match(message, /does not commit|transaction is aborted/),
        );
        await connection.query('ROLLBACK');
        const result = await pool.query('SELECT COUNT(*) AS count FROM mine');
        const [{ count }] = result.rows ?? result[0];
        assert.equal(Number(count), 0, 'it was rolled back');
      }
      await open(database.store(pool));
      await connection.query('BEGIN');
      await refused(connection);
      await connection.query('COMMIT');
      const store = database.store(connection, { namespace: newNamespace() });
      (await SnowFlake.lease(store, OPTIONS)).close();
    });

    test('calls add no listener to the connections of a pool', async (t) => {
      const one = await client(t, 'pool');
      const connections = [];
      // The events of pg and of mysql2.
      for (const event of ['connect', 'connection'])
        one.on(event, (each) => connections.push(each));
      const store = database.store(one);
      const countsAfter = async (calls) => {
        for (let n = 0; n < calls; n++) await store.now();
        return connections.map((each) =>
          each.eventNames().map((name) => [name, each.listenerCount(name)]),
        );
      };
      const counts = await countsAfter(1);
      assert.notEqual(counts.length, 0);
      assert.deepEqual(await countsAfter(20), counts);
    });

    test('connections that a hook of the pool has put into a transaction are refused', async (t) => {
      const hooked = await client(t, 'hooked');
      await refused(hooked);
      // A namespace that exists already is only read.
      const namespace = newNamespace();
      await open(database.store(pool, { namespace }));
      await refused(hooked, namespace);
    });

    test('a row of WORKER_NODE that is not committed is no worker ID', async (t) => {
      const { workerNode } = require('../../js/stores/worker-node.js');
      const layout = { ...layouts.uid, epoch: Date.UTC(2026, 5) };
      const options = { layout, callTimeout: 60_000 };
      (await SnowFlake.lease(workerNode(pool), options)).close();
      const connection = await client(t, 'connection');
      await connection.query('BEGIN');
      for (const one of [connection, await client(t, 'hooked')]) {
        const { message } = await rejects(
          SnowFlake.lease(workerNode(one), options),
          'ERR_SNOWFLAKE_CONFIG',
        );
        assert.match(message, UNCOMMITTED);
      }
    });

    test('a renewal or raise inside a transaction is not confirmed', async (t) => {
      const connection = await client(t, 'connection');
      const store = database.store(connection, { namespace: newNamespace() });
      const holder = await take(store, { ceiling: 500 });
      const { namespace, signal } = holder;
      for (const call of [
        () => store.renew({ ...holder, ceiling: 900 }),
        // Nothing to raise: the answer is refused all the same.
        () => store.renew({ ...holder, ceiling: 500 }),
        () => store.raise({ namespace, floor: 900, signal }),
        () => store.acquire({ ...holder, owner: 'f'.repeat(32) }),
      ]) {
        await connection.query('BEGIN');
        const { message } = await rejects(call(), 'ERR_SNOWFLAKE_CONFIG');
        assert.match(message, UNCOMMITTED);
        await connection.query('ROLLBACK');
      }
      assert.equal((await store.renew({ ...holder, ceiling: 600 })).isHeld, true);
      assert.equal((await open(store)).floor, -1);
    });

    test('IDs stop at the ceiling when a connection is put into a transaction later', async (t) => {
      const connection = await client(t, 'connection');
      const store = database.store(connection, { namespace: newNamespace() });
      const flake = await SnowFlake.lease(store, OPTIONS);
      await connection.query('BEGIN');
      const { ceiling } = flake.lease;
      await until(() => flake.lease.state === 'expired' && flake.lease.failure !== undefined);
      assert.match(flake.lease.failure, UNCOMMITTED);
      assert.throws(flake.nextId, { code: 'ERR_SNOWFLAKE_LEASE_EXPIRED' });
      assert.equal(flake.lease.ceiling, ceiling);
      await connection.query('ROLLBACK');
      // On a busy machine it may have expired again when it is seen.
      await until(() => {
        try {
          return flake.nextId();
        } catch ({ code }) {
          assert.equal(code, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
          return false;
        }
      });
      flake.close();
    });

    test('a TypeORM transaction of the same DataSource does not matter', async (t) => {
      const { DataSource } = require('typeorm');
      const { typeorm } = require('../../js/stores/typeorm.js');
      const source = new DataSource({
        type: database.type,
        url: server.url,
        connectTimeout: CONNECT_TIMEOUT,
      });
      await source.initialize();
      t.after(() => source.destroy());
      const store = typeorm(source, { namespace: newNamespace() });
      await source.transaction(async (manager) => {
        await manager.query('SELECT 1');
        const holder = await take(store, { ceiling: 500 });
        assert.equal((await store.renew({ ...holder, ceiling: 900 })).isHeld, true);
      });
    });

    test('a larger ttl in the same namespace is refused', async () => {
      const store = database.store(pool, { namespace: newNamespace() });
      (await SnowFlake.lease(store, OPTIONS)).close();
      const larger = SnowFlake.lease(store, { ...OPTIONS, ttl: 30_000 });
      const { message } = await rejects(larger, 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, /ttl 30000 \(recorded: 1000\).*snowdrift raise URL --ttl 30000$/);
    });

    test('an abandoned call runs no further statement', async () => {
      const namespace = newNamespace();
      let statements = 0;
      const abort = new AbortController();
      const inner = database.store(pool, { namespace });
      await take(inner, { workerIds: 1 });
      const counting = {
        query(...args) {
          // The other processes are always faster.
          if (++statements === 20) abort.abort();
          return pool.query(...args);
        },
      };
      const store = database.store(counting, { namespace });
      const { id } = await open(inner);
      const request = { namespace: id, datacenterId: 1, workerIds: 1, owner: 'f'.repeat(32) };
      const holder = { pid: 1, host: 'here', startedAt: new Date() };
      const calls = Array.from({ length: 12 }, () =>
        store.acquire({ ...request, holder, ceiling: 9, ttl: 1000, signal: abort.signal }),
      );
      const settled = await Promise.allSettled(calls);
      assert.ok(settled.some(({ reason }) => reason?.name === 'AbortError'));
      assert.ok(statements <= 20 + 12, `${statements} statements`);
      const afterwards = statements;
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.equal(statements, afterwards);
    });

    test('a slot that is taken by a call that was given up is released', async () => {
      const namespace = newNamespace();
      const callTimeout = 1000;
      const slow = {
        async query(text, values) {
          const result = await pool.query(text, values);
          if (/SET owner = [?$]/.test(text)) await sleep(callTimeout * 1.5);
          return result;
        },
      };
      const refused = SnowFlake.lease(database.store(slow, { namespace }), {
        ...{ ...ALONE, ttl: 3_600_000, callTimeout },
      });
      await rejects(refused, 'ERR_SNOWFLAKE_STORE');
      const store = database.store(pool, { namespace });
      await until(async () => (await store.slots()).slots.every(({ isHeld }) => !isHeld));
    });

    test('each of many concurrent holders gets a slot under serializable isolation, too', {
      skip: storm,
    }, async (t) => {
      const strict = await client(t, 'serializable');
      const store = database.store(strict, { namespace: newNamespace() });
      const { id: namespace } = await open(store);
      const taken = await Promise.all(
        Array.from({ length: 24 }, () => take(store, { namespace, workerIds: 24 })),
      );
      const ids = taken.map(({ workerId }) => workerId);
      assert.deepEqual(
        ids.sort((a, b) => a - b),
        [...Array(24).keys()],
      );
    });

    test('a search ends, even if others take each free slot first', async () => {
      const namespace = newNamespace();
      const inner = database.store(pool, { namespace });
      const first = await take(inner, { workerIds: 1 });
      await inner.release({ ...first, last: 5 });
      let statements = 0;
      const contended = {
        query: async (text, values) => {
          statements++;
          const result = await pool.query(text, values);
          // The free slot that was seen is another's by the time it is taken.
          if (/ORDER BY ceiling/.test(text)) {
            await pool.query(
              `UPDATE snowdrift_slots SET ceiling = ceiling + 1 WHERE namespace = '${namespace}'`,
            );
          }
          return result;
        },
      };
      const store = database.store(contended, { namespace });
      await assert.rejects(take(store, { workerIds: 1 }), /took each free slot first, \d+ times/);
      assert.ok(statements < 500, `${statements} statements`);
    });

    test('tables that were dropped under living holders: no ID twice', {
      skip: storm,
    }, async () => {
      const url = `${server.url}?namespace=${newNamespace()}`;
      const drawers = [new Drawer(url), new Drawer(url), new Drawer(url)];
      try {
        await until(() => drawers.every(({ ids }) => ids.length > 100));
        await dropTables();
        await until(() => drawers.every(({ warnings }) => warnings.length > 0));
        const drawn = drawers.map(({ ids }) => ids.length);
        drawers.push(new Drawer(url), new Drawer(url));
        await until(() => drawers.slice(3).every(({ ids }) => ids.length > 300));
        await until(() => drawers.every(({ ids }, n) => ids.length > (drawn[n] ?? 0) + 300));
        for (const drawer of drawers) await drawer.end();
        const ids = drawers.flatMap((drawer) => drawer.ids);
        assert.equal(countDuplicates(ids), 0, `of ${ids.length}`);
        for (const { warnings } of drawers.slice(0, 3)) {
          assert.ok(warnings.includes('SNOWFLAKE_NAMESPACE_LOST'), warnings.join());
        }
      } finally {
        for (const drawer of drawers) drawer.kill();
      }
    });

    test('a creation of the tables that ends at any statement is finished by another process', async () => {
      for (let last = 0; last < 6; last++) {
        await dropTables();
        let left = last;
        const ending = {
          query: async (...statement) => {
            if (left-- <= 0) throw new Error('ended');
            return pool.query(...statement);
          },
        };
        await open(database.store(ending)).catch(() => {});
        const flake = await SnowFlake.lease(database.store(pool), { ...ALONE, ttl: 60_000 });
        assert.equal(flake.lease.state, 'held');
        await flake.close();
        assert.equal((await database.store(pool).slots()).namespace.floor, -1, `${last}`);
      }
    });

    test('slots that were dropped are free above all that their holders can have issued', async () => {
      const store = () => database.store(pool, { namespace: 'dropped' });
      const holder = await SnowFlake.lease(store(), { ...ALONE, ttl: 3000 });
      const { ceiling } = holder.lease;
      await pool.query('DROP TABLE snowdrift_slots');
      const next = await SnowFlake.lease(store(), { ...ALONE, ttl: 3000 });
      assert.ok(next.lease.floor >= ceiling, `${next.lease.floor} >= ${ceiling}`);
      await holder.close();
      await next.close();
    });

    test('tables of another version are refused, and stay', async () => {
      await dropTables();
      await pool.query(
        'CREATE TABLE snowdrift_namespaces (namespace VARCHAR(64) PRIMARY KEY, layout VARCHAR(191))',
      );
      await pool.query("INSERT INTO snowdrift_namespaces VALUES ('default', 'old')");
      const store = database.store(pool);
      for (const call of [() => SnowFlake.lease(store, OPTIONS), () => store.slots()]) {
        const { message } = await rejects(call(), 'ERR_SNOWFLAKE_STORE');
        assert.match(message, /has tables of another version of snowdrift.*drop snowdrift_namesp/);
      }
      await pool.query('DROP TABLE snowdrift_namespaces');
    });
  });
}

test('a server that ends connections at any moment does not end the process', {
  skip: missing('postgres') ?? storm,
}, async () => {
  const { connect } = require('../../js/stores/connect.js');
  const pg = require('pg');
  const server = await Server.start('postgres');
  const store = await connect(new URL(server.url));
  const admin = new pg.Client({ connectionString: server.url });
  admin.on('error', () => {});
  try {
    await admin.connect();
    const end = performance.now() + 3000;
    const calls = async () => {
      while (performance.now() < end) await store.now().catch(() => {});
    };
    const terminations = async () => {
      while (performance.now() < end) {
        await admin.query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = current_user',
        );
      }
    };
    await Promise.all([calls(), terminations()]);
  } finally {
    await admin.end();
    await store.close();
    await server.stop();
  }
});

describe('MariaDB in a time zone with summer time', { skip: missing('mysql') }, () => {
  test('the store’s clock is right in the hour that comes twice', async () => {
    // By rule, not by name: not every machine has the names.
    const server = await Server.start('mysql', { env: { TZ: 'CET-1CEST,M3.5.0,M10.5.0/3' } });
    const connection = await DATABASES.mysql.connection(server.url);
    try {
      const store = DATABASES.mysql.store(connection);
      // A wrong zone would be hours.
      assert.ok(Math.abs((await store.now()) - Date.now()) < 600_000);
      const [[{ minutes }]] = await connection.query(
        "SELECT TIMESTAMPDIFF(MINUTE, FROM_UNIXTIME(1782864000), '2026-07-01 00:00:00') AS minutes",
      );
      assert.equal(minutes, -120, 'the zone is in force');
      // 2026-10-25T01:00Z: summer time ends. The hour before and the one after have one local time.
      const end = Date.UTC(2026, 9, 25, 1) / 1000;
      for (const seconds of [end - 3600, end - 1800, end - 1, end, end + 1800, end + 3599]) {
        await connection.query(`SET timestamp = ${seconds}`);
        assert.equal(await store.now(), seconds * 1000, new Date(seconds * 1000).toISOString());
      }
    } finally {
      await connection.end();
      await server.stop();
    }
  });
});

describe('TypeORM on SQLite', () => {
  const { DataSource } = require('typeorm');
  const { typeorm } = require('../../js/stores/typeorm.js');
  const source = new DataSource({ type: 'sqljs' });
  before(() => source.initialize());
  after(() => source.destroy());

  test('a transaction of the only connection is refused', async () => {
    const store = typeorm(source);
    const holder = await take(store, { ceiling: 500 });
    await source.transaction(async () => {
      const { message } = await rejects(
        store.renew({ ...holder, ceiling: 900 }),
        'ERR_SNOWFLAKE_CONFIG',
      );
      assert.match(message, /inside a transaction/);
    });
    assert.equal((await store.renew({ ...holder, ceiling: 600 })).isHeld, true);
  });

  test('tables of another version are refused', async () => {
    await source.query('DROP TABLE snowdrift_namespaces');
    await source.query('CREATE TABLE snowdrift_namespaces (namespace TEXT, layout TEXT)');
    const { message } = await rejects(
      SnowFlake.lease(typeorm(source), OPTIONS),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(message, /has tables of another version of snowdrift/);
  });
});
