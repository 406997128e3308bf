'use strict';
// SnowFlake.lease with an engine: what an application sees when slots are taken, renewed, lost, and
// when the engine fails. The engine is in memory, with faults put between.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { afterEach, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const {
  SnowFlake,
  countDuplicates,
  layouts,
  refuses,
  rejects,
  runScript,
  until,
} = require('./support.js');
const { faulty } = require('./lease/faulty.js');
const { missing: noMachine, underSteppedClock } = require('./machine.js');
const { memory } = require('../js/lease/memory.js');

const TTL = 1000;
const open = [];

afterEach(() => {
  for (const flake of open.splice(0)) flake.close();
});

async function leased(store, options) {
  const flake = await SnowFlake.lease(store, { datacenterId: 1, ttl: TTL, ...options });
  open.push(flake);
  return flake;
}

test('each lease is a slot of its own, until there are none', async () => {
  const store = memory();
  const layout = { ...layouts.node, workerBits: 2 };
  const flakes = [];
  for (let n = 0; n < 4; n++) flakes.push(await leased(store, { layout }));
  const ids = flakes.flatMap((flake) => [...flake.nextIds(1000)]);
  assert.equal(countDuplicates(ids), 0);
  assert.deepEqual(flakes.map(({ workerId }) => workerId).sort(), [0, 1, 2, 3]);
  const { message, holders } = await rejects(leased(store, { layout }), 'ERR_SNOWFLAKE_NO_SLOT');
  assert.match(
    message,
    /all slots of datacenterId 1 in memory: are held: workerId 0: process \d+ on/,
  );
  assert.equal(holders.length, 4);
  setTimeout(() => flakes[2].close(), 200);
  const fifth = await leased(store, { layout, waitForSlot: 5000 });
  assert.equal(fifth.workerId, flakes[2].workerId);
});

test('an etcd that is not there is named, and why', async () => {
  const { etcd } = require('../js/lease/etcd.js');
  const { message } = await rejects(leased(etcd('http://127.0.0.1:59999')), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /etcd:127\.0\.0\.1:59999\/default failed to .*ECONNREFUSED/);
});

test('it is renewed at a third of its ttl, and its ceiling moves', async () => {
  const store = faulty();
  const flake = await leased(store);
  const { ceiling, expires, state, floor, slot, store: name } = flake.lease;
  assert.deepEqual([state, floor, name], ['held', null, 'faulty:']);
  assert.deepEqual(slot, { datacenterId: 1, workerId: 0 });
  assert.ok(Math.abs(ceiling - expires) < 200);
  const start = performance.now();
  await until(() => flake.lease.renewals >= 3);
  const each = (performance.now() - start) / 3;
  assert.ok(each > TTL / 3 - 50 && each < TTL / 3 + 200, `${each} ms`);
  assert.ok(flake.lease.ceiling > ceiling);
});

test('engine away: IDs go on to the ceiling, then stop, and go on by themselves', async () => {
  const store = faulty();
  const flake = await leased(store);
  store.fault = () => {
    throw new Error('connection refused');
  };
  const { ceiling } = flake.lease;
  await until(() => flake.lease.state === 'failing');
  flake.nextId();
  await until(() => Date.now() > ceiling);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(
    message,
    /the lease of workerId 0 from faulty: has run out at 20.*connection refused/,
  );
  assert.equal(flake.lease.state, 'expired');
  await rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.throws(() => flake.nextIds(5), { code: 'ERR_SNOWFLAKE_LEASE_EXPIRED' });
  store.fault = undefined;
  await until(() => flake.lease.state === 'held');
  assert.equal(flake.parse(flake.nextId()).workerId, 0);
});

test('on a machine that was suspended a lease is renewed when an ID is wanted', {
  skip: noMachine(),
}, async () => {
  // The wall clock has moved on, the timers have not.
  const { refused, waited, renewals, soon } = await underSteppedClock(`
    const { memory } = require('snowdrift/lease/memory');
    const options = { datacenterId: 1, ttl: 600_000, maxWait: 5000 };
    const flake = await SnowFlake.lease(memory(), options);
    step(3_600_000);
    const refused = thrown(flake.nextId).code;
    const start = performance.now();
    await flake.nextIdAsync();
    const waited = performance.now() - start;
    step(7_200_000);
    // Without waiting for it: whoever comes next finds it.
    thrown(flake.nextId);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const soon = thrown(flake.nextId)?.code ?? 'an ID';
    return { refused, waited, renewals: flake.lease.renewals, soon };`);
  assert.equal(refused, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.ok(waited < 2000, `${waited} ms`);
  assert.deepEqual([renewals, soon], [2, 'an ID']);
});

test('a call that is not answered is given up in time, and tried again', async () => {
  const store = faulty();
  const flake = await leased(store, { callTimeout: 50 });
  store.fault = (name) => name === 'renew' && new Promise(() => {});
  await until(() => flake.lease.state === 'failing');
  assert.match(
    flake.lease.failure,
    /faulty: failed to renew a slot: Error: no answer within 50 ms/,
  );
  store.fault = undefined;
  await until(() => flake.lease.state === 'held' && flake.lease.failure === undefined);
});

test('a ceiling is not moved before the engine has confirmed it', async () => {
  const store = faulty();
  const flake = await leased(store);
  let confirm;
  store.fault = (name) => name === 'renew' && new Promise((resolve) => (confirm = resolve));
  await until(() => confirm !== undefined);
  const { ceiling } = flake.lease;
  await until(() => Date.now() > ceiling);
  refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  confirm();
  await until(() => flake.lease.ceiling > ceiling);
  flake.nextId();
});

test('a slot that was taken over: another worker ID, one warning, nothing twice', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const flake = await leased(store);
  const ids = [...flake.nextIds(1000)];
  const warned = once(process, 'warning');
  // The engine's time passes; whoever comes now finds the slot expired.
  clock = 5000;
  const mine = store.calls.find(({ name }) => name === 'acquire');
  const thief = await store.acquire({ ...mine, owner: 'thief', workerIds: 1, ttl: 60_000 });
  assert.equal(thief.floor, flake.lease.ceiling - layouts.node.epoch);
  // Leases do not keep a process alive, so something else must.
  await until(() => flake.workerId === 1);
  const [{ code, message }] = await warned;
  assert.equal(code, 'SNOWFLAKE_SLOT_LOST');
  assert.match(message, /workerId 0 was taken over by another process; IDs go on under workerId 1/);
  assert.equal(flake.workerId, 1);
  ids.push(...flake.nextIds(1000));
  assert.equal(flake.parse(ids.at(-1)).workerId, 1);
  assert.deepEqual(flake.lease.slot, { datacenterId: 1, workerId: 1 });
  assert.equal(countDuplicates(ids), 0);
});

test('a slot that was taken over, and no other is free: IDs stop until one is', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const layout = { ...layouts.node, workerBits: 0 };
  const flake = await leased(store, { layout, maxWait: 3000 });
  const id = flake.nextId();
  clock = 5000;
  const mine = store.calls.find(({ name }) => name === 'acquire');
  const thief = { ...mine, owner: 'thief', ttl: 60_000 };
  const { workerId } = await store.acquire(thief);
  await until(() => flake.lease.state === 'lost');
  assert.deepEqual([flake.workerId, flake.lease.slot.workerId], [0, 0]);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, /workerId 0 from faulty: was taken over by another process.*all slots of/);
  await store.release({ ...thief, workerId, last: mine.ceiling });
  await until(() => flake.lease.state === 'held');
  assert.ok(flake.nextId() > id);
});

test('slots whose nodes this process has open otherwise are passed by, and released', async () => {
  const store = faulty();
  const other = new SnowFlake({ datacenterId: 1, workerId: 0 });
  open.push(other);
  assert.equal((await leased(store)).workerId, 1);
  assert.deepEqual(
    store.calls.filter(({ name }) => name === 'release').map(({ workerId }) => workerId),
    [0],
  );
  // Of another namespace, both 0 and 1 are free.
  assert.equal((await leased(memory())).workerId, 2);
  other.close();
  assert.equal((await leased(store)).workerId, 0);
});

test('where there is no slot but of nodes that are open otherwise, that is said', async () => {
  const store = faulty();
  const layout = { ...layouts.node, workerBits: 0 };
  const other = new SnowFlake({ layout, datacenterId: 1 });
  open.push(other);
  await rejects(leased(store, { layout }), 'ERR_SNOWFLAKE_CONFLICT');
  other.close();
  assert.equal((await leased(store, { layout })).workerId, 0);
});

test('the next holder starts above what the last one recorded, close() lowers it', async () => {
  const store = faulty();
  const layout = { ...layouts.node, workerBits: 0 };
  const first = await leased(store, { layout });
  const id = first.nextId();
  await first.close();
  assert.equal(first.lease.state, 'released');
  const release = store.calls.find(({ name }) => name === 'release');
  assert.equal(release.last, first.parse(id).timestamp - layout.epoch);
  const second = await leased(store, { layout, maxWait: 1000 });
  assert.equal(second.lease.floor, first.parse(id).timestamp);
  assert.ok(second.nextId() > id);
});

test('a slot that was acquired too late is released', async () => {
  const store = faulty();
  store.fault = (name) => name === 'acquire' && sleep(150);
  await rejects(leased(store, { callTimeout: 50 }), 'ERR_SNOWFLAKE_STORE');
  store.fault = async (name) => {
    // That this fails, too, is nobody's concern.
    if (name === 'release') throw new Error('away');
  };
  await until(() => store.calls.some(({ name }) => name === 'release'));
  store.fault = undefined;
  await leased(store);
});

test('clocks too far apart are refused, and it is said which way', async () => {
  const ahead = memory({ now: () => Date.now() + 11_000 });
  const { message } = await rejects(leased(ahead), 'ERR_SNOWFLAKE_CLOCK_SKEW');
  assert.match(
    message,
    /clock is 1\d{4} ms behind the clock of memory:; maxClockSkew allows 10000 ms/,
  );
  const behind = memory({ now: () => Date.now() - 11_000 });
  const other = await rejects(leased(behind), 'ERR_SNOWFLAKE_CLOCK_SKEW');
  assert.match(other.message, /ms ahead of the clock/);
  await leased(ahead, { maxClockSkew: 20_000 });
});

test('a store whose answers are none is refused, at first and later', async () => {
  for (const [call, answer] of [
    ['now', Number.NaN],
    ['now', '2026-01-01'],
    ['acquire', undefined],
    ['acquire', null],
    ['acquire', {}],
    ['acquire', { holders: [null] }],
    ['acquire', { workerId: 32, floor: -1, expires: 0 }],
    ['acquire', { workerId: 0, expires: 0 }],
    ['acquire', { workerId: 0, floor: Number.NaN, expires: 0 }],
    ['acquire', { workerId: 0n, floor: -1, expires: 0 }],
  ]) {
    const store = { ...faulty(), [call]: async () => answer };
    const { message } = await rejects(leased(store), 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /^faulty: failed to .*: Error: it answered .*; it must be /);
  }
  for (const answer of [undefined, {}, { isHeld: 1 }]) {
    const store = faulty();
    const flake = await leased(store);
    const { ceiling } = flake.lease;
    store.renew = async () => answer;
    await until(() => flake.lease.state === 'failing');
    assert.match(flake.lease.failure, /failed to renew a slot: Error: it answered/);
    assert.equal(flake.lease.ceiling, ceiling);
    flake.nextId();
    flake.close();
  }
});

test('what is no store, and bad options, are refused', async () => {
  for (const store of [{}, [], () => {}, { acquire() {}, renew() {}, release() {} }]) {
    const { message } = await rejects(leased(store), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /LeaseStore|file: URL/);
  }
  const { message } = await rejects(leased('kafka://a'), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /lease knows URLs of file:, postgres:.*'kafka:\/\/a'/);
  for (const options of [
    { ttl: 999 },
    { callTimeout: 0 },
    { maxClockSkew: -1 },
    { waitForSlot: '5' },
    { workerId: 3 },
    { state: '/tmp' },
    { clock: Date.now },
    { datacenterId: 8 },
  ]) {
    await rejects(leased(memory(), options), 'ERR_SNOWFLAKE_CONFIG');
  }
});

test('a lease does not keep the process alive', async () => {
  const script = `
    const { SnowFlake } = require('..');
    const { memory } = require('../js/lease/memory.js');
    SnowFlake.lease(memory(), { datacenterId: 1 }).then((flake) => console.log(typeof flake.nextId()));`;
  const { stdout, code } = await runScript(script);
  assert.deepEqual([stdout, code], ['bigint\n', 0]);
});
