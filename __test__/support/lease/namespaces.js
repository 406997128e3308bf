'use strict';
// What operators do to a namespace: create it ahead, look at its slots, and delete it, by the store's own means.

const { loadAddon } = require('../../../js/runtime/addon.js');
const { layouts } = require('../../../js/index.js');
const { connect } = require('../../../js/stores/connect.js');
const { deleteLeases } = require('./kubernetes.js');
const { namespaceText, newToken, readText } = require('./records.js');
const { addressOf } = require('./servers.js');

const { signal } = new AbortController();

/** Runs `use` with a client of PostgreSQL or MariaDB, which it closes then. */
const SQL = {
  async postgres(url, use) {
    const client = new (require('pg').Client)({ connectionString: url });
    await client.connect();
    await use(async (text, values = []) => (await client.query(text, values)).rows);
    await client.end();
  },

  async mysql(url, use) {
    const client = await require('mysql2/promise').createConnection(url);
    await use(async (text, values = []) => (await client.query(text, values))[0]);
    await client.end();
  },
};

/** Runs `use` with the documents of MongoDB, and closes their client then. */
async function withDocuments(url, use) {
  const client = new (require('mongodb').MongoClient)(url);
  await use(client.db().collection('snowdrift_records'));
  await client.close();
}

/** A request to etcd for the keys of a range. */
async function deleteRange(url, key, end) {
  const encode = (text) => Buffer.from(text).toString('base64');
  const range = { key: encode(key), ...(end && { range_end: encode(end) }) };
  const answer = await fetch(`${url.replace('etcd:', 'http:')}/v3/kv/deleterange`, {
    method: 'POST',
    body: JSON.stringify(range),
  });
  await answer.json();
}

/** Deletes nodes of ZooKeeper: those among the paths below a namespace that are wanted. Holders change them meanwhile. */
async function deleteNodes(url, namespace, isWanted) {
  const { directory, load } = require('snowdrift-zookeeper');
  const session = await loadAddon('snowdrift-zookeeper', directory, load).connect(
    url.slice('zookeeper://'.length),
    10_000,
  );
  /** Children first. */
  const below = async (path) => {
    const children = await session.children(path);
    const deeper = await Promise.all(children.map((child) => below(`${path}/${child}`)));
    return [...deeper.flat(), path];
  };
  for (let tries = 0, isDone = false; !isDone; tries++) {
    if (tries === 50) throw new Error('its nodes keep changing');
    const paths = await below(`/snowdrift/${namespace}`).catch(() => undefined);
    if (paths === undefined) continue;
    const nodes = paths.filter(isWanted);
    const isBelow = (path) => nodes.some((node) => path === node || path.startsWith(`${node}/`));
    const wanted = paths.filter(isBelow).map((path) => ({ kind: 'delete', path }));
    if (wanted.length === 0) break;
    // A node that has a new child is an error.
    ({ isDone } = await session.change(wanted).catch(() => ({ isDone: false })));
  }
  session.close();
}

/** Whether a node of ZooKeeper is that of a key, in which it has no slash. */
const isNodeOf = (path, key) => path.endsWith(`/records/${key.replace('/', '-')}`);

/** Deletes items of DynamoDB: those of a namespace whose key is wanted. */
async function deleteItems(url, namespace, isWanted) {
  const { DeleteItemCommand, DynamoDBClient, ScanCommand } = require('@aws-sdk/client-dynamodb');
  const { hostname: region, pathname } = new URL(url);
  const client = new DynamoDBClient({ region, endpoint: addressOf(url).origin });
  const table = { TableName: pathname.slice(1) };
  const { Items } = await client.send(new ScanCommand({ ...table, ConsistentRead: true }));
  for (const { id } of Items) {
    const [of, key] = id.S.split('#');
    if (of !== namespace || !isWanted(key)) continue;
    await client.send(new DeleteItemCommand({ ...table, Key: { id } }));
  }
  client.destroy();
}

/** Deletes objects of S3: those of a namespace whose key is wanted. */
async function deleteObjects(url, namespace, keys) {
  const { pathname } = new URL(url);
  for (const key of keys) {
    const place = new URL(`/ids${pathname}/${namespace}/${key}`, addressOf(url));
    await (await fetch(place, { method: 'DELETE' })).text();
  }
}

/** Deletes objects of Google Cloud Storage: those of a namespace whose key is wanted. */
async function deleteGcs(url, namespace, keys) {
  const prefix = new URL(url).pathname.slice(1);
  for (const key of keys) {
    const name = encodeURIComponent(`${prefix}/${namespace}/${key}`);
    const place = new URL(`/storage/v1/b/ids/o/${name}`, addressOf(url));
    await (await fetch(place, { method: 'DELETE' })).text();
  }
}

const DELETE = {
  postgres: (url) =>
    SQL.postgres(url, async (query) => {
      const tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'snowdrift%'";
      const names = (await query(tables)).map(({ tablename }) => tablename);
      await query(`DROP TABLE ${names.join(', ')}`);
    }),

  mysql: (url) =>
    SQL.mysql(url, async (query) => {
      const tables = await query("SHOW TABLES LIKE 'snowdrift%'");
      await query(`DROP TABLE ${tables.map((row) => Object.values(row)[0]).join(', ')}`);
    }),

  async redis(url, namespace) {
    const client = new (require('ioredis'))(url);
    await client.del(`snowdrift:${namespace}:records`);
    client.disconnect();
  },

  mongodb: (url, namespace) =>
    withDocuments(url, (records) => records.deleteMany({ _id: new RegExp(`^${namespace}:`) })),

  etcd: (url, namespace) => deleteRange(url, `snowdrift/${namespace}/`, `snowdrift/${namespace}0`),
  zookeeper: (url, namespace) => deleteNodes(url, namespace, () => true),
  dynamodb: (url, namespace) => deleteItems(url, namespace, () => true),
  kubernetes: (url, namespace) =>
    deleteLeases(url, (name) => name.startsWith(`snowdrift.${namespace}.`)),
  s3: (url, namespace) => deleteObjects(url, namespace, ['namespace', '1/0']),
  gcs: (url, namespace) => deleteGcs(url, namespace, ['namespace', '1/0']),
};

const DELETE_ONE = {
  postgres: (url, ...record) =>
    SQL.postgres(url, (query) =>
      query('DELETE FROM snowdrift_records WHERE namespace = $1 AND name = $2', record),
    ),

  mysql: (url, ...record) =>
    SQL.mysql(url, (query) =>
      query('DELETE FROM snowdrift_records WHERE namespace = ? AND name = ?', record),
    ),

  async redis(url, namespace, key) {
    const client = new (require('ioredis'))(url);
    await client.hdel(`snowdrift:${namespace}:records`, key);
    client.disconnect();
  },

  mongodb: (url, namespace, key) =>
    withDocuments(url, (records) => records.deleteOne({ _id: `${namespace}:${key}` })),

  etcd: (url, namespace, key) => deleteRange(url, `snowdrift/${namespace}/records/${key}`),
  zookeeper: (url, namespace, key) => deleteNodes(url, namespace, (path) => isNodeOf(path, key)),
  dynamodb: (url, namespace, key) => deleteItems(url, namespace, (one) => one === key),
  kubernetes: (url, namespace, key) =>
    deleteLeases(url, (name) => name === `snowdrift.${namespace}.${key.replace('/', '.')}`),
  s3: (url, namespace, key) => deleteObjects(url, namespace, [key]),
  gcs: (url, namespace, key) => deleteGcs(url, namespace, [key]),
};

for (const by of [DELETE, DELETE_ONE]) by.valkey = by.redis;

/** Deletes a namespace of a `Server`: of a database, all of them, with their tables. */
async function deleteNamespace(server, namespace) {
  await DELETE[server.engine](server.url, namespace);
}

/** Deletes one record of a namespace. */
async function deleteRecord(server, namespace, key) {
  await DELETE_ONE[server.engine](server.url, namespace, key);
}

/** Runs `use` with a register, which it opens by a URL if it is one, and closes then. */
async function withRegister(store, use) {
  if (typeof store !== 'string') return use(store);
  const register = await connect(new URL(store));
  try {
    return await use(register);
  } finally {
    await register.close?.();
  }
}

/**
 * Creates a namespace as `snowdrift recover --new` does, so that its first holder does not wait on Redis, whatever
 * the limits.
 * @param store a register, or a URL
 */
async function createNamespace(store, { layout = layouts.node, ...limits } = {}) {
  const { ttl, maxClockSkew, maxAhead } = {
    ...{ ttl: 60_000, maxClockSkew: 10_000, maxAhead: 0 },
    ...limits,
  };
  const text = namespaceText({ layout, ttl, maxClockSkew, maxAhead, floor: 0 });
  const record = { token: newToken(), text };
  await withRegister(store, (register) =>
    register.write('namespace', record, undefined, { signal }),
  );
}

/** The slots of a store's buckets that were counted: `isHeld` by the store's clock. */
function slotsOf(store) {
  return withRegister(store, async (register) => {
    const read = async (key) => (await register.read(key, { signal })).record;
    const namespace = await read('namespace');
    if (namespace === undefined) return [];
    const { buckets = '', size, layout } = readText(namespace.text);
    const perDatacenter = Math.ceil(2 ** Number(layout.split('.')[2]) / size);
    const now = await register.now({ signal });
    const slots = [];
    for (const range of buckets.split(' ').filter((text) => text !== '')) {
      const [first, last = first] = range.split('-').map(Number);
      for (let number = first; number <= last; number++) {
        const [datacenterId, bucket] = [Math.trunc(number / perDatacenter), number % perDatacenter];
        const found = await read(`${datacenterId}/${bucket}`);
        if (found === undefined) continue;
        for (const { kind, rest, ...slot } of readText(found.text).slots) {
          const [pid, , , host] = rest.split(' ');
          const isHeld = kind === 'held' && slot.expires > now;
          slots.push({ ...slot, pid: Number(pid), host, datacenterId, isHeld });
        }
      }
    }
    return slots;
  });
}

module.exports = { createNamespace, deleteNamespace, deleteRecord, slotsOf };
