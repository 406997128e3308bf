'use strict';
// Each engine that a lease can come from, held to the contract: a real server for each.

const { after, before, describe, test } = require('node:test');

const { contract } = require('./lease/contract.js');
const { Server, missing } = require('./lease/servers.js');
const { connect } = require('../js/lease/connect.js');
const { memory } = require('../js/lease/memory.js');

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
  });
}

const byUrl = (server, namespace) => connect(new URL(`${server.url}?namespace=${namespace}`));

onServer('postgres', 'postgres', { ttl: 1000 }, byUrl);
onServer('mysql (MariaDB)', 'mysql', { ttl: 1000 }, byUrl);
onServer('redis, by ioredis', 'redis', { ttl: 1000 }, byUrl);
onServer('etcd', 'etcd', { ttl: 2000 }, byUrl);

onServer('redis, by redis', 'redis', { ttl: 1000 }, async (server, namespace) => {
  const { createClient } = require('redis');
  const { redis } = require('../js/lease/redis.js');
  const client = createClient({ url: server.url });
  await client.connect();
  return { ...redis(client, { namespace }), close: () => client.close() };
});

for (const [name, engine, type] of [
  ['typeorm on PostgreSQL', 'postgres', 'postgres'],
  ['typeorm on MariaDB', 'mysql', 'mariadb'],
]) {
  onServer(name, engine, { ttl: 1000 }, async (server, namespace) => {
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
