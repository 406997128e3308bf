'use strict';
// SnowFlake.lease with an engine: what an application sees when slots are taken, renewed, lost, and
// when the engine fails. The engine is in memory, with faults put between.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { afterEach, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { isStorms, storm } = require('../support/amount.js');
const {
  SnowFlake,
  countDuplicates,
  layouts,
  refuses,
  rejects,
  runScript,
  soon,
  until,
} = require('../support/support.js');
const { record } = require('../support/lease/contract.js');
const { faulty } = require('../support/lease/faulty.js');
const { missing: noMachine, underShiftedClock } = require('../support/machine.js');
const { readReply } = require('../../js/stores/replies.js');
const { memory } = require('../../js/stores/memory.js');

const TTL = 1000;
const { signal } = new AbortController();
const open = [];

afterEach(() => {
  for (const flake of open.splice(0)) flake.close();
});

async function leased(store, options) {
  const flake = await SnowFlake.lease(store, {
    datacenterId: 1,
    ttl: TTL,
    scope: 'process',
    ...options,
  });
  open.push(flake);
  return flake;
}

test('each lease is a slot of its own, until there are none', async () => {
  const store = memory();
  const options = { layout: { ...layouts.node, workerBits: 2 }, ttl: 600_000 };
  const flakes = [];
  for (let n = 0; n < 4; n++) flakes.push(await leased(store, options));
  const ids = flakes.flatMap((flake) => [...flake.nextIds(1000)]);
  assert.equal(countDuplicates(ids), 0);
  assert.deepEqual(flakes.map(({ workerId }) => workerId).sort(), [0, 1, 2, 3]);
  const { message, holders } = await rejects(leased(store, options), 'ERR_SNOWFLAKE_NO_SLOT');
  assert.match(
    message,
    /all slots of datacenterId 1 in memory: are held: workerId 0: process \d+ on/,
  );
  assert.equal(holders.length, 4);
  setTimeout(() => flakes[2].close(), 200);
  const fifth = await leased(store, { ...options, waitForSlot: 60_000 });
  assert.equal(fifth.workerId, flakes[2].workerId);
});

test('an unreachable etcd is named, with the cause', async () => {
  const { etcd } = require('../../js/stores/etcd.js');
  // No client is given this port by the system, as one above 32767 may be.
  const store = etcd('http://127.0.0.1:1');
  const { message } = await rejects(leased(store, { callTimeout: 60_000 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /^Cannot reach etcd:127\.0\.0\.1:1\/default \(ECONNREFUSED\)/);
});

test('a lease is renewed at a third of its ttl, and its ceiling rises', {
  skip: storm,
}, async () => {
  const store = faulty();
  const renewals = [];
  store.fault = (name) => {
    if (name === 'acquire' || name === 'renew') renewals.push(performance.now());
  };
  const before = Date.now();
  const flake = await leased(store);
  const after = Date.now();
  const { ceiling, expires, state, floor, slot, store: name } = flake.lease;
  assert.deepEqual([state, floor, name], ['held', null, 'faulty:']);
  assert.deepEqual(slot, { datacenterId: 1, workerId: 0 });
  for (const end of [ceiling, expires]) {
    assert.ok(end >= before + TTL - 1 && end <= after + TTL + 1, `${end - before} ms`);
  }
  const pauses = () => renewals.slice(1).map((time, n) => time - renewals[n]);
  // A busy machine makes pauses longer, never shorter.
  await until(() => flake.lease.renewals >= 3 && Math.min(...pauses()) < TTL / 3 + 200);
  assert.ok(Math.min(...pauses()) > TTL / 3 - 50, pauses().join());
  assert.ok(flake.lease.ceiling > ceiling);
});

test('where answers lack the store’s time, it is read before each renewal', async () => {
  const store = faulty();
  for (const name of ['acquire', 'renew']) {
    const call = store[name];
    store[name] = async (request) => ({ ...(await call(request)), now: undefined });
  }
  const flake = await leased(store);
  await until(() => flake.lease.renewals >= 2);
  assert.deepEqual(
    store.calls.slice(0, 7).map(({ name }) => name),
    ['now', 'open', 'acquire', 'now', 'renew', 'now', 'renew'],
  );
});

/** Whether an ID was drawn. None may be missing before the ceiling; a machine may be late for that. */
function drawsBelow(ceiling, flake) {
  try {
    flake.nextId();
    return true;
  } catch (error) {
    if (Date.now() <= ceiling) throw error;
    return false;
  }
}

/** A lease whose store has gone away, and that draws on. */
async function failing() {
  for (let rounds = 0; rounds < 20; rounds++) {
    const store = faulty();
    const flake = await leased(store);
    store.fault = () => {
      throw new Error('connection refused');
    };
    const { ceiling } = flake.lease;
    await until(() => flake.lease.failure !== undefined);
    const { state } = flake.lease;
    if (drawsBelow(ceiling, flake)) {
      assert.equal(state, 'failing');
      return { store, flake, ceiling };
    }
    flake.close();
  }
  assert.fail('the machine is always late');
}

test('store away: IDs continue to the ceiling, stop, and continue by themselves', async () => {
  const { store, flake, ceiling } = await failing();
  await until(() => Date.now() > ceiling);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, /the lease of workerId 0 from faulty: expired at 20.*connection refused/);
  assert.match(message, /themselves\. Check the store$/);
  assert.equal(flake.lease.state, 'expired');
  await rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.throws(() => flake.nextIds(5), { code: 'ERR_SNOWFLAKE_LEASE_EXPIRED' });
  store.fault = undefined;
  await until(() => flake.lease.state === 'held');
  assert.equal(flake.parse(await soon(flake.nextId)).workerId, 0);
});

test('a lease that expires while the event loop is busy says so, and continues by itself', async () => {
  const flake = await leased(faulty());
  const { ceiling } = flake.lease;
  while (Date.now() <= ceiling);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(
    message,
    /themselves\. If this process was busy .* longer than ttl, .*thread: true$/,
  );
  await until(() => flake.lease.state === 'held');
  await soon(flake.nextId);
});

test('on a machine that was suspended a lease is renewed when an ID is wanted', {
  skip: noMachine(),
}, async () => {
  // The wall clock has moved on, the timers have not.
  const { code, message, waited, renewals, next } = await underShiftedClock(`
    const { memory } = require('snowdrift/lease/memory');
    const options = { datacenterId: 1, ttl: 600_000, maxWait: 60_000 };
    const flake = await SnowFlake.lease(memory(), options);
    shift(3_600_000);
    const { code, message } = thrown(flake.nextId);
    const start = performance.now();
    await flake.nextIdAsync();
    const waited = performance.now() - start;
    shift(7_200_000);
    // Without waiting for it: whoever comes next finds it.
    thrown(flake.nextId);
    const end = performance.now() + 60_000;
    while (flake.lease.renewals < 4 && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const next = thrown(flake.nextId)?.code ?? 'an ID';
    return { code, message, waited, renewals: flake.lease.renewals, next };`);
  assert.equal(code, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(
    message,
    /If this process was busy or suspended for longer than ttl, .*thread: true$/,
  );
  // By the timers it would be a third of ttl.
  assert.ok(waited < 60_000, `${waited} ms`);
  // Each takes two calls: the first one shows how far the store's clock has gone on.
  assert.deepEqual([renewals, next], [4, 'an ID']);
});

test('a call without a reply is given up in time, and tried again', async () => {
  const store = faulty();
  const flake = await leased(store, { callTimeout: 50 });
  store.fault = (name) => name === 'renew' && new Promise(() => {});
  await until(() => flake.lease.failure !== undefined);
  assert.notEqual(flake.lease.state, 'held');
  assert.match(flake.lease.failure, /faulty: did not answer within 50 ms/);
  store.fault = undefined;
  await until(() => flake.lease.state === 'held' && flake.lease.failure === undefined);
});

test('a ceiling is not raised before the store has confirmed it', async () => {
  const store = faulty();
  const flake = await leased(store, { callTimeout: 60_000 });
  let confirm;
  store.fault = (name) => name === 'renew' && new Promise((resolve) => (confirm = resolve));
  await until(() => confirm !== undefined);
  const { ceiling } = flake.lease;
  await until(() => Date.now() > ceiling);
  refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  store.fault = undefined;
  confirm();
  await until(() => flake.lease.ceiling > ceiling);
  await soon(flake.nextId);
});

test('a slot that was taken over: another worker ID, one warning, no ID twice', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const flake = await leased(store);
  const ids = [...(await soon(() => flake.nextIds(1000)))];
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
  assert.match(
    message,
    /workerId 0 of faulty: was taken over by another process, .*; IDs continue under workerId 1\./,
  );
  assert.equal(flake.workerId, 1);
  ids.push(...(await soon(() => flake.nextIds(1000))));
  assert.equal(flake.parse(ids.at(-1)).workerId, 1);
  assert.deepEqual(flake.lease.slot, { datacenterId: 1, workerId: 1 });
  assert.equal(countDuplicates(ids), 0);
});

test('a slot that was taken over, and no other is free: IDs stop until one is free', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const layout = { ...layouts.node, workerBits: 0 };
  const flake = await leased(store, { layout, maxWait: 3000 });
  const id = await soon(flake.nextId);
  clock = 5000;
  const mine = store.calls.find(({ name }) => name === 'acquire');
  const thief = { ...mine, owner: 'thief', ttl: 60_000 };
  const { workerId } = await store.acquire(thief);
  await until(() => flake.lease.state === 'lost');
  assert.deepEqual([flake.workerId, flake.lease.slot.workerId], [0, 0]);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(
    message,
    /workerId 0 of faulty: was taken over by another process.*waits for a free slot.*by itself.*all slots of/,
  );
  assert.equal(flake.lease.lost, 'taken');
  await store.release({ ...thief, workerId, last: mine.ceiling });
  await until(() => flake.lease.state === 'held');
  assert.ok((await soon(flake.nextId)) > id);
});

test('a slot that was taken over, and no other can be opened: workerId stays', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const layout = { ...layouts.node, workerBits: 1 };
  const flake = await leased(store, { layout });
  const id = await soon(flake.nextId);
  const had = flake.workerId;
  // The only slot that will be free is of a node that this process has open otherwise.
  const other = new SnowFlake({ layout, datacenterId: 1, workerId: 1 - had });
  open.push(other);
  clock = 5000;
  const mine = store.calls.find(({ name }) => name === 'acquire');
  const thief = { ...mine, owner: 'thief', ttl: 60_000, workerIds: 1 };
  await store.acquire({ ...thief, workerIds: had + 1 });
  await until(() => flake.lease.failure !== undefined && flake.lease.state === 'lost');
  assert.equal(flake.workerId, had);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, new RegExp(`workerId ${had} of faulty: was taken over`));
  await rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.equal(flake.stats().issued, 1);
  const warned = once(process, 'warning');
  other.close();
  await until(() => flake.lease.state === 'held');
  const [warning] = await warned;
  assert.match(
    warning.message,
    new RegExp(`workerId ${had} of faulty: was taken.*under workerId ${1 - had}`),
  );
  assert.ok((await soon(flake.nextId)) > id);
});

/** What a lost table, key or server does to a store in memory. */
function lose({ records }) {
  records.namespace = undefined;
  records.slots.clear();
}

test('a lost namespace: one warning, and all of its holders continue above what was issued', async () => {
  const store = faulty();
  const layout = { ...layouts.node, workerBits: 1 };
  const options = { layout, maxClockSkew: 300 };
  const flakes = [await leased(store, options), await leased(store, options)];
  const ids = [];
  for (const flake of flakes) ids.push(...(await soon(() => flake.nextIds(1000))));
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  const before = store.records.namespace.id;
  lose(store);
  const start = Date.now();
  await until(() => flakes.every(({ lease }) => lease.state === 'held' && lease.floor > start));
  assert.notEqual(store.records.namespace.id, before);
  const noticed = Date.now();
  for (const { nextId, lease } of flakes) {
    const late = isStorms ? 0 : 60_000;
    assert.ok(lease.floor <= noticed + TTL + 300 + late, `${lease.floor - noticed} ms`);
    let code;
    try {
      nextId();
    } catch (error) {
      ({ code } = error);
    }
    // A machine may be so late that the clock has passed the floor.
    if (Date.now() <= lease.floor) assert.equal(code, 'ERR_SNOWFLAKE_WINDOW');
  }
  await until(() => flakes.every(({ lease }) => Date.now() > lease.floor));
  for (const flake of flakes) {
    const above = await soon(() => flake.nextIds(1000));
    assert.ok(flake.parse(above[0]).timestamp > flake.lease.floor);
    ids.push(...above);
  }
  assert.equal(countDuplicates(ids), 0);
  process.off('warning', note);
  const lost = warnings.filter(({ code }) => code === 'SNOWFLAKE_NAMESPACE_LOST');
  assert.equal(lost.length, 2, 'one a holder');
  assert.match(lost[0].message, /workerId \d of faulty: is no longer recorded/);
  assert.match(lost[0].detail, /may have issued the same IDs.*snowdrift recover URL/);
});

test('a store that was restored from a backup is noticed, and its floor raised', async () => {
  const store = faulty();
  const layout = { ...layouts.node, workerBits: 2 };
  const flake = await leased(store, { layout, maxClockSkew: 300 });
  const backup = structuredClone(store.records);
  await until(() => flake.lease.renewals >= 1);
  const { ceiling, owner } = flake.lease;
  const warned = once(process, 'warning');
  store.records.slots.clear();
  for (const [key, slot] of backup.slots) store.records.slots.set(key, slot);
  await until(() => flake.lease.owner !== owner);
  const [{ code, message }] = await warned;
  assert.equal(code, 'SNOWFLAKE_NAMESPACE_LOST');
  assert.match(message, /is recorded with an older ceiling: a backup was restored/);
  assert.equal(store.records.namespace.id, backup.namespace.id);
  assert.ok(flake.lease.floor >= ceiling);
  const next = await leased(store, { layout, maxClockSkew: 300 });
  assert.ok(next.lease.floor >= ceiling, 'the next holder starts above it, too');
});

test('a namespace that is lost between two calls of one search is opened anew', async () => {
  const store = faulty();
  const options = { maxClockSkew: 0 };
  await leased(store, options);
  let times = 0;
  store.fault = (name) => name === 'acquire' && times++ < 3 && lose(store);
  const flake = await leased(store, options);
  assert.ok(flake.lease.floor > 0, 'at the horizon');
  store.fault = (name) => name === 'acquire' && lose(store);
  const { message } = await rejects(leased(store, options), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /faulty: failed to acquire a slot: its namespace keeps changing/);
});

test('a namespace that is gone when a holder needs another slot was lost', async () => {
  for (const createAnew of [() => {}, (store) => store.open({ ...record(), signal })]) {
    let clock = 0;
    const store = faulty({ now: () => Date.now() + clock });
    const { open, acquire } = store;
    const flake = await leased(store);
    const { ceiling, owner } = flake.lease;
    store.open = async (request) => {
      store.open = open;
      lose(store);
      // As by a holder that had none before.
      await createAnew(store);
      return open(request);
    };
    clock = 5000;
    const mine = store.calls.find(({ name }) => name === 'acquire');
    await acquire({ ...mine, owner: 'thief', workerIds: 1, ttl: 60_000 });
    await until(() => flake.lease.owner !== owner);
    assert.ok(flake.lease.floor >= ceiling, `${flake.lease.floor} is below ${ceiling}`);
    await flake.close();
  }
});

test('a holder whose ttl, maxClockSkew or maxAhead is larger than recorded is refused', async () => {
  const store = memory();
  await leased(store, { ttl: 2000, maxClockSkew: 500, maxAhead: 100 });
  await leased(store, { ttl: 1000, maxClockSkew: 400, maxAhead: 0 });
  const larger = { ttl: 4000, maxClockSkew: 500, maxAhead: 200 };
  const { message } = await rejects(leased(store, larger), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(
    message,
    /^ttl 4000 \(recorded: 2000\) and maxAhead 200 \(recorded: 100\) is more than memory: allows/,
  );
  assert.match(message, /snowdrift raise URL --ttl 4000 --max-ahead 200$/);
  const skew = { ttl: 1000, maxClockSkew: 600 };
  const refusal = await rejects(leased(store, skew), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(refusal.message, /maxClockSkew 600 \(recorded: 500\).*--max-clock-skew 600$/);
  const { namespace } = await store.slots();
  const { signal } = new AbortController();
  await store.raise({ namespace: namespace.id, ttl: 4000, maxAhead: 200, signal });
  await leased(store, larger);
});

test('another layout or epoch in the namespace is refused', async () => {
  const store = memory();
  await leased(store);
  const { message } = await rejects(leased(store, { epoch: 0 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(
    message,
    /memory: is for IDs of another layout or epoch: 41\/3\/5\/2\/12@1\+1580486400000, and not 41\/3\/5\/2\/12@1\+0\. Use/,
  );
});

test('the first lease of a namespace in a store that may forget waits for the horizon', {
  skip: storm,
}, async () => {
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  let store;
  let flake;
  let waited;
  // A late machine waits for longer, and may find the wait too short for a warning.
  for (let rounds = 0; rounds < 20 && !(waited < 1800 && warnings.length > 0); rounds++) {
    warnings.length = 0;
    await flake?.close();
    store = { ...memory(), mayForget: true };
    const start = Date.now();
    flake = await leased(store, { ttl: 1000, maxClockSkew: 200, maxAhead: 100 });
    waited = Date.now() - start;
    assert.ok(waited > 1250, `${waited} ms`);
    await new Promise(setImmediate);
  }
  process.off('warning', note);
  assert.ok(waited < 1800, `${waited} ms`);
  const [{ code, message, detail }] = warnings;
  assert.equal(code, 'SNOWFLAKE_FLOOR');
  assert.match(message, /waits 1\d\d\d ms for its first ID/);
  assert.match(detail, /^memory:: the namespace is new, or was lost.*snowdrift create URL --new$/);
  await soon(flake.nextId);
  assert.equal((await leased(store, { ttl: 1000, maxClockSkew: 200 })).workerId, 1);
});

test('a burst may run maxAhead from the first ID on', async () => {
  const layout = { ...layouts.node, sequenceBits: 1 };
  const flake = await leased(memory(), { layout, maxAhead: 60_000, ttl: 1000 });
  // Two a tick: 4,000 ticks of 1 ms, of which the ttl has 1,000. The rest is for a machine that is late.
  assert.equal(countDuplicates([...flake.nextIds(8000)]), 0);
});

/** A store whose clock does not follow the machine's. */
const STEADY = `
  const { memory } = require('snowdrift/lease/memory');
  const start = Date.now() - performance.now();
  const store = memory({ now: () => start + performance.now() });
  const options = { datacenterId: 1, ttl: 1000, maxClockSkew: 500 };
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  /** An ID, as soon as there is one: if the machine stops this process for longer than ttl, there is none for a while. */
  const soon = async (flake) => {
    for (const end = performance.now() + 60_000; performance.now() < end; await pause(5)) {
      try { return flake.nextId(); } catch {}
    }
    throw new Error('no ID within a minute');
  };`;

test('a clock that jumps ahead is refused at the draw, and poisons no slot', {
  skip: noMachine(),
}, async () => {
  const { first, renewals, ms, refused, name, ahead, lease, again } =
    await underShiftedClock(`${STEADY}
    let renewals = 0;
    const { renew } = store;
    store.renew = (request) => { renewals++; return renew(request); };
    const flake = await SnowFlake.lease(store, options);
    const id = await soon(flake);
    shift(9 * 365 * 86_400_000);
    const first = thrown(flake.nextId).code;
    const [begun, before] = [performance.now(), renewals];
    for (; performance.now() < begun + 600 || renewals < before + 3; await pause(1)) {
      thrown(flake.nextId);
      if (performance.now() > begun + 60_000) throw new Error('no renewals');
    }
    renewals -= before;
    const ms = performance.now() - begun;
    const { code: refused, message: name } = thrown(flake.nextId);
    const { slots } = await store.slots();
    const { lease } = flake;
    const ahead = slots[0].ceiling + flake.layout.epoch - (await store.now());
    shift(0);
    const again = (await soon(flake)) > id;
    return { first, renewals, ms, refused, name, ahead, lease, again };`);
  assert.equal(first, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  // Each draw wants a renewal; they come no faster than after failures.
  assert.ok(renewals <= ms / 100 + 4, `${renewals} renewals in ${ms} ms`);
  assert.equal(refused, 'ERR_SNOWFLAKE_CLOCK_SKEW');
  const [, mine, theirs] = /clock shows (\S+Z), and the clock of memory: shows (\S+Z):/.exec(name);
  const apart = Date.parse(mine) - Date.parse(theirs);
  assert.ok(Math.abs(apart - lease.clockSkew) < 2 && apart > 9 * 364 * 86_400_000, name);
  assert.ok(ahead <= 1500, `the ceiling is ${ahead} ms ahead of the store's clock`);
  assert.ok(again);
});

test('a clock that jumped ahead issues nothing above the horizon of a loss', {
  skip: noMachine(),
}, async () => {
  const { ids, floor, highest } = await underShiftedClock(`${STEADY}
    const records = { slots: new Map() };
    const lossy = memory({ now: () => start + performance.now(), records });
    const flake = await SnowFlake.lease(lossy, { ...options, maxAhead: 400 });
    const ids = [];
    // Within what ttl, maxClockSkew and maxAhead allow, and past it.
    for (const ms of [900, 1400, 1800, 5000]) {
      shift(ms);
      // More on a machine that is late.
      for (let n = 0; n < 8 || (ids.length <= 8 && n < 200); n++) {
        try { ids.push(String(flake.nextId())); } catch {}
        await pause(50);
      }
    }
    records.namespace = undefined;
    records.slots.clear();
    shift(0);
    const next = await SnowFlake.lease({ ...lossy, mayForget: true }, { ...options, maxAhead: 400, datacenterId: 2 });
    const highest = Math.max(...ids.map((id) => flake.parse(id).timestamp));
    return { ids: ids.length, floor: next.lease.floor, highest };`);
  assert.ok(ids > 8, `${ids} IDs`);
  assert.ok(highest <= floor, `${highest} ms was issued, the new namespace starts above ${floor}`);
});

test('slots whose nodes this process has open otherwise are skipped, and released', async () => {
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

test('if each free slot has a node that is open otherwise, the error says so', async () => {
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
  const id = await soon(first.nextId);
  await first.close();
  assert.equal(first.lease.state, 'released');
  const release = store.calls.find(({ name }) => name === 'release');
  assert.equal(release.last, first.parse(id).timestamp - layout.epoch);
  const second = await leased(store, { layout, maxWait: 1000 });
  assert.equal(second.lease.floor, first.parse(id).timestamp);
  assert.ok((await soon(second.nextId)) > id);
});

test('a slot that was acquired too late is released', async () => {
  const store = faulty();
  const { acquire } = store;
  store.acquire = async (request) => {
    const answer = await acquire(request);
    await sleep(150);
    return answer;
  };
  await rejects(leased(store, { callTimeout: 50 }), 'ERR_SNOWFLAKE_STORE');
  store.fault = async (name) => {
    // That this fails, too, is nobody's concern.
    if (name === 'release') throw new Error('away');
  };
  await until(() => store.calls.some(({ name }) => name === 'release'));
  store.fault = undefined;
  store.acquire = acquire;
  await leased(store);
});

test('clocks too far apart are refused, and the error says which one is ahead', async () => {
  // So far that a pause within a call, which may explain a part of it, does not matter.
  const ahead = memory({ now: () => Date.now() + 60_000 });
  const { message } = await rejects(leased(ahead), 'ERR_SNOWFLAKE_CLOCK_SKEW');
  assert.match(
    message,
    /clock is [456]\d{4} ms behind the clock of memory:; maxClockSkew allows 10000 ms/,
  );
  const behind = memory({ now: () => Date.now() - 60_000 });
  const other = await rejects(leased(behind), 'ERR_SNOWFLAKE_CLOCK_SKEW');
  assert.match(other.message, /ms ahead of the clock/);
  await leased(ahead, { maxClockSkew: 70_000 });
});

test('the time of a call is no clock skew', async () => {
  for (const pauses of [
    [200, 0],
    [0, 200],
  ]) {
    const store = memory();
    for (const name of ['now', 'acquire', 'renew']) {
      const call = store[name];
      store[name] = async (request) => {
        await sleep(pauses[0]);
        const answer = await call(request);
        await sleep(pauses[1]);
        return answer;
      };
    }
    const flake = await leased(store, { maxClockSkew: 20, callTimeout: 60_000 });
    await until(() => flake.lease.renewals >= 1);
    assert.equal(flake.lease.clockSkew, undefined);
  }
});

test('wrong replies of a store are refused, at first and later', async () => {
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
    ['acquire', { workerId: 0, floor: -1 }],
    ['acquire', { workerId: 0, floor: -1, expires: 0, now: 'noon' }],
    ['acquire', { isMissing: 1 }],
    ['open', undefined],
    ['open', {}],
    ...Object.entries({
      id: 'ABC',
      layout: 'node',
      ttl: '1000',
      maxClockSkew: -1,
      maxAhead: 86_400_001,
      floor: Number.NaN,
    }).map(([what, wrong]) => ['open', { ...record(), [what]: wrong }]),
  ]) {
    const store = { ...faulty(), [call]: async () => answer };
    const { message } = await rejects(leased(store), 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /^faulty: failed to .*: Error: it returned .*; it must return /);
  }
  for (const answer of [
    ...[undefined, {}, { isHeld: 1 }, { isHeld: true }, { isHeld: false }],
    ...[
      { isHeld: false, lost: 'gone' },
      { isHeld: true, expires: 0, now: null },
    ],
  ]) {
    const store = faulty();
    const flake = await leased(store);
    const { ceiling } = flake.lease;
    store.renew = async () => answer;
    await until(() => flake.lease.failure !== undefined);
    assert.match(flake.lease.failure, /failed to renew a slot: Error: it returned/);
    assert.equal(flake.lease.ceiling, ceiling);
    drawsBelow(ceiling, flake);
    flake.close();
  }
});

test('a lease that is closed while it releases an unusable slot releases its own slot', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const layout = { ...layouts.node, workerBits: 2 };
  const flake = await leased(store, { layout });
  // The first that is given next is of a node that this process has open otherwise.
  const other = new SnowFlake({ layout, datacenterId: 1, workerId: 1 });
  open.push(other);
  let letGo;
  store.fault = (name) => name === 'release' && new Promise((resolve) => (letGo = resolve));
  clock = 5000;
  const mine = store.calls.find(({ name }) => name === 'acquire');
  await store.acquire({ ...mine, owner: 'thief', workerIds: 1, ttl: 60_000 });
  await until(() => letGo !== undefined && flake.workerId === 2);
  store.fault = undefined;
  const closed = flake.close();
  letGo();
  await closed;
  const renewals = store.calls.filter(({ name }) => name === 'renew').length;
  await sleep(TTL);
  assert.equal(flake.lease.state, 'released');
  assert.equal(store.calls.filter(({ name }) => name === 'renew').length, renewals);
  const { slots } = await store.slots();
  assert.equal(slots.find(({ workerId }) => workerId === 2).isHeld, false);
});

test('close() abandons the calls under way, and the end of the process waits for it', async () => {
  const script = `
    const { SnowFlake } = require('../..');
    const { memory } = require('../../js/stores/memory.js');
    const inner = memory();
    let renews;
    const store = {
      ...inner,
      renew: () => new Promise(() => renews()),
      release: async (request) => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        await inner.release(request);
        console.log('released');
      },
    };
    const options = { datacenterId: 1, ttl: 1000, callTimeout: 60_000 };
    SnowFlake.lease(store, options).then(async (flake) => {
      await new Promise((resolve) => { renews = resolve; setTimeout(() => {}, 2000); });
      flake.close();
      if (process.env.ENDED) process.kill(process.pid, 'SIGTERM');
    });`;
  for (const [env, signal] of [
    [{}, null],
    [{ ENDED: '1' }, 'SIGTERM'],
  ]) {
    const start = performance.now();
    const ended = await runScript(script, { env });
    assert.deepEqual([ended.stdout, ended.signal], ['released\n', signal], ended.stderr);
    if (isStorms) assert.ok(performance.now() - start < 50_000, 'the call');
  }
});

test('values that are no store, and wrong options, are refused', async () => {
  for (const store of [{}, [], () => {}, { acquire() {}, renew() {}, release() {} }]) {
    const { message } = await rejects(leased(store), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /LeaseStore|must be a URL/);
  }
  const { message } = await rejects(leased('kafka://a'), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /lease must be a URL of file:, postgres:.*'kafka:\/\/a'/);
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
    const { SnowFlake } = require('../..');
    const { memory } = require('../../js/stores/memory.js');
    SnowFlake.lease(memory(), { datacenterId: 1 }).then((flake) => console.log(typeof flake.nextId()));`;
  const { stdout, code } = await runScript(script);
  assert.deepEqual([stdout, code], ['bigint\n', 0]);
});

test('a list of slots with a damaged record is refused, and what is shown of a holder is bounded', () => {
  const namespace = {
    id: 'a'.repeat(32),
    layout: '41/3/5/2/12@1+1580486400000',
    ...{ ttl: 1000, maxClockSkew: 0, maxAhead: 0, floor: -1 },
  };
  const slot = { datacenterId: 0, workerId: 0, ceiling: 5, isHeld: true };
  const read = (more, record = namespace) =>
    readReply('slots', { namespace: record, slots: [{ ...slot, ...more }] }, {});
  for (const damaged of [
    ...[{ workerId: '0' }, { workerId: -1 }, { datacenterId: 1e12 }, { datacenterId: undefined }],
    ...[{ ceiling: 1.5 }, { ceiling: 2 ** 60 }, { ceiling: null }, { expires: 'soon' }],
  ]) {
    assert.throws(
      () => read(damaged),
      /undamaged.*\. This slot is damaged: \{ datacenterId: .*, workerId: .*, ceiling: /,
    );
  }
  for (const record of [{}, null, { ...namespace, layout: 'x' }, { ...namespace, ttl: 1e12 }]) {
    assert.throws(() => read({}, record), /undamaged records$/);
  }
  const startedAt = new Date(5);
  const shown = (more) => read(more).slots[0];
  assert.deepEqual(shown({ pid: 7, host: 'a', startedAt }), {
    ...slot,
    pid: 7,
    host: 'a',
    startedAt,
  });
  assert.deepEqual(shown({ pid: 'x', host: 7, startedAt: new Date('soon') }), slot);
  assert.equal(shown({ host: 'x'.repeat(1e6) }).host.length, 255);
  assert.equal(shown({ host: '\u001b[2J' }).host, '\\u001b[2J');
  assert.deepEqual(readReply('slots', { slots: [] }, {}), { slots: [] });
});
