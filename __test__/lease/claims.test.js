'use strict';
// Claims: a lease of one worker ID by its number. A second host is refused with the holder. How long it waits, and what
// happens to a holder that is stopped, is tested in virtual time: src/lease/tests/plain.rs.

const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');
const {
  SnowFlake,
  countDuplicates,
  layouts,
  rejects,
  runScript,
  soon,
} = require('../support/support.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { Server, missing } = require('../support/lease/servers.js');
const { memory } = require('../../js/stores/memory.js');
const { workerNode } = require('../../js/stores/worker-node.js');

const TTL = 1000;
const CALL = { callTimeout: 500, ttl: TTL };
const HOSTS = [createDirectory(), createDirectory()];
const open = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((flake) => flake.close()));
});

/** A lease by a process of the first or the second host. */
async function leaseOn(host, store, options) {
  const before = process.env.SNOWDRIFT_SHARED;
  process.env.SNOWDRIFT_SHARED = HOSTS[host];
  // The options are read at once.
  const opening = SnowFlake.lease(store, { datacenterId: 1, ...CALL, ...options });
  if (before === undefined) delete process.env.SNOWDRIFT_SHARED;
  else process.env.SNOWDRIFT_SHARED = before;
  const flake = await opening;
  open.push(flake);
  return flake;
}

test('a claim is that worker ID, for all processes of the host', async () => {
  const stored = new Map();
  const first = await leaseOn(0, memory({ stored }), { workerId: 3 });
  const second = await leaseOn(0, memory({ stored }), { workerId: 3 });
  assert.deepEqual(first.lease.slot, { datacenterId: 1, workerId: 3 });
  assert.equal(second.lease.owner, first.lease.owner);
  const other = await leaseOn(0, memory({ stored }), { workerId: 4 });
  assert.equal(other.workerId, 4);
  const ids = [first, second, other].flatMap((flake) => [...flake.nextIds(2000)]);
  assert.equal(countDuplicates(ids), 0);
});

test('a claim waits for a store that cannot be reached, and not where the login is refused', async (t) => {
  const time = new LeaseTime();
  t.after(() => time.end());
  const failing = (code) => {
    const calls = [];
    const fail = async () => {
      calls.push(code);
      throw Object.assign(new Error('of the client'), { code });
    };
    return { calls, store: { ...memory(), name: 'failing:', read: fail } };
  };
  const refused = failing('28P01');
  const claim = { workerId: 3, waitForSlot: 60_000 };
  const refusal = leaseOn(0, refused.store, claim);
  const { message } = await time.run(rejects(refusal, 'ERR_SNOWFLAKE_STORE'));
  assert.match(message, /^failing \(28P01\): refused the login: check user and password/);
  assert.equal(refused.calls.length, 1);
  const away = failing('ECONNREFUSED');
  const opening = leaseOn(0, away.store, { ...claim, waitForSlot: 300 });
  await time.run(rejects(opening, 'ERR_SNOWFLAKE_STORE'));
  assert.ok(away.calls.length > 1);
});

test('a second host is refused with the first one’s host, process and time', async (t) => {
  const time = new LeaseTime();
  t.after(() => time.end());
  const stored = new Map();
  const first = await time.run(leaseOn(0, memory({ stored }), { workerId: 3 }));
  const refusal = leaseOn(1, memory({ stored }), { workerId: 3 });
  const { message, holders } = await time.run(rejects(refusal, 'ERR_SNOWFLAKE_IN_USE'));
  // By default it waits as long as a dead holder's slot stays held.
  assert.ok(time.passed >= TTL + CALL.callTimeout, `${time.passed} ms`);
  assert.match(message, /^workerId 3 of datacenterId 1 in memory:default is held: process \d+ on/);
  assert.match(message, /use another workerId$/);
  assert.deepEqual(
    holders.map(({ workerId, pid, startedAt }) => [workerId, pid, startedAt instanceof Date]),
    [[3, process.pid, true]],
  );
  assert.equal(typeof holders[0].host, 'string');
  await soon(first.nextId, time.until);
  const opening = leaseOn(1, memory({ stored }), { workerId: 9, waitForSlot: 0 });
  const other = await time.run(opening);
  assert.equal(other.workerId, 9);
});

test('a claim that another namespace has on this host is refused with that', async () => {
  await leaseOn(0, memory({ namespace: 'one' }), { workerId: 3, ttl: 60_000 });
  const refusal = leaseOn(0, memory({ namespace: 'two' }), { workerId: 3, waitForSlot: 0 });
  const { message } = await rejects(refusal, 'ERR_SNOWFLAKE_IN_USE');
  assert.match(
    message,
    /^workerId 3 of .*memory:two is used by another lease or state of this host, now or until less than its ttl ago: snowdrift slots /,
  );
});

test('wrong claims are refused at once', async () => {
  const store = memory();
  for (const workerId of [32, -1, 1.5, '3', null, 3n]) {
    const { message } = await rejects(leaseOn(0, store, { workerId }), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /^workerId must be /);
  }
  const ofDirectory = SnowFlake.lease('file:///var/lib/app/ids', { datacenterId: 1, workerId: 3 });
  await rejects(ofDirectory, 'ERR_SNOWFLAKE_CONFIG');
  const pool = { query: async () => [[]], getConnection: async () => ({}) };
  const options = { layout: { ...layouts.uid, epoch: Date.UTC(2026, 0) }, workerId: 3, ttl: TTL };
  const numbered = SnowFlake.lease(workerNode(pool), { ...options, clockBack: 'throw' });
  const { message } = await rejects(numbered, 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /assigns a new workerId at each start: leave out workerId/);
});

test('a claim whose line is damaged is refused with that', async () => {
  const stored = new Map();
  await (await leaseOn(0, memory({ stored }), { workerId: 3 })).close();
  const key = 'default/1/0';
  stored.set(key, stored.get(key).replace(/^3 .*$/m, '3 something else'));
  const refusal = leaseOn(0, memory({ stored }), { workerId: 3, waitForSlot: 0 });
  const { message, holders } = await rejects(refusal, 'ERR_SNOWFLAKE_IN_USE');
  assert.match(message, /cannot be used \(the record of workerId 3 is damaged/);
  assert.deepEqual(holders, []);
});

test('a floor of the namespace that no holder can have is refused', async () => {
  const stored = new Map();
  await (await leaseOn(0, memory({ stored }))).close();
  const record = stored.get('default/namespace');
  stored.set('default/namespace', record.replace(/^floor .*$/m, 'floor 1099511627775'));
  const { message } = await rejects(leaseOn(0, memory({ stored })), 'ERR_SNOWFLAKE_STORE');
  assert.match(
    message,
    /namespace of memory:default starts after 2054-.*set the clock of the store right/,
  );
});

test('SNOWDRIFT_LEASE names a store, and workerId beside it is a claim', {
  skip: missing('etcd'),
}, async (t) => {
  const server = await Server.start('etcd');
  t.after(() => server.stop());
  const run = async (env, expression = 'SnowFlake.ready()') => {
    const script = `
      const { SnowFlake } = require('../..');
      (async () => ${expression})().then(
        (flake) => (console.log(flake.workerId, flake.lease.store, flake.datacenterId), flake.close()),
        ({ code, message }) => console.log(code, message),
      );`;
    const own = { SNOWDRIFT_LEASE: `${server.url}?namespace=env`, datacenterId: '5' };
    return (await runScript(script, { env: { ...own, ...env } })).stdout;
  };
  assert.match(await run({ workerId: '5' }), /^5 etcd:.*\/env 5\n$/);
  assert.match(
    await run({ workerId: '32' }),
    /^ERR_SNOWFLAKE_CONFIG the environment variable workerId is '32'/,
  );
  assert.match(
    await run({}, 'SnowFlake.nextId()'),
    /^ERR_SNOWFLAKE_CONFIG .*SNOWDRIFT_LEASE names a server, 'etcd:.*await SnowFlake\.ready\(\)/,
  );
});
