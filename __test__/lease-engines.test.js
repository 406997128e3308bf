'use strict';
// Each engine that a lease can come from, held to the contract: a real server for each.

const assert = require('node:assert/strict');
const { hostname } = require('node:os');
const { after, before, describe, test } = require('node:test');

const { contract, open, take } = require('./lease/contract.js');
const { Server, missing } = require('./lease/servers.js');
const { SnowFlake, layouts, runScript } = require('./support.js');
const { connect } = require('../js/lease/connect.js');
const { memory } = require('../js/lease/memory.js');

/** A suite for an engine, whose server runs meanwhile. */
function onServer(name, engine, options, open) {
  describe(name, { skip: missing(engine), concurrency: 8 }, () => {
    let server;
    const closing = [];
    before(async () => {
      server = await Server.start(engine);
    });
    after(async () => {
      await Promise.all(closing.map((close) => close()));
      await server?.stop();
    });
    contract(
      test,
      async (namespace) => {
        const store = await open(server, namespace);
        if (store.close) closing.push(() => store.close());
        return store;
      },
      options,
    );
    if (open !== byUrl) return;
    test('a lease from its URL does not keep the process alive, and ends with it', async () => {
      const script = `
        const { SnowFlake } = require('..');
        SnowFlake.lease(process.env.URL_OF_ENGINE, { datacenterId: 1, layout: { ...require('..').layouts.node, workerBits: 0 } })
          .then((flake) => console.log(typeof flake.nextId()), ({ message }) => console.log(message));`;
      const env = { URL_OF_ENGINE: `${server.url}?namespace=ends` };
      for (let n = 0; n < 2; n++) {
        const { stdout, code } = await runScript(script, { env });
        assert.deepEqual([stdout, code], ['bigint\n', 0]);
      }
    });
  });
}

const byUrl = (server, namespace) => connect(new URL(`${server.url}?namespace=${namespace}`));

/** UidGenerator's own DDL for MySQL; the same in PostgreSQL's words. */
const WORKER_NODE = {
  mysql: `CREATE TABLE WORKER_NODE (
    ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL,
    TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL,
    CREATED TIMESTAMP NOT NULL, PRIMARY KEY (ID)) COMMENT = 'DB WorkerID Assigner', ENGINE = INNODB`,
  postgres: `CREATE TABLE WORKER_NODE (
    ID BIGSERIAL NOT NULL, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL,
    TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL,
    CREATED TIMESTAMP NOT NULL, PRIMARY KEY (ID))`,
};

// Side by side: they mostly wait for holds to expire.
describe('leases', { concurrency: 3 }, () => {
  describe('memory', () => {
    const stores = new Map();
    contract(
      test,
      (namespace) => {
        if (!stores.has(namespace)) stores.set(namespace, memory());
        return stores.get(namespace);
      },
      { ttl: 100 },
    );
  });

  for (const engine of ['mysql', 'postgres']) {
    describe(`UidGenerator's WORKER_NODE on ${engine}`, {
      skip: missing(engine),
      concurrency: 1,
    }, () => {
      const { workerNode } = require('../js/lease/worker-node.js');
      // Other IDs in each test: this process remembers what it has issued under a worker ID.
      let epoch = Date.UTC(2026, 0, engine === 'mysql' ? 1 : 2);
      const newLayout = () => ({ ...layouts.uid, epoch: epoch++ });
      let server;
      let pool;
      let query;
      before(async () => {
        server = await Server.start(engine);
        if (engine === 'mysql') {
          pool = require('mysql2/promise').createPool(server.url);
          query = async (text) => (await pool.query(text))[0];
        } else {
          pool = new (require('pg').Pool)({ connectionString: server.url });
          query = async (text) => (await pool.query(text)).rows;
        }
      });
      after(async () => {
        await pool.end();
        await server.stop();
      });

      for (const made of ['that is made at need', 'that UidGenerator made']) {
        test(`each lease is a row of a table ${made}, and its ID the worker ID`, async () => {
          if (made === 'that UidGenerator made') {
            await query('DROP TABLE WORKER_NODE');
            await query(WORKER_NODE[engine]);
          }
          const layout = newLayout();
          const workerIds = [];
          for (let n = 0; n < 3; n++) {
            const flake = await SnowFlake.lease(workerNode(pool, { type: 'container' }), {
              layout,
              callTimeout: 30_000,
            });
            workerIds.push(flake.parse(flake.nextId()).workerId);
            flake.close();
          }
          assert.deepEqual(workerIds, [1, 2, 3], 'never reused');
          const rows = await query('SELECT * FROM WORKER_NODE ORDER BY ID');
          assert.equal(rows.length, 3);
          const [row] = rows.map((one) =>
            Object.fromEntries(
              Object.entries(one).map(([key, value]) => [key.toUpperCase(), value]),
            ),
          );
          assert.deepEqual([row.HOST_NAME, row.TYPE], [hostname().slice(0, 64), 1]);
          assert.match(row.PORT, new RegExp(`^\\d{13}-${process.pid}$`));
          assert.ok(Math.abs(new Date(row.CREATED) - Date.now()) < 86_400_000);
        });
      }

      test('an ID past the layout is an error, not a wrap', async () => {
        const small = { ...newLayout(), workerBits: 2, sequenceBits: 33 };
        const { code, message } = await SnowFlake.lease(workerNode(pool), {
          layout: small,
          callTimeout: 30_000,
        }).then(
          () => assert.fail('it was not refused'),
          (error) => error,
        );
        assert.equal(code, 'ERR_SNOWFLAKE_NO_SLOT');
        assert.match(message, /has given out ID 4, and the layout's worker IDs end at 3/);
      });

      test('a layout with datacenters is refused', async () => {
        await assert.rejects(SnowFlake.lease(workerNode(pool), { datacenterId: 1 }), {
          code: 'ERR_SNOWFLAKE_CONFIG',
        });
      });
    });
  }

  onServer('postgres', 'postgres', { ttl: 2000 }, byUrl);
  onServer('mysql (MariaDB)', 'mysql', { ttl: 2000 }, byUrl);
  onServer('redis, by ioredis', 'redis', { ttl: 2000 }, byUrl);
  onServer('etcd', 'etcd', { ttl: 2000 }, byUrl);
  onServer('zookeeper', 'zookeeper', { ttl: 2000, die: (store) => store.close() }, byUrl);

  onServer('redis, by redis', 'redis', { ttl: 2000 }, async (server, namespace) => {
    const { createClient } = require('redis');
    const { redis } = require('../js/lease/redis.js');
    const client = createClient({ url: server.url });
    await client.connect();
    return { ...redis(client, { namespace }), close: () => client.close() };
  });

  for (const [engine, maxClockSkew] of [
    ['redis', 500],
    ['etcd', 10_000],
  ]) {
    test(`${engine} by TLS`, { skip: missing(engine) }, async () => {
      const server = await Server.start(engine, { tls: true });
      const script = `
        const options = { datacenterId: 1, ttl: 1000, maxClockSkew: ${maxClockSkew} };
        require('..').SnowFlake.lease(process.env.URL_OF_ENGINE, options)
          .then((flake) => console.log(flake.lease.store, typeof flake.nextId()), ({ code }) => console.log(code));`;
      try {
        assert.match(server.url, /^(redis|etcd)s:/);
        const env = { URL_OF_ENGINE: server.url };
        const trusting = await runScript(script, { env: { ...env, ...server.trusting } });
        assert.match(trusting.stdout, /^(redis|etcd):\S*default bigint\n$/);
        const other = await runScript(script, { env });
        assert.equal(other.stdout, 'ERR_SNOWFLAKE_STORE\n');
      } finally {
        await server.stop();
      }
    });
  }

  test('redis that has lost a namespace gives out no slot below what its holders may issue', {
    skip: missing('redis'),
  }, async () => {
    const server = await Server.start('redis');
    const store = await byUrl(server, 'lost');
    const client = new (require('ioredis'))(server.url);
    const first = async (floor) => {
      await open(store, { floor });
      return take(store, { ceiling: 10, workerIds: 2 });
    };
    try {
      assert.deepEqual([(await first(500)).floor, (await first(600)).floor], [500, 500]);
      // In whatever way: it is one key, so it is lost as a whole.
      for (const lose of [
        () => client.flushall(),
        async () => client.del(await client.keys('*')),
      ]) {
        await lose();
        const holder = await first(700);
        assert.deepEqual([holder.workerId, holder.floor], [0, 700]);
      }
      const old = await first(700);
      await client.flushall();
      assert.equal((await store.renew({ ...old, ceiling: 9999 })).isHeld, false);
      await store.release({ ...old, last: 1 });
      assert.equal((await first(800)).floor, 800);
    } finally {
      client.disconnect();
      await store.close();
      await server.stop();
    }
  });

  for (const [name, engine, type] of [
    ['typeorm on PostgreSQL', 'postgres', 'postgres'],
    ['typeorm on MariaDB', 'mysql', 'mariadb'],
  ]) {
    onServer(name, engine, { ttl: 2000 }, async (server, namespace) => {
      const { DataSource } = require('typeorm');
      const { typeorm } = require('../js/lease/typeorm.js');
      const source = new DataSource({ type, url: server.url });
      await source.initialize();
      return { ...typeorm(source, { namespace }), close: () => source.destroy() };
    });
  }

  describe('typeorm on SQLite', () => {
    const { DataSource } = require('typeorm');
    const { typeorm } = require('../js/lease/typeorm.js');
    const source = new DataSource({ type: 'sqljs' });
    before(() => source.initialize());
    after(() => source.destroy());
    contract(test, (namespace) => typeorm(source, { namespace }), { ttl: 500 });
  });
});
