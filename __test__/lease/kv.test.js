'use strict';
// What is Redis's, etcd's or ZooKeeper's own: records of the first format, namespaces that change while
// a call reads them, slow links. What is the same for all stores is in lease/contract.js.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { once } = require('node:events');
const http = require('node:http');
const { after, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { loadAddon } = require('../../js/addon.js');
const { connect } = require('../../js/stores/connect.js');
const { storm } = require('../support/amount.js');
const { Link } = require('../support/lease/link.js');
const { deleteNamespace } = require('../support/lease/namespaces.js');
const { inRounds } = require('../support/lease/rounds.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, until } = require('../support/support.js');

const hex = () => randomBytes(16).toString('hex');
const newRecord = () => ({
  id: hex(),
  layout: '41/3/5/2/12@1+1580486400000',
  ttl: 60_000,
  maxClockSkew: 10_000,
  maxAhead: 0,
  floor: -1,
});
const newRequest = ({ id }) => ({
  namespace: id,
  datacenterId: 1,
  workerIds: 1,
  owner: hex(),
  holder: { pid: process.pid, host: 'here', startedAt: new Date() },
  ceiling: 100,
  ttl: 60_000,
});

/** Writes what the first format had of a namespace. */
const WRITE_OLD = {
  async redis(url, namespace) {
    const client = new (require('ioredis'))(url);
    await client.hset(`snowdrift:${namespace}`, { layout: '41/3 bits', unused: 7 });
    client.disconnect();
  },

  async etcd(url, namespace) {
    const encode = (text) => Buffer.from(text).toString('base64');
    const pair = { key: encode(`snowdrift/${namespace}/layout`), value: encode('41/3 bits') };
    const to = `${url.replace('etcd:', 'http:')}/v3/kv/put`;
    await (await fetch(to, { method: 'POST', body: JSON.stringify(pair) })).json();
  },

  async zookeeper(url, namespace) {
    const { directory, load } = require('snowdrift-zookeeper');
    const addon = loadAddon('snowdrift-zookeeper', directory, load);
    const session = await addon.connect(url.slice('zookeeper://'.length), 10_000);
    await session.make(`/snowdrift/${namespace}/layout`);
    session.close();
  },
};

/** Calls `use` with a store on a server of its own. */
async function withStore(engine, use) {
  const server = await Server.start(engine);
  const store = await connect(new URL(server.url));
  try {
    await use(store);
  } finally {
    await store.close?.();
    await server.stop();
  }
}

for (const engine of ['redis', 'etcd', 'zookeeper']) {
  describe(engine, {
    skip: missing(engine) ?? (engine === 'zookeeper' ? storm : undefined),
    concurrency: 1,
  }, () => {
    let server;
    const stores = [];
    const open = async (namespace, port = server.port) => {
      const url = new URL(`${server.url}?namespace=${namespace}`);
      url.port = port;
      const store = await connect(url);
      stores.push(store);
      return store;
    };
    before(async () => {
      server = await Server.start(engine);
    });
    after(async () => {
      await Promise.all(stores.map((store) => store.close?.()));
      await server.stop();
    });

    test('records of the first format are refused', async () => {
      await WRITE_OLD[engine](server.url, 'old');
      const store = await open('old');
      for (const call of [() => store.open(newRecord()), () => store.slots()]) {
        await assert.rejects(call(), ({ code, message }) => {
          assert.equal(code, 'ERR_SNOWFLAKE_STORE');
          assert.match(message, /old has records of another format: .*\. Use another namespace/);
          return true;
        });
      }
      assert.deepEqual(await store.acquire(newRequest({ id: hex() })), { isMissing: true });
    });

    test('a namespace that was deleted and created anew has no slot of the one before', async () => {
      const store = await open('anew');
      const first = await store.open(newRecord());
      const holder = newRequest(first);
      await store.acquire(holder);
      await deleteNamespace(server, 'anew');
      const second = await store.open(newRecord());
      assert.notEqual(second.id, first.id);
      const next = newRequest(second);
      // The same slot, the same version and the same owner: only the ID differs.
      await store.acquire({ ...next, owner: holder.owner });
      const renewal = { ...holder, workerId: 0, ceiling: 900, confirmed: 100 };
      assert.deepEqual(await store.renew(renewal), { isHeld: false, lost: 'missing' });
      await store.release({ ...holder, workerId: 0, last: 50 });
      await assert.rejects(store.raise({ namespace: first.id, floor: 900 }), /no namespace of ID/);
      assert.deepEqual(await store.acquire(holder), { isMissing: true });
      const { namespace, slots } = await store.slots();
      assert.equal(namespace.floor, -1);
      assert.deepEqual(
        slots.map(({ ceiling, isHeld }) => [ceiling, isHeld]),
        [[100, true]],
      );
    });

    test('its clock reading is that of the middle of the call', { skip: storm }, async () => {
      const link = await Link.to(server.port);
      try {
        const store = await open('slow', link.port);
        await store.now();
        link.delay = 700;
        // All over a second, since etcd cuts its time to seconds.
        const lateness = async (n) => {
          await sleep(n * 100);
          const asked = Date.now();
          const time = await store.now();
          const answered = Date.now();
          // If a process was stopped on one of the ways, the middle is that much off.
          const late = Math.max(answered - asked - 2 * link.delay, 0);
          const off = time - (asked + answered) / 2;
          const most = (engine === 'etcd' ? 550 : 100) + late / 2;
          assert.ok(Math.abs(off) < most, `${off} ms in a call of ${answered - asked} ms`);
          return late;
        };
        await inRounds('a call is in time', async () => {
          const late = await Promise.all(Array.from({ length: 10 }, (_, n) => lateness(n)));
          return late.some((ms) => ms < 100);
        });
      } finally {
        link.close();
      }
    });

    test('the time of connecting is not clock skew', async () => {
      const link = await Link.to(server.port);
      const url = new URL(`${server.url}?namespace=far`);
      url.port = link.port;
      link.delay = 250;
      try {
        const flake = await SnowFlake.lease(url.href, {
          datacenterId: 1,
          // On Redis, the first holder waits for it.
          ttl: engine === 'redis' ? 3000 : 60_000,
          maxClockSkew: engine === 'etcd' ? 600 : 100,
          callTimeout: 60_000,
        });
        assert.equal(flake.lease.clockSkew, undefined);
        await flake.close();
      } finally {
        link.close();
      }
    });

    test('an abandoned call starts no further request', {
      skip: engine === 'redis' ? 'each call is one step' : undefined,
    }, async () => {
      const store = await open('abandoned');
      const record = await store.open(newRecord());
      const request = { ...newRequest(record), signal: AbortSignal.abort() };
      await assert.rejects(store.acquire(request), { code: 'ERR_SNOWFLAKE_STORE' });
      assert.deepEqual((await store.slots()).slots, []);
    });
  });
}

describe('etcd', { skip: missing('etcd') }, () => {
  test('the time that comes with a slot is not ahead of its clock', async () => {
    await withStore('etcd', async (store) => {
      const record = await store.open(newRecord());
      const holder = newRequest(record);
      const renewal = { ...holder, workerId: 0, ceiling: 200, confirmed: 100 };
      for (let n = 0; n < 20; n++) {
        const before = Date.now();
        const { now } = n === 0 ? await store.acquire(holder) : await store.renew(renewal);
        assert.ok(now <= Date.now() && now > before - 1500, `${now - before} ms`);
      }
    });
  });

  /**
   * Calls `use` with a server, the URL of a proxy before it, and what asks the server.
   * @param onReply is called with each request and its reply, before the proxy passes that on
   */
  async function throughProxy(use, onReply) {
    const server = await Server.start('etcd');
    const ask = async (path, body) => {
      const to = new URL(path, server.url.replace('etcd:', 'http:'));
      return fetch(to, { method: 'POST', body });
    };
    const proxy = http.createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const reply = await ask(request.url, body);
      const text = await reply.text();
      await onReply({ path: request.url, body, text, ask });
      response.writeHead(reply.status, { Date: reply.headers.get('date') });
      response.end(text);
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    try {
      await use(server, `etcd://127.0.0.1:${proxy.address().port}`);
    } finally {
      proxy.close();
      await server.stop();
    }
  }

  test('a slot that is taken by a call that was given up is released', async () => {
    const callTimeout = 1000;
    const options = { datacenterId: 1, ttl: 3_600_000, scope: 'process', callTimeout };
    let slow = 0;
    await throughProxy(
      async (server, url) => {
        await assert.rejects(SnowFlake.lease(url, options), { code: 'ERR_SNOWFLAKE_STORE' });
        assert.equal(slow, 1);
        const store = await connect(new URL(server.url));
        await until(async () => (await store.slots()).slots.every(({ isHeld }) => !isHeld));
        await store.close();
      },
      async ({ path, body }) => {
        // The change that takes a slot.
        if (path !== '/v3/kv/txn' || JSON.parse(body).compare.length < 3) return;
        slow++;
        await sleep(callTimeout * 1.5);
      },
    );
  });

  test('an etcd lease that expires before its first use is replaced', async () => {
    const grants = [];
    await throughProxy(
      async (_, url) => {
        const store = await connect(new URL(url));
        const record = await store.open(newRecord());
        assert.equal((await store.acquire(newRequest(record))).workerId, 0);
        assert.equal(grants.length, 2);
        await store.close();
      },
      async ({ path, text, ask }) => {
        if (path !== '/v3/lease/grant' || grants.push(JSON.parse(text).ID) !== 1) return;
        await ask('/v3/lease/revoke', JSON.stringify({ ID: grants[0] }));
      },
    );
  });
});

describe('zookeeper', { skip: missing('zookeeper') ?? storm }, () => {
  test('a slot whose record went back is free when its holder acquires anew', async () => {
    await withStore('zookeeper', async (store) => {
      const record = await store.open(newRecord());
      const holder = newRequest(record);
      await store.acquire(holder);
      const renewal = { ...holder, workerId: 0, ceiling: 900, confirmed: 800 };
      assert.deepEqual(await store.renew(renewal), { isHeld: false, lost: 'reverted' });
      await store.raise({ namespace: record.id, floor: 1000 });
      const { workerId, floor } = await store.acquire(newRequest(record));
      assert.deepEqual([workerId, floor], [0, 1000]);
    });
  });

  test('a slot whose namespace got another ID is free when its holder acquires anew', async () => {
    await withStore('zookeeper', async (store) => {
      const record = await store.open(newRecord());
      const holder = newRequest(record);
      await store.acquire(holder);
      const { id } = await store.raise({ namespace: record.id, id: hex(), floor: 1000 });
      const renewal = { ...holder, workerId: 0, ceiling: 900, confirmed: 100 };
      assert.deepEqual(await store.renew(renewal), { isHeld: false, lost: 'missing' });
      const { workerId, floor } = await store.acquire(newRequest({ id }));
      assert.deepEqual([workerId, floor], [0, 1000]);
    });
  });

  test('a slot that was acquired too late is free before the next one, or after a renewal', async () => {
    // Aborts when the last request is on its way.
    const signal = Object.assign(new EventTarget(), { aborted: true, throwIfAborted() {} });
    await withStore('zookeeper', async (store) => {
      const record = await store.open(newRecord());
      await store.acquire({ ...newRequest(record), signal });
      const holder = newRequest(record);
      assert.equal((await store.acquire(holder)).workerId, 0);
      await store.acquire({ ...newRequest(record), workerIds: 2, signal });
      const renewal = { ...holder, workerId: 0, ceiling: 900, confirmed: 100 };
      assert.equal((await store.renew(renewal)).isHeld, true);
      const held = async () => (await store.slots()).slots.filter(({ isHeld }) => isHeld);
      await until(async () => (await held()).length === 1);
    });
  });

  test('a hold expires when the ensemble ends it, which may be before its ttl', async () => {
    await withStore('zookeeper', async (store) => {
      const record = await store.open(newRecord());
      const { now, expires } = await store.acquire({ ...newRequest(record), ttl: 3_600_000 });
      // The most that this server allows. Without maxSessionTimeout it would be 20 ticks.
      assert.equal(expires - now, 20_000);
    });
  });
});
