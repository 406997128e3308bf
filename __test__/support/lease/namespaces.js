'use strict';
// What operators do to a namespace: create it ahead, look at its slots, and delete it, by the store's own means.

const { loadAddon } = require('../../../js/runtime/addon.js');
const { layouts } = require('../../../js/index.js');
const { connect } = require('../../../js/stores/connect.js');
const { namespaceText, newToken, readText } = require('./records.js');

const { signal } = new AbortController();

const DELETE = {
  async postgres(url) {
    const client = new (require('pg').Client)({ connectionString: url });
    await client.connect();
    const tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'snowdrift%'";
    const names = (await client.query(tables)).rows.map(({ tablename }) => tablename);
    await client.query(`DROP TABLE ${names.join(', ')}`);
    await client.end();
  },

  async mysql(url) {
    const client = await require('mysql2/promise').createConnection(url);
    const [tables] = await client.query("SHOW TABLES LIKE 'snowdrift%'");
    await client.query(`DROP TABLE ${tables.map((row) => Object.values(row)[0]).join(', ')}`);
    await client.end();
  },

  async redis(url, namespace) {
    const client = new (require('ioredis'))(url);
    await client.del(`snowdrift:${namespace}:records`);
    client.disconnect();
  },

  async etcd(url, namespace) {
    const encode = (text) => Buffer.from(text).toString('base64');
    const range = {
      key: encode(`snowdrift/${namespace}/`),
      range_end: encode(`snowdrift/${namespace}0`),
    };
    const answer = await fetch(`${url.replace('etcd:', 'http:')}/v3/kv/deleterange`, {
      method: 'POST',
      body: JSON.stringify(range),
    });
    await answer.json();
  },

  async zookeeper(url, namespace) {
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
    // Holders change it meanwhile.
    for (let tries = 0, isDone = false; !isDone; tries++) {
      if (tries === 50) throw new Error('its nodes keep changing');
      const paths = await below(`/snowdrift/${namespace}`).catch(() => undefined);
      if (paths === undefined) continue;
      ({ isDone } = await session.change(paths.map((path) => ({ kind: 'delete', path }))));
    }
    session.close();
  },
};

/** Deletes a namespace of a `Server`: of a database, all of them, with their tables. */
async function deleteNamespace(server, namespace) {
  await DELETE[server.engine](server.url, namespace);
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
        for (const { kind, ...slot } of readText(found.text).slots) {
          slots.push({ ...slot, datacenterId, isHeld: kind === 'held' && slot.expires > now });
        }
      }
    }
    return slots;
  });
}

/** A store's clock, Unix ms. */
function clockOf(store) {
  return withRegister(store, (register) => register.now({ signal }));
}

module.exports = { clockOf, createNamespace, deleteNamespace, slotsOf };
