'use strict';
// An application moves the connection that a lease uses. Where the records are is decided when the lease opens, so nothing
// changes, and nothing is created elsewhere.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { redis } = require('../../js/stores/redis.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { gate } = require('../support/amount.js');
const { CLIENTS } = require('../support/lease/clients.js');
const { createNamespace, slotsOf } = require('../support/lease/namespaces.js');
const { withHosts } = require('../support/lease/on-host.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, layouts, refuses, rejects, until } = require('../support/support.js');

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

/** Until a lease has renewed, or lost its slot. */
async function staysHeld(flake) {
  const { owner, renewals } = flake.lease;
  await until(() => flake.lease.renewals >= renewals + 2 || flake.lease.owner !== owner);
  assert.deepEqual([flake.lease.owner, flake.lease.lost], [owner, undefined]);
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
      test(`${name}: a lease stays where it was opened`, { skip: n > 0 && gate }, async (t) => {
        const client = await connect(server.url);
        t.after(() => end(client));
        const store = storeOf(client, { namespace: newNamespace() });
        await createNamespace(store);
        const options = { ...OPTIONS, scope: 'process' };
        const flake = await SnowFlake.lease(store, options);
        t.after(() => flake.close());
        await move(client);
        await staysHeld(flake);
        const other = await SnowFlake.lease(store, options);
        assert.notEqual(other.workerId, flake.workerId);
        await Promise.all([flake.close(), other.close()]);
        assert.deepEqual(
          (await slotsOf(store)).map(({ isHeld }) => isHeld),
          [false, false],
        );
        assert.deepEqual(await created(operator), []);
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
        await staysHeld(flake);
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
        await createNamespace(store);
        const flake = await SnowFlake.lease(store, { ...OPTIONS, scope: 'process' });
        t.after(() => flake.close());
        await client.select(1);
        await staysHeld(flake);
        assert.deepEqual(await created(operator), []);
      });

      test('a user without the right for SELECT needs no more rights', {
        skip: gate,
      }, async (t) => {
        await operator.call('ACL', 'SETUSER', 'least', 'on', ...RIGHTS.split(' '));
        const url = server.url.replace('://', '://least:password@');
        const client = await require('redis').createClient({ url }).connect();
        t.after(() => client.close());
        const store = redis(client, { namespace: newNamespace() });
        await createNamespace(store);
        const flake = await SnowFlake.lease(store, { ...OPTIONS, scope: 'process' });
        await staysHeld(flake);
        await flake.close();
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
        await createNamespace(store);
        const flake = await SnowFlake.lease(store, { ...OPTIONS, scope: 'process' });
        await staysHeld(flake);
        await flake.close();
      });

      test('one node of a cluster, and a cluster of another client, are refused with a remedy', {
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
        const said = /is one node of a cluster: pass a client of all its nodes, redis\(new Cluster/;
        assert.equal(refusals.filter((message) => said.test(message)).length, 1, String(refusals));
        const other = require('redis').createCluster({
          rootNodes: nodes.map(({ url }) => ({ url })),
        });
        const { message } = refuses(() => redis(other), 'ERR_SNOWFLAKE_CONFIG');
        assert.match(message, /a Cluster of ioredis; this is a cluster of redis/);
      });
    }

    test('of three processes of a host the one that renews moves its connection: all go on', {
      skip:
        process.platform === 'linux'
          ? engine !== 'redis' && gate
          : 'tried on Linux, with its memory file system',
    }, async () => {
      await withHosts(1, async (host) => {
        const namespace = newNamespace();
        await createNamespace(`${server.url}?namespace=${namespace}`);
        const processes = [host.start(), host.start(), host.start()];
        // Others take a slot over that nobody renews for half of it: no busy machine is late for that.
        const options = { ...OPTIONS, ttl: 9000 };
        for (const process of processes) {
          await process.run(leaseByClient, engine, server.url, namespace, options);
        }
        const leases = () => Promise.all(processes.map((process) => process.lease()));
        const [{ owner, renewals, renewer }] = await leases();
        await processes.find(({ pid }) => pid === renewer.pid).run(moveClient);
        let seen;
        await until(async () => {
          seen = await leases();
          return seen.every((lease) => lease.owner !== owner || lease.renewals > renewals);
        });
        assert.deepEqual(
          seen.map((lease) => [lease.owner, lease.lost]),
          seen.map(() => [owner, undefined]),
        );
        for (const process of processes) assert.deepEqual(await process.warnings(), []);
        assert.deepEqual(await created(operator), []);
      });
    });
  });
}

/** In another process: leases by a client of its own. */
async function leaseByClient(scene, engine, url, namespace, options) {
  const { CLIENTS } = scene.require('./lease/clients.js');
  const [client] = Object.values(CLIENTS[engine]);
  const connected = await client.connect(url);
  scene.moveClient = () => client.move(connected);
  scene.flake = await scene.SnowFlake.lease(client.store(connected, { namespace }), options);
}

/** In that process: moves that client. */
async function moveClient(scene) {
  await scene.moveClient();
}
