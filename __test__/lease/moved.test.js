'use strict';
// An application moves the connection that a lease uses. Where the records are is decided by the first call, so nothing
// changes, and nothing is created elsewhere.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { after, before, describe, test } = require('node:test');

const { redis } = require('../../js/stores/redis.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { gate } = require('../support/amount.js');
const { CLIENTS } = require('../support/lease/clients.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, layouts, rejects, until } = require('../support/support.js');

/** Short, for renewals. A hold that expires stays its owner's, since nobody else acquires slots. */
const OPTIONS = { datacenterId: 1, ttl: 1000, maxClockSkew: 500, callTimeout: 60_000 };

/** By engine: what an operator makes, to which connections are moved, and lists what leases have created there. */
const ELSEWHERE = {
  postgres: {
    make: (client) => client.query('CREATE SCHEMA elsewhere'),
    strange: ['CREATE SCHEMA "why?"', 'SET search_path = "why?"'],
    none: ['SET search_path = nowhere'],
    created: async (client) =>
      (await client.query("SELECT * FROM pg_tables WHERE schemaname = 'elsewhere'")).rows,
  },
  mysql: {
    make: (client) => client.query('CREATE DATABASE elsewhere'),
    strange: ['CREATE DATABASE `why?`', 'USE `why?`'],
    none: ['CREATE DATABASE gone', 'USE gone', 'DROP DATABASE gone'],
    created: async (client) => (await client.query('SHOW TABLES FROM elsewhere'))[0],
  },
  redis: {
    make: (client) => client.select(1),
    created: (client) => client.keys('*'),
  },
};

let namespaces = 0;
const newNamespace = () => `moved-${namespaces++}`;

const record = (text) => ({ token: randomBytes(8).toString('hex'), text });

/** A store's records are where they were, whatever is done to its connection meanwhile, and nothing is created elsewhere. */
async function staysInPlace(store, move, elsewhere) {
  const { signal } = new AbortController();
  const [first, second] = [record('first'), record('second')];
  assert.ok((await store.write('1/0', first, undefined, { signal })).isWritten);
  await move();
  assert.deepEqual((await store.read('1/0', { signal })).record, first);
  assert.ok((await store.write('1/0', second, first.token, { signal })).isWritten);
  assert.deepEqual((await store.read('1/0', { signal })).record, second);
  assert.deepEqual(await elsewhere(), []);
}

for (const [engine, { make, strange, none, created }] of Object.entries(ELSEWHERE)) {
  describe(`on ${engine}`, { skip: missing(engine) }, () => {
    const clients = Object.entries(CLIENTS[engine]);
    const [[, plain]] = clients;
    let server;
    let operator;
    before(async () => {
      server = await Server.start(engine);
      operator = await plain.connect(server.url);
      await make(operator);
    });
    after(async () => {
      await plain.end(operator);
      await server?.stop();
    });

    for (const [n, [name, { connect, store: storeOf, move, end }]] of clients.entries()) {
      test(`${name}: records stay where the store was first used`, {
        skip: n > 0 && gate,
      }, async (t) => {
        const client = await connect(server.url);
        t.after(() => end(client));
        const store = storeOf(client, { namespace: newNamespace() });
        await staysInPlace(
          store,
          () => move(client),
          () => created(operator),
        );
      });
    }

    if (engine !== 'redis') {
      test('WORKER_NODE stays the table that gave the worker ID', {
        skip: engine === 'mysql' && gate,
      }, async (t) => {
        const client = await plain.connect(server.url);
        t.after(() => plain.end(client));
        const layout = { ...layouts.uid, epoch: Date.UTC(2026, 5) };
        const options = { ...OPTIONS, datacenterId: 0, layout };
        const store = workerNode(client);
        const flake = await SnowFlake.lease(store, options);
        t.after(() => flake.close());
        await plain.move(client);
        const other = await SnowFlake.lease(store, options);
        assert.equal(other.workerId, flake.workerId + 1);
        await other.close();
        assert.deepEqual(await created(operator), []);
      });

      test('a connection without a schema or database, or in one whose name has a ?, is refused', async (t) => {
        for (const [statements, message] of [
          [none, / has no place for its tables: name a database/],
          [strange, / cannot use 'why\?': a schema or database without '\?'/],
        ]) {
          const client = await plain.connect(server.url);
          t.after(() => plain.end(client));
          for (const statement of statements) await client.query(statement);
          const opened = SnowFlake.lease(plain.store(client), OPTIONS);
          assert.match((await rejects(opened, 'ERR_SNOWFLAKE_CONFIG')).message, message);
        }
      });
    }

    if (engine === 'redis') {
      const RIGHTS = '>password resetkeys ~snowdrift:* -@all +eval +time +hget +hset';

      test('a user without the right for CLIENT stays where its client says it is', {
        skip: gate,
      }, async (t) => {
        await operator.call('ACL', 'SETUSER', 'selecting', 'on', ...RIGHTS.split(' '), '+select');
        const Redis = require('ioredis');
        const client = new Redis(server.url, {
          ...{ username: 'selecting', password: 'password' },
          enableReadyCheck: false,
        });
        t.after(() => client.disconnect());
        await client.select(2);
        const store = redis(client, { namespace: newNamespace() });
        await staysInPlace(
          store,
          () => client.select(1),
          () => created(operator),
        );
      });

      test('a user without the right for SELECT needs no more rights', {
        skip: gate,
      }, async (t) => {
        await operator.call('ACL', 'SETUSER', 'least', 'on', ...RIGHTS.split(' '));
        const url = server.url.replace('://', '://least:password@');
        const client = await require('redis').createClient({ url }).connect();
        t.after(() => client.close());
        const store = redis(client, { namespace: newNamespace() });
        await staysInPlace(
          store,
          () => {},
          () => [],
        );
      });

      test('a cluster has one database', { skip: gate }, async (t) => {
        const node = await Server.start('redis', {
          args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
        });
        t.after(() => node.stop());
        const { Cluster, default: Redis } = require('ioredis');
        const setup = new Redis(node.url);
        t.after(() => setup.disconnect());
        await setup.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
        await until(async () => /cluster_state:ok/.test(await setup.cluster('INFO')));
        const client = new Cluster([node.url]);
        t.after(() => client.disconnect());
        const store = redis(client, { namespace: newNamespace() });
        await staysInPlace(
          store,
          () => {},
          () => [],
        );
      });

      test('one node of a cluster is refused with a remedy', {
        skip: gate,
      }, async (t) => {
        const { default: Redis } = require('ioredis');
        const args = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
        const nodes = [
          await Server.start('redis', { args }),
          await Server.start('redis', { args }),
        ];
        t.after(() => Promise.all(nodes.map((node) => node.stop())));
        const setups = nodes.map(({ url }) => new Redis(url));
        t.after(() => setups.map((setup) => setup.disconnect()));
        for (const [n, setup] of setups.entries()) {
          const slots = Array.from({ length: 8192 }, (_, slot) => 2 * slot + n);
          await setup.cluster('ADDSLOTS', ...slots);
        }
        await setups[0].cluster('MEET', '127.0.0.1', new URL(nodes[1].url).port);
        const isOk = async (setup) => /cluster_state:ok/.test(await setup.cluster('INFO'));
        for (const setup of setups) await until(() => isOk(setup));
        const refusals = await Promise.all(
          nodes.map(({ url }) =>
            SnowFlake.lease(url, OPTIONS).then(
              (flake) => flake.close(),
              ({ message }) => message,
            ),
          ),
        );
        const said =
          /is one node of a cluster: add \?cluster=true to its URL, or pass a client of all nodes/;
        assert.equal(refusals.filter((message) => said.test(message)).length, 1, String(refusals));
      });
    }
  });
}
