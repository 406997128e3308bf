'use strict';
// SnowFlake.ready(): the default instance as the environment says, with a real server.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const { after, before, beforeEach, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { Client } = require('pg');

const { storm } = require('../support/amount.js');
const { until } = require('../support/support.js');
const {
  assertAllDraw,
  closeLater,
  open,
  refuses,
  refusesAll,
  rejects,
} = require('../support/default-copy.js');
const { Server, missing } = require('../support/lease/servers.js');

/** Nothing listens there, nor will: the system gives it to nobody who asks for any port. */
const NO_PORT = 1;

const urlOf = (port) => `postgres://app:geheim@127.0.0.1:${port}/postgres?application_name=geheim`;

let SnowFlake;
let CachedSnowFlake;
let layouts;
beforeEach(() => {
  ({ CachedSnowFlake, SnowFlake, layouts } = require('../..'));
});

describe('SnowFlake.ready() without a server', () => {
  test('it opens the instance that a static call would, once', async () => {
    process.env.datacenterId = '6';
    process.env.workerId = '12';
    const all = await Promise.all([SnowFlake.ready(), SnowFlake.ready()]);
    closeLater(all[0]);
    assert.ok(all.every((flake) => flake === SnowFlake.default));
    assert.equal(all[0].workerId, 12);
    assert.equal(await SnowFlake.ready(), all[0]);
  });

  test('it resolves with the default that was chosen before', async () => {
    const { ready } = SnowFlake;
    const flake = SnowFlake.use(open());
    process.env.SNOWDRIFT_LEASE = 'postgres://127.0.0.1:1/x';
    assert.equal(await ready(), flake);
  });

  test('a missing value rejects, and may be set then', async () => {
    await rejects(SnowFlake.ready(), 'ERR_SNOWFLAKE_CONFIG', /datacenterId is not set/);
    process.env.datacenterId = '6';
    process.env.workerId = '12';
    closeLater(await SnowFlake.ready());
    assertAllDraw(SnowFlake.default);
  });

  test('options are refused, and the error says where they belong', async () => {
    for (const options of [{}, null, 'postgres://db/x', new Proxy({}, {})]) {
      const text = /takes no options.*SnowFlake\.lease\(url, options\)/;
      await rejects(SnowFlake.ready(options), 'ERR_SNOWFLAKE_ARGUMENT', text);
    }
  });

  test('an option that names a server is an error that says what to do', () => {
    const call = () => SnowFlake.configure({ datacenterId: 6, lease: 'redis://db/0' });
    refuses(call, 'ERR_SNOWFLAKE_CONFIG', /SnowFlake\.lease\(url\), and SnowFlake\.use/);
  });

  test('a server beside a directory for the state is refused', async () => {
    Object.assign(process.env, {
      datacenterId: '6',
      SNOWDRIFT_LEASE: 'postgres://127.0.0.1:1/x',
      SNOWDRIFT_STATE: '/var/lib/app/ids',
    });
    await rejects(SnowFlake.ready(), 'ERR_SNOWFLAKE_CONFIG', /SNOWDRIFT_STATE and .* both set/);
  });
});

describe('SnowFlake.ready() while no server is reached', () => {
  beforeEach(() => {
    process.env.datacenterId = '5';
    process.env.SNOWDRIFT_LEASE = urlOf(NO_PORT);
  });

  test('before it, each way to the default instance is an error that says what to await, without the password', () => {
    const text =
      /SNOWDRIFT_LEASE names a server, 'postgres:..\*\*\*@127\.0\.0\.1:\d+'.*await SnowFlake\.ready\(\)/;
    refusesAll('ERR_SNOWFLAKE_CONFIG', text);
    const calls = [
      () => SnowFlake.default,
      () => SnowFlake.configure({ maxWait: 1 }),
      () => new SnowFlake(),
      () => new CachedSnowFlake(),
      () => SnowFlake.nextId(),
      () => new SnowFlake({ workerId: 3 }),
    ];
    for (const call of calls) {
      refuses(call, 'ERR_SNOWFLAKE_CONFIG', text);
      assert.throws(call, (error) => !/geheim/.test(inspect(error)));
    }
    assert.equal(SnowFlake.parse(0n).timestamp, layouts.node.epoch);
  });

  test('after a failure, another instance may become the default', async () => {
    await rejects(SnowFlake.ready(), 'ERR_SNOWFLAKE_STORE', /./);
    assertAllDraw(SnowFlake.use(open({ clock: Date.now })));
  });
});

describe('SnowFlake.ready() with a server', { skip: storm ?? missing('postgres') }, () => {
  let server;
  let client;
  before(async () => {
    server = await Server.start('postgres');
    client = new Client({ connectionString: server.url });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await server.stop();
  });
  beforeEach(() => {
    process.env.datacenterId = '5';
    process.env.SNOWDRIFT_LEASE = urlOf(server.port);
  });

  async function heldSlots() {
    const { rows } = await client.query(
      "SELECT convert_from(text, 'UTF8') AS lines FROM snowdrift_records WHERE name <> 'namespace'",
    );
    return rows.flatMap(({ lines }) => [...lines.matchAll(/^(\d+) held /gm)].map(([, id]) => +id));
  }

  /** Closes an instance, and asserts that its slot is free. After 2 s close() leaves a release to the server. */
  async function closeReleasing(flake) {
    const start = performance.now();
    await flake.close();
    if (performance.now() - start > 1900) await until(async () => (await heldSlots()).length === 0);
    assert.deepEqual(await heldSlots(), []);
  }

  test('calls at one time take one lease, which static calls draw from', async () => {
    const { nextIdString } = SnowFlake;
    const all = await Promise.all(Array.from({ length: 8 }, () => SnowFlake.ready()));
    const [flake] = all;
    assert.ok(all.every((one) => one === flake && one === SnowFlake.default));
    assert.deepEqual(await heldSlots(), [flake.workerId]);
    assert.equal(flake.lease.state, 'held');
    assertAllDraw(flake);
    assert.equal(flake.parse(nextIdString()).workerId, flake.workerId);
    await closeReleasing(flake);
    refusesAll('ERR_SNOWFLAKE_CLOSED', /default instance is closed/);

    const next = await SnowFlake.ready();
    assert.notEqual(next, flake);
    assertAllDraw(next);
    await closeReleasing(next);
  });

  test('after a failure it may be called again', async () => {
    process.env.SNOWDRIFT_LEASE = urlOf(NO_PORT);
    const failing = [SnowFlake.ready(), SnowFlake.ready()];
    for (const promise of failing) {
      const error = await rejects(promise, 'ERR_SNOWFLAKE_STORE', /Cannot reach|ECONNREFUSED/i);
      assert.doesNotMatch(inspect(error), /geheim/);
    }
    refusesAll('ERR_SNOWFLAKE_CONFIG', /await SnowFlake\.ready\(\)/);
    process.env.SNOWDRIFT_LEASE = urlOf(server.port);
    closeLater(await SnowFlake.ready());
    assertAllDraw(SnowFlake.default);
  });

  test('until it settles nothing else becomes the default, also if the environment changes', async () => {
    const sockets = [];
    const silent = net.createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    process.env.SNOWDRIFT_LEASE = urlOf(silent.address().port);
    const pending = SnowFlake.ready();
    pending.catch(() => {});
    await until(() => sockets.length > 0);
    const flake = open({ clock: Date.now });
    const isOpening = /SnowFlake\.ready\(\) is opening the default instance/;
    refuses(() => SnowFlake.use(flake), 'ERR_SNOWFLAKE_CONFLICT', isOpening);
    // It has no lease of a server, and would open.
    delete process.env.SNOWDRIFT_LEASE;
    process.env.workerId = '3';
    refuses(() => SnowFlake.configure({}), 'ERR_SNOWFLAKE_CONFLICT', isOpening);
    refusesAll('ERR_SNOWFLAKE_CONFIG', /await SnowFlake\.ready\(\)/);
    for (const socket of sockets) socket.destroy();
    await rejects(pending, 'ERR_SNOWFLAKE_STORE', /./);
    silent.close();
    assertAllDraw(SnowFlake.use(flake));
  });
});
