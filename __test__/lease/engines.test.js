'use strict';
// Each engine that a lease can come from, held to the contract: a real server for each.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { storm } = require('../support/amount.js');
const { contract, open: openNamespace, take } = require('../support/lease/contract.js');
const { Server, missing } = require('../support/lease/servers.js');
const { runScript } = require('../support/support.js');
const { connect } = require('../../js/stores/connect.js');
const { memory } = require('../../js/stores/memory.js');

/** A suite for an engine, whose server runs meanwhile. */
function onServer(name, engine, { skip, ...options }, open) {
  describe(name, { skip: missing(engine) ?? skip, concurrency: 8 }, () => {
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
    test('a lease from its URL does not keep the process alive, and ends with it', {
      skip: storm,
    }, async () => {
      const script = `
        const { SnowFlake } = require('../..');
        SnowFlake.lease(process.env.URL_OF_ENGINE, { datacenterId: 1, scope: 'process', ttl: 30_000, callTimeout: 60_000, layout: { ...require('../..').layouts.node, workerBits: 0 } })
          .then((flake) => console.log(typeof flake.nextId()), ({ message }) => console.log(message));`;
      const env = { URL_OF_ENGINE: `${server.url}?namespace=ends` };
      // Created by an operator, so that its first holder does not wait, whatever the ttl.
      const store = await byUrl(server, 'ends');
      await openNamespace(store, { layout: '41/3/0/2/12@1+1580486400000' });
      await store.close();
      for (let n = 0; n < 2; n++) {
        const { stdout, code } = await runScript(script, { env });
        assert.deepEqual([stdout, code], ['bigint\n', 0]);
      }
    });
  });
}

const byUrl = (server, namespace) => connect(new URL(`${server.url}?namespace=${namespace}`));

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

  onServer('postgres', 'postgres', { ttl: 500 }, byUrl);
  onServer('mysql (MariaDB)', 'mysql', { ttl: 500 }, byUrl);
  onServer('redis, by ioredis', 'redis', { ttl: 500 }, byUrl);
  onServer('etcd', 'etcd', { ttl: 6000 }, byUrl);
  // A session of ZooKeeper ends after 10 s without a word.
  const sessions = { ttl: 5000, die: (store) => store.close(), skip: storm };
  onServer('zookeeper', 'zookeeper', sessions, byUrl);

  onServer('redis, by redis', 'redis', { ttl: 500 }, async (server, namespace) => {
    const { createClient } = require('redis');
    const { redis } = require('../../js/stores/redis.js');
    const client = createClient({ url: server.url, socket: { connectTimeout: 60_000 } });
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
        const options = { datacenterId: 1, ttl: 1000, maxClockSkew: ${maxClockSkew}, callTimeout: 60_000, maxWait: 60_000 };
        require('../..').SnowFlake.lease(process.env.URL_OF_ENGINE, options)
          .then(async (flake) => console.log(flake.lease.store, typeof (await flake.nextIdAsync())), ({ code }) => console.log(code));`;
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

  test('redis that has lost a namespace assigns no slot below what its holders may issue', {
    skip: missing('redis'),
  }, async () => {
    const server = await Server.start('redis');
    const store = await byUrl(server, 'lost');
    const client = new (require('ioredis'))(server.url);
    const first = async (floor) => {
      await openNamespace(store, { floor });
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
    onServer(name, engine, { ttl: 500 }, async (server, namespace) => {
      const { DataSource } = require('typeorm');
      const { typeorm } = require('../../js/stores/typeorm.js');
      const source = new DataSource({ type, url: server.url, connectTimeout: 60_000 });
      await source.initialize();
      return { ...typeorm(source, { namespace }), close: () => source.destroy() };
    });
  }

  describe('typeorm on SQLite', () => {
    const { DataSource } = require('typeorm');
    const { typeorm } = require('../../js/stores/typeorm.js');
    const source = new DataSource({ type: 'sqljs' });
    before(() => source.initialize());
    after(() => source.destroy());
    contract(test, (namespace) => typeorm(source, { namespace }), { ttl: 500 });
  });
});
