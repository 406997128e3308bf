'use strict';
// What stores in SQL databases must do besides the contract: refuse connections inside the application's transaction, which
// stays; keep to their table; create it once; and leave nothing behind in the application's pool. On real servers.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { setMaxListeners } = require('node:events');
const { after, before, describe, test } = require('node:test');

const { gate, storm } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, layouts, rejects } = require('../support/support.js');
const { connect: connectUrl } = require('../../js/stores/connect.js');
const { workerNode } = require('../../js/stores/worker-node.js');

const { signal } = new AbortController();
// Many calls at once have it.
setMaxListeners(0, signal);
const SIGNAL = { signal };
const record = (text = 'x') => ({ token: randomBytes(8).toString('hex'), text });
/** Of the client mysql2: none, since a busy machine may stop a process for minutes. */
const CONNECT_TIMEOUT = 0;
const OPTIONS = { datacenterId: 1, ttl: 1000, maxClockSkew: 500, callTimeout: 60_000 };
const UNCOMMITTED = /does not commit a lease's records: .*Give the store a pool of its own/;

/** By engine: the server of all tests that need none of its own. */
const servers = new Map();
function serverOf(engine) {
  if (!servers.has(engine)) servers.set(engine, Server.start(engine));
  return servers.get(engine);
}
after(async () => {
  for (const server of servers.values()) await (await server).stop();
});

const DATABASES = {
  postgres: {
    store: (...values) => require('../../js/stores/postgres.js').postgres(...values),
    pool: (url, options) => new (require('pg').Pool)({ connectionString: url, ...options }),
    single: (url) => new (require('pg').Pool)({ connectionString: url, max: 1 }),
    hooked(url) {
      const pool = new (require('pg').Pool)({ connectionString: url, max: 3 });
      pool.on('connect', (client) => client.query('BEGIN'));
      return pool;
    },
    serializable: (url) =>
      new (require('pg').Pool)({
        connectionString: url,
        options: '-c default_transaction_isolation=serializable',
      }),
    rowsOf: (result) => result.rows,
    place: 'current_schema()',
    elsewhere: ['CREATE SCHEMA elsewhere', 'SET search_path TO elsewhere'],
    quote: (name) => `"${name.replaceAll('"', '""')}"`,
    type: 'postgres',
  },
  mysql: {
    store: (...values) => require('../../js/stores/mysql.js').mysql(...values),
    pool: (url, options) =>
      require('mysql2/promise').createPool({
        ...{ uri: url, connectTimeout: CONNECT_TIMEOUT },
        ...options,
      }),
    single: (url) =>
      require('mysql2/promise').createPool({
        ...{ uri: url, connectionLimit: 1, connectTimeout: CONNECT_TIMEOUT },
      }),
    hooked(url) {
      const options = { uri: url, connectionLimit: 3, connectTimeout: CONNECT_TIMEOUT };
      const pool = require('mysql2').createPool(options);
      pool.on('connection', (connection) => connection.query('SET autocommit = 0'));
      return pool.promise();
    },
    serializable(url) {
      const options = { uri: url, connectionLimit: 10, connectTimeout: CONNECT_TIMEOUT };
      const pool = require('mysql2').createPool(options);
      pool.on('connection', (connection) =>
        connection.query('SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'),
      );
      return pool.promise();
    },
    rowsOf: ([rows]) => rows,
    place: 'DATABASE()',
    elsewhere: ['CREATE DATABASE elsewhere', 'USE elsewhere'],
    quote: (name) => `\`${name.replaceAll('`', '``')}\``,
    type: 'mariadb',
  },
};

for (const [engine, database] of Object.entries(DATABASES)) {
  describe(`on ${engine}`, { skip: missing(engine), concurrency: 1 }, () => {
    const { quote } = database;
    let server;
    /** A client of the tests' own. */
    let pool;
    let namespaces = 0;
    const newNamespace = () => `sql-${namespaces++}`;
    const rowsOf = async (client, text) => database.rowsOf(await client.query(text));
    const countOf = async (client, table) =>
      Number((await rowsOf(client, `SELECT COUNT(*) AS count FROM ${table}`))[0].count);
    const hasTable = async () => {
      const tables = `SELECT table_name AS name FROM information_schema.tables WHERE table_name = 'snowdrift_records' AND table_schema = ${database.place}`;
      return (await rowsOf(pool, tables)).length > 0;
    };
    const dropTable = () => pool.query('DROP TABLE IF EXISTS snowdrift_records');
    before(async () => {
      server = await serverOf(engine);
      pool = database.pool(server.url);
    });
    after(() => pool?.end());

    /** A client that is closed when the test has ended. */
    async function client(t, kind, options) {
      const one = await database[kind](server.url, options);
      t.after(() => one.end());
      return one;
    }

    /** By name: each call of a register, on the key 'a' with this token. */
    const callsOf = (register, token) => ({
      read: () => register.read('a', SIGNAL),
      'write over a record': () => register.write('a', record('uncommitted'), token, SIGNAL),
      'write of a new record': () => register.write('b', record('uncommitted'), undefined, SIGNAL),
    });

    async function refuses(what, call) {
      const { message } = await rejects(call(), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, UNCOMMITTED, what);
    }

    test('a connection inside a transaction is refused, and the transaction stays', async (t) => {
      const connection = await client(t, 'single');
      await connection.query('CREATE TABLE mine (n INT)');
      const namespace = newNamespace();
      const register = database.store(connection, { namespace });
      const other = database.store(pool, { namespace });
      for (const isMissing of [true, false]) {
        let present = record('first');
        if (isMissing) await dropTable();
        else await other.write('a', present, undefined, SIGNAL);
        for (const end of ['ROLLBACK', 'COMMIT']) {
          // Then it knows its table.
          if (end === 'COMMIT') await register.read('a', SIGNAL);
          await connection.query('BEGIN');
          await connection.query('INSERT INTO mine VALUES (1)');
          for (const [what, call] of Object.entries(callsOf(register, present.token))) {
            await refuses(what, call);
          }
          assert.equal(await countOf(connection, 'mine'), 1, 'the transaction is open');
          assert.equal(await countOf(pool, 'mine'), 0, 'and was not committed');
          assert.equal(await hasTable(), !isMissing);
          if (!isMissing) {
            // No lock of it is in the transaction.
            const next = record(end);
            const { isWritten } = await other.write('a', next, present.token, SIGNAL);
            assert.ok(isWritten);
            present = next;
          }
          await connection.query(end);
          assert.equal(await countOf(pool, 'mine'), end === 'COMMIT' ? 1 : 0);
          await connection.query('DELETE FROM mine');
          const { record: found } = await other.read('a', SIGNAL);
          assert.deepEqual(found, isMissing ? undefined : present);
        }
        if (isMissing) continue;
        assert.deepEqual((await register.read('a', SIGNAL)).record, present);
      }
    });

    test('connections that a hook of the pool has put into a transaction are refused', async (t) => {
      const namespace = newNamespace();
      const present = record();
      const other = database.store(pool, { namespace });
      await other.write('a', present, undefined, SIGNAL);
      const register = database.store(await client(t, 'hooked'), { namespace });
      for (const [what, call] of Object.entries(callsOf(register, present.token))) {
        await refuses(what, call);
      }
      const next = record('next');
      assert.ok((await other.write('a', next, present.token, SIGNAL)).isWritten, 'no lock stays');
      assert.deepEqual((await other.read('a', SIGNAL)).record, next);
      assert.equal((await other.read('b', SIGNAL)).record, undefined);
    });

    test('only a record without a predecessor creates the table', async () => {
      await dropTable();
      const register = database.store(pool, { namespace: newNamespace() });
      assert.equal((await register.read('a', SIGNAL)).record, undefined);
      const { isWritten, found } = await register.write('a', record(), record().token, SIGNAL);
      assert.deepEqual([isWritten, found], [false, undefined]);
      assert.equal(await hasTable(), false);
      assert.ok((await register.write('a', record(), undefined, SIGNAL)).isWritten);
      assert.equal(await hasTable(), true);
    });

    test('many that create the table at once all write', async () => {
      for (let round = 0; round < 5; round++) {
        await dropTable();
        const namespace = newNamespace();
        const writes = Array.from({ length: 8 }, (_, n) =>
          database.store(pool, { namespace }).write(`a${n}`, record(), undefined, SIGNAL),
        );
        for (const { isWritten } of await Promise.all(writes)) assert.ok(isWritten);
      }
    });

    test('one of many writers wins in serializable transactions', async (t) => {
      const register = database.store(await client(t, 'serializable'), {
        namespace: newNamespace(),
      });
      let before;
      for (let round = 0; round < 5; round++) {
        const all = await Promise.all(
          Array.from({ length: 10 }, async () => {
            const written = record();
            return { written, ...(await register.write('a', written, before, SIGNAL)) };
          }),
        );
        const winners = all.filter(({ isWritten }) => isWritten);
        assert.equal(winners.length, 1);
        before = winners[0].written.token;
      }
    });

    test('calls add no listener to the connections of a pool', async (t) => {
      const one = await client(t, 'pool');
      const connections = [];
      // The events of pg and of mysql2.
      for (const event of ['connect', 'connection'])
        one.on(event, (each) => connections.push(each));
      const register = database.store(one, { namespace: newNamespace() });
      const countsAfter = async (calls) => {
        for (let n = 0; n < calls; n++) await register.read('a', SIGNAL);
        return connections.map((each) =>
          each.eventNames().map((name) => [name, each.listenerCount(name)]),
        );
      };
      const counts = await countsAfter(1);
      assert.notEqual(counts.length, 0);
      assert.deepEqual(await countsAfter(20), counts);
    });

    test('a TypeORM transaction of the same DataSource does not matter', async (t) => {
      const { DataSource } = require('typeorm');
      const { typeorm } = require('../../js/stores/typeorm.js');
      const source = new DataSource({
        ...{ type: database.type, url: server.url, connectTimeout: CONNECT_TIMEOUT },
      });
      await source.initialize();
      t.after(() => source.destroy());
      const register = typeorm(source, { namespace: newNamespace() });
      await source.transaction(async (manager) => {
        await manager.query('SELECT 1');
        assert.ok((await register.write('a', record(), undefined, SIGNAL)).isWritten);
      });
    });

    test('a lease on a connection inside a transaction is refused, and gets a slot afterwards', async (t) => {
      const connection = await client(t, 'single');
      const store = database.store(connection, { namespace: newNamespace() });
      await connection.query('BEGIN');
      await refuses('a lease', () => SnowFlake.lease(store, OPTIONS));
      await connection.query('COMMIT');
      await (await SnowFlake.lease(store, OPTIONS)).close();
    });

    test('WORKER_NODE is in the schema that the option names', async (t) => {
      const layout = { ...layouts.uid, epoch: Date.UTC(2026, 6) };
      await pool.query('CREATE SCHEMA of_workers');
      const connection = await client(t, 'single');
      const store = workerNode(connection, { schema: 'of_workers' });
      const flake = await SnowFlake.lease(store, { layout, callTimeout: 60_000 });
      t.after(() => flake.close());
      assert.equal(flake.workerId, 1);
      assert.match(flake.lease.store, /^\w+:of_workers\/WORKER_NODE$/);
      assert.equal(await countOf(pool, 'of_workers.WORKER_NODE'), 1);
      for (const schema of ['', 'why?', 7]) {
        await rejects((async () => workerNode(connection, { schema }))(), 'ERR_SNOWFLAKE_CONFIG');
      }
    });

    test('WORKER_NODE is not used inside a transaction, which stays', async (t) => {
      const layout = { ...layouts.uid, epoch: Date.UTC(2026, 5) };
      const lease = (one) => SnowFlake.lease(workerNode(one), { layout, callTimeout: 60_000 });
      const connection = await client(t, 'single');
      const hooked = await client(t, 'hooked');
      await connection.query('CREATE TABLE theirs (n INT)');
      // Creating a table would commit it on MySQL.
      for (const isMissing of [true, false]) {
        if (!isMissing) await (await lease(pool)).close();
        await connection.query('BEGIN');
        await connection.query('INSERT INTO theirs VALUES (1)');
        await refuses('a connection', () => lease(connection));
        await refuses('a pool with a hook', () => lease(hooked));
        await connection.query('ROLLBACK');
        assert.equal(await countOf(pool, 'theirs'), 0, 'it was rolled back');
      }
      assert.equal(await countOf(pool, 'WORKER_NODE'), 1);
    });

    describe('the option schema', () => {
      /** A name that has to be quoted. */
      const SCHEMA = 'Its "own" `place`\'s';
      const quoted = quote(SCHEMA);
      before(() => pool.query(`CREATE SCHEMA ${quoted}`));

      async function typeorm(t, options) {
        const { DataSource } = require('typeorm');
        const source = new DataSource({
          ...{ type: database.type, url: server.url, connectTimeout: CONNECT_TIMEOUT },
        });
        await source.initialize();
        t.after(() => source.destroy());
        return require('../../js/stores/typeorm.js').typeorm(source, options);
      }

      async function byUrl(t, options) {
        const url = new URL(server.url);
        for (const [name, value] of Object.entries(options)) url.searchParams.set(name, value);
        const store = await connectUrl(url);
        t.after(() => store.close());
        return store;
      }

      const OPEN = {
        'a client': (_, options) => database.store(pool, options),
        'a DataSource': typeorm,
        'a URL': byUrl,
      };
      for (const [name, open] of Object.entries(OPEN)) {
        test(`of ${name} names the place of the table`, async (t) => {
          await dropTable();
          await pool.query(`DROP TABLE IF EXISTS ${quoted}.snowdrift_records`);
          const namespace = newNamespace();
          const store = await open(t, { namespace, schema: SCHEMA });
          assert.equal((await store.read('a', SIGNAL)).record, undefined);
          const first = record();
          assert.ok((await store.write('a', first, undefined, SIGNAL)).isWritten);
          assert.deepEqual((await store.read('a', SIGNAL)).record, first);
          assert.equal(await countOf(pool, `${quoted}.snowdrift_records`), 1);
          assert.equal(await hasTable(), false, 'and nothing is where the connection is');
          const other = database.store(pool, { namespace });
          assert.equal((await other.read('a', SIGNAL)).record, undefined);
        });
      }

      test('is part of the name that a lease shows', async (t) => {
        const store = database.store(pool, { namespace: newNamespace(), schema: SCHEMA });
        const flake = await SnowFlake.lease(store, { ...OPTIONS, ttl: 60_000 });
        t.after(() => flake.close());
        assert.ok(flake.lease.store.includes(`:${SCHEMA}/`), flake.lease.store);
      });

      test('that is not in the database is named in the error', async (t) => {
        const url = new URL(server.url);
        url.searchParams.set('schema', 'nowhere');
        const { message } = await rejects(
          SnowFlake.lease(url.href, OPTIONS),
          'ERR_SNOWFLAKE_STORE',
        );
        assert.match(message, /has no such database or schema.*'?"?nowhere/);
        const store = await byUrl(t, { schema: SCHEMA });
        assert.equal((await store.read('none', SIGNAL)).record, undefined);
      });
    });
  });
}

describe('on postgres, with clients and databases of other kinds', {
  skip: missing('postgres'),
}, () => {
  let server;
  before(async () => {
    server = await serverOf('postgres');
  });
  const { single, store: open } = DATABASES.postgres;

  test('a version of pg that does not report the transaction', async (t) => {
    const pool = single(server.url);
    t.after(() => pool.end());
    pool.on('connect', (client) => {
      client.getTransactionStatus = undefined;
    });
    const register = open(pool, { namespace: 'old' });
    const first = record();
    for (let n = 0; n < 2; n++) {
      await pool.query('BEGIN');
      await rejects(register.read('a', SIGNAL), 'ERR_SNOWFLAKE_CONFIG');
      await rejects(register.write('a', first, undefined, SIGNAL), 'ERR_SNOWFLAKE_CONFIG');
      await pool.query('ROLLBACK');
    }
    assert.ok((await register.write('a', first, undefined, SIGNAL)).isWritten);
  });

  test('a database in another encoding', { skip: gate }, async () => {
    const admin = single(server.url);
    await admin.query("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    await admin.end();
    const client = single(server.url.replace(/postgres$/, 'latin'));
    try {
      const register = open(client, { namespace: 'latin' });
      const first = record('\u{1f9ca}\u05d0\0');
      await register.write('a', first, undefined, SIGNAL);
      assert.deepEqual((await register.read('a', SIGNAL)).record, first);
    } finally {
      await client.end();
    }
  });
});

describe('on mysql, with connections of other kinds', { skip: missing('mysql') }, () => {
  let server;
  before(async () => {
    server = await serverOf('mysql');
  });
  const { store: open } = DATABASES.mysql;
  test('another character set and other escapes', async () => {
    const options = { charset: 'latin1', connectionLimit: 1, connectTimeout: CONNECT_TIMEOUT };
    const connection = require('mysql2/promise').createPool({ uri: server.url, ...options });
    try {
      await connection.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'");
      const register = open(connection, { namespace: 'latin' });
      const first = record('\u{1f9ca}\\\'"\u05d0\0');
      assert.ok((await register.write("a'\\", first, undefined, SIGNAL)).isWritten);
      assert.deepEqual((await register.read("a'\\", SIGNAL)).record, first);
    } finally {
      await connection.end();
    }
  });
});

test('a server that ends connections at any moment does not end the process', {
  skip: missing('postgres') ?? storm,
}, async () => {
  const pg = require('pg');
  const server = await Server.start('postgres');
  const store = await connectUrl(new URL(server.url));
  const admin = new pg.Client({ connectionString: server.url });
  admin.on('error', () => {});
  try {
    await admin.connect();
    const end = performance.now() + 3000;
    const calls = async () => {
      while (performance.now() < end) await store.now(SIGNAL).catch(() => {});
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

describe('MariaDB in a time zone with summer time', { skip: missing('mysql') ?? gate }, () => {
  test('the store’s clock is right in the hour that comes twice', async () => {
    // By rule, not by name: not every machine has the names.
    const server = await Server.start('mysql', { env: { TZ: 'CET-1CEST,M3.5.0,M10.5.0/3' } });
    const connection = await DATABASES.mysql.single(server.url);
    try {
      const store = DATABASES.mysql.store(connection);
      // A wrong zone would be hours.
      assert.ok(Math.abs((await store.now(SIGNAL)) - Date.now()) < 600_000);
      const [[{ minutes }]] = await connection.query(
        "SELECT TIMESTAMPDIFF(MINUTE, FROM_UNIXTIME(1782864000), '2026-07-01 00:00:00') AS minutes",
      );
      assert.equal(minutes, -120, 'the zone is in force');
      // 2026-10-25T01:00Z: summer time ends. The hour before and the one after have one local time.
      const end = Date.UTC(2026, 9, 25, 1) / 1000;
      for (const seconds of [end - 3600, end - 1800, end - 1, end, end + 1800, end + 3599]) {
        await connection.query(`SET timestamp = ${seconds}`);
        assert.equal(
          await store.now(SIGNAL),
          seconds * 1000,
          new Date(seconds * 1000).toISOString(),
        );
      }
    } finally {
      await connection.end();
      await server.stop();
    }
  });
});

test('a schema must be a name that no database changes', async () => {
  const { store } = DATABASES.postgres;
  const client = { connect() {}, totalCount: 0 };
  for (const schema of [
    '',
    'a'.repeat(64),
    'ä'.repeat(32),
    'a\0b',
    'a\u001b[31m',
    'why?',
    1,
    null,
    undefined,
  ]) {
    const refused = await rejects(
      (async () => store(client, { schema }))(),
      'ERR_SNOWFLAKE_CONFIG',
    );
    assert.match(refused.message, /^schema (must be a name of 1 to 63 bytes|is )/);
  }
  const longest = 'a'.repeat(63);
  assert.equal(store(client, { schema: longest }).name, `postgres:${longest}/default`);
});

test('a DataSource that is not initialized is refused with a remedy', async () => {
  const { DataSource } = require('typeorm');
  const { typeorm } = require('../../js/stores/typeorm.js');
  for (const type of ['postgres', 'mysql']) {
    const store = typeorm(new DataSource({ type, database: undefined }));
    const { message } = await rejects(SnowFlake.lease(store, OPTIONS), 'ERR_SNOWFLAKE_CONFIG');
    assert.equal(
      message,
      'the DataSource is not initialized: await dataSource.initialize() before the lease',
    );
  }
});

test('a DataSource of a type that no database has is refused', () => {
  const { typeorm } = require('../../js/stores/typeorm.js');
  for (const type of ['oracle', 'sqljs', 'constructor', '__proto__', 'toString', undefined, 7]) {
    assert.throws(() => typeorm({ options: { type }, createQueryRunner() {} }), {
      code: 'ERR_SNOWFLAKE_CONFIG',
      message: /takes a DataSource of type postgres, mysql/,
    });
  }
});

test('a store without schemas refuses one', async () => {
  for (const url of ['redis://127.0.0.1:9?schema=ids', 'etcd://127.0.0.1:9?schema=ids']) {
    const { message } = await rejects(SnowFlake.lease(url, OPTIONS), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /has the option 'schema', which its client does not know/);
  }
});
