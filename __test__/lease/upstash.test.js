'use strict';
// Leases from Upstash: what upstash() sends and what it takes for a reply, with a client that says what a test wants; and with the
// client itself on a stand-in, the contract and a storm.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { afterEach, after, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { registerContract } = require('../../js/stores/contract.js');
const { redis } = require('../../js/stores/redis.js');
const { upstash } = require('../../js/stores/upstash.js');
const { amount } = require('../support/amount.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { missingPackages, clientsOf, replacePackages } = require('../support/installed.js');
const { Upstash } = require('../support/lease/upstash.js');
const { missing } = require('../support/lease/servers.js');
const { Machine, missing: noMachine } = require('../support/machine.js');
const { createPassword, everythingOf, hides, thrownBy } = require('../support/passwords.js');
const { SnowFlake, layouts, refuses, rejects } = require('../support/support.js');

const { signal } = new AbortController();
const [BEFORE, TOKEN] = ['1234567890123456', '0000000000000001'];
const record = { token: TOKEN, text: ' ' };

/** A client with these replies to scripts, as functions of what is sent. */
const clientOf = (answer) => ({
  sent: [],
  async eval(script, keys, values) {
    this.sent.push({ keys, values });
    return answer(values, script);
  },
  time: async () => [1, 500_000],
  scan: async (cursor) =>
    cursor === '0' ? ['7', ['snowdrift:a:records']] : ['0', ['snowdrift:b:records']],
});
const found = (value) =>
  clientOf(([, number]) => [`=${number}`, 'found', value === undefined ? '' : `=${value}`]);

test('a call names its hash and its key, and each has another number', async () => {
  const client = found(`${BEFORE} x`);
  const store = upstash(client, { namespace: 'orders' });
  assert.deepEqual([store.name, store.mayForget, store.bucketSize], ['upstash:orders', true, 8]);
  assert.deepEqual(await store.read('0/0', { signal }), { record: { token: BEFORE, text: 'x' } });
  const reply = await store.write('0/0', record, TOKEN, { signal });
  assert.deepEqual(reply, { isWritten: false, found: { token: BEFORE, text: 'x' } });
  await store.write('0/0', record, undefined, { signal });
  const [read, write, create] = client.sent;
  assert.deepEqual(read.keys, ['snowdrift:orders:records']);
  const [key, number, ...more] = write.values;
  assert.deepEqual([key, ...more], ['0/0', `${TOKEN}  `, TOKEN]);
  assert.match(number, /^[\da-f]{16}$/);
  assert.equal(create.values.length, 3);
  assert.equal(new Set(client.sent.map(({ values }) => values[1])).size, 3);
  assert.equal(await store.now({ signal }), 1500);
  assert.deepEqual(await store.namespaces({ signal }), ['a', 'b']);
});

test('what is no reply to this call fails it, and no record is taken for a missing one', async () => {
  const old = ['=0123456789abcdef', 'found', ''];
  const replies = [
    ...[null, undefined, '', 'Aborted', 0, 1, true, {}, [], [1, 2, 3], old, '<html>'],
    ...[([, n]) => [`=${n}`], ([, n]) => [`=${n}`, 'found'], ([, n]) => [`=${n}`, 'found', 5]],
    ...[([, n]) => [`=${n}`, 'found', 'x'], ([, n]) => [`=${n}`, 'lost', '']],
    ([, n]) => [`=${n}`, 'found', '=nonsense'],
  ];
  for (const reply of replies) {
    const answer = typeof reply === 'function' ? reply : () => reply;
    const store = upstash(clientOf(answer));
    await assert.rejects(store.read('namespace', { signal }));
    await assert.rejects(store.write('namespace', record, undefined, { signal }));
  }
});

test('an error of a command has no script, and a signal ends a call without an answer', async () => {
  const failing = clientOf(() => {
    throw Object.assign(new Error('ERR no, command was: ["eval","redis.call(..)"]'), {
      name: 'UpstashError',
    });
  });
  await assert.rejects(upstash(failing).read('namespace', { signal }), { message: 'ERR no' });
  const abort = new AbortController();
  const call = upstash(clientOf(() => new Promise(() => {}))).read('namespace', {
    signal: abort.signal,
  });
  abort.abort(new Error('enough'));
  await assert.rejects(call, /enough/);
});

test('clients of other packages are refused, and so is this one by redis()', () => {
  const client = found();
  for (const given of [undefined, 'https://x.upstash.io', {}, { ...client, connect() {} }]) {
    const { message } = refuses(() => upstash(given), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /takes a client of @upstash\/redis/);
  }
  refuses(() => redis(client), 'ERR_SNOWFLAKE_CONFIG');
});

test('a token in the path is refused, and shown nowhere', async () => {
  const leasing = SnowFlake.lease('upstash://db.example/hunter2', { datacenterId: 1 });
  const error = await rejects(leasing, 'ERR_SNOWFLAKE_CONFIG');
  assert.match(error.message, /^the URL of Upstash at db\.example has a path: remove it/);
  assert.ok(!everythingOf(error).includes('hunter2'));
});

const skip = missing('redis') ?? missingPackages(clientsOf('upstash'), '--clients') ?? undefined;

describe('on a stand-in', { skip, concurrency: 1 }, () => {
  let server;
  let silent;
  before(async () => {
    replacePackages(clientsOf('upstash'), ['@upstash/redis']);
    [server, silent] = [await Upstash.start(), await Upstash.start()];
    silent.isSilent = true;
  });
  after(() => Promise.all([server?.stop(), silent?.stop()]));
  afterEach(() => {
    for (const name of ['UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN']) {
      delete process.env[name];
    }
    Object.assign(server, { isSilent: false, instead: undefined });
  });

  /** The store of a client with these options. */
  const open = (namespace, options) => {
    const { Redis } = require('@upstash/redis');
    const own = { url: server.url, token: server.token, enableTelemetry: false };
    return upstash(new Redis({ ...own, ...options }), { namespace });
  };
  const spoil = (namespace, key) =>
    server.client.hset(`snowdrift:${namespace}:records`, key, 'nonsense');

  for (const [name, options] of Object.entries({
    'its defaults': {},
    'texts as they are': { automaticDeserialization: false, responseEncoding: false },
    'one request a call': { enableAutoPipelining: false },
  })) {
    registerContract(`a client with ${name}`, (namespace) => open(namespace, options), {
      limit: 240_000,
      spoil,
      openSilent: () => open('silent', { ...options, retry: false, url: silent.url }),
    });
  }

  test('texts that look like numbers come back as texts', async () => {
    const store = open('numbers');
    let before;
    for (const text of [' ', '1', '\n', '12e3', 'null', '"x"', '{"a":1}']) {
      const token = String(randomBytes(8).readBigUInt64BE() % 10n ** 16n).padStart(16, '0');
      const written = await store.write('0/0', { token, text }, before, { signal });
      assert.equal(written.isWritten, true);
      const { record } = await store.read('0/0', { signal });
      assert.deepEqual(record, { token, text });
      before = token;
    }
  });

  test('a lease by URL, from the environment; and a namespace that redis() sees, too', async () => {
    Object.assign(process.env, server.env);
    const url = 'upstash:///?namespace=both';
    const options = { datacenterId: 1, ttl: 2000, maxClockSkew: 1000, scope: 'process' };
    const flake = await SnowFlake.lease(url, options);
    assert.equal(typeof flake.nextId(), 'bigint');
    const { signal } = new AbortController();
    const other = await redis(server.client, { namespace: 'both' }).read('namespace', { signal });
    assert.match(other.record.text, /^snowdrift2 namespace/);
    await flake.close();
  });

  test('replies that are none, and a wrong token, are named without a secret', async () => {
    const password = createPassword();
    process.env.UPSTASH_REDIS_REST_URL = server.url;
    process.env.UPSTASH_REDIS_REST_TOKEN = password.raw;
    const replies = [
      undefined,
      { status: 200, body: '<html>sign in</html>' },
      { status: 200, body: '{"result":null}' },
      { status: 200, body: '{"result":' },
      { status: 200, body: JSON.stringify({ result: 'x'.repeat(5e6) }) },
      { status: 502, body: 'Bad Gateway' },
      { status: 400, body: JSON.stringify({ error: `no ${password.raw}` }) },
      { status: 429, body: JSON.stringify({ error: 'ERR max requests limit exceeded' }) },
    ];
    for (const instead of replies) {
      server.instead = instead;
      for (const url of ['upstash:///', `upstash://:${password.encoded}@127.0.0.1:1`]) {
        const error = await thrownBy(() =>
          SnowFlake.lease(url, { datacenterId: 1, callTimeout: 60_000 }),
        );
        assert.equal(error?.code, 'ERR_SNOWFLAKE_STORE', String(error));
        assert.match(error.message, /Upstash at /);
        assert.ok(error.message.length < 6000);
        hides(password, everythingOf(error), url);
      }
    }
  });

  test('a silent server is named within callTimeout', async () => {
    Object.assign(process.env, server.env);
    server.isSilent = true;
    const leasing = SnowFlake.lease('upstash:///', { datacenterId: 1, callTimeout: 300 });
    const { message } = await rejects(leasing, 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /^Upstash at UPSTASH_REDIS_REST_URL did not answer within 300 ms/);
  });

  test('without a token or a host, the error says what is missing', async () => {
    for (const [env, text] of [
      [{}, /needs UPSTASH_REDIS_REST_URL/],
      [{ UPSTASH_REDIS_REST_URL: server.url }, /needs UPSTASH_REDIS_REST_TOKEN/],
    ]) {
      Object.assign(process.env, env);
      const leasing = SnowFlake.lease('upstash:///', { datacenterId: 1 });
      assert.match((await rejects(leasing, 'ERR_SNOWFLAKE_CONFIG')).message, text);
    }
  });

  test('three hosts of three processes, which are killed, on a database that is, too: no ID twice', {
    skip: noMachine(),
  }, async (t) => {
    const [ttl, maxClockSkew, maxAhead] = [2000, 1500, 200];
    const own = await Upstash.start();
    const machines = Array.from({ length: 3 }, () => new Machine());
    const options = {
      ...{ engine: 'upstash:///', datacenterId: 1, ttl, maxClockSkew, maxAhead },
      ...{ callTimeout: 500, pause: 20 },
      layout: { ...layouts.node, datacenterBits: 5, workerBits: 2 },
    };
    const paths = { NODE_PATH: `${clientsOf('upstash')}/node_modules` };
    const start = ({ env }) => new Drawer(options, { ...env, ...own.env, ...paths });
    const drawers = machines.flatMap((machine) => [1, 2, 3].map(() => start(machine)));
    const dead = [];
    const took = [];
    const again = () =>
      Promise.all(drawers.map((drawer) => drawer.drawn(drawer.ids().length + 100)));
    try {
      await again();
      for (let round = 0; round < amount(4, 4); round++) {
        for (const n of [round, round + 3]) {
          drawers[n].kill('SIGKILL');
          dead.push(drawers[n]);
          drawers[n] = start(machines[Math.floor(n / 3)]);
        }
        await own.restart();
        const since = performance.now();
        await again();
        took.push(Math.round(performance.now() - since));
        await sleep(ttl);
      }
    } finally {
      for (const drawer of drawers) drawer.kill('SIGKILL');
      await Promise.all(drawers.map(({ ended }) => ended));
      await own.stop();
      for (const machine of machines) machine.remove();
    }
    const drawn = [...drawers, ...dead].map((drawer) => drawer.ids());
    const count = drawn.reduce((sum, { length }) => sum + length, 0);
    t.diagnostic(`${count} IDs, all again ${took.join(', ')} ms after the restart`);
    assert.equal(countDuplicatesOf(drawn), 0);
  });
});
