'use strict';
// SnowFlake.lease with a store: what an application sees when slots are taken, renewed and lost, and when the store
// fails. The store is in memory, with faults put between, and time passes when a test says so.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { once } = require('node:events');
const fs = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { gate, isStorms } = require('../support/amount.js');
const {
  SnowFlake,
  countDuplicates,
  entry,
  layouts,
  refuses,
  rejects,
  runScript,
  soon: soonBy,
  until: untilReal,
} = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { leasesInTime } = require('../support/lease/lease-time.js');
const { createDirectory } = require('../support/own-directory.js');
const { missing: noMachine, underShiftedClock } = require('../support/machine.js');
const { memory } = require('../../js/stores/memory.js');

const TTL = 1000;
/** Layouts with one slot, and with two. */
const one = { ...layouts.node, workerBits: 0 };
const two = { ...layouts.node, workerBits: 1 };
const { lease: leased, open, time } = leasesInTime({ datacenterId: 1, ttl: TTL, scope: 'process' });

const until = (condition) => time.until(condition);
const soon = (draw) => soonBy(draw, time.until);

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
    /all slots of datacenterId 1 in memory:default are held: workerId 0: process \d+ on/,
  );
  assert.equal(holders.length, 4);
  time.sleep(200).then(() => flakes[2].close());
  const fifth = await leased(store, { ...options, waitForSlot: 60_000 });
  assert.equal(fifth.workerId, flakes[2].workerId);
});

test('an unreachable etcd is named, with the cause', async () => {
  const { etcd } = require('../../js/stores/etcd.js');
  // No client is given this port by the system, as one above 32767 may be.
  const store = etcd('http://127.0.0.1:1');
  const refused = SnowFlake.lease(store, { datacenterId: 1, callTimeout: 60_000 });
  const { message } = await rejects(refused, 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /^Cannot reach etcd:127\.0\.0\.1:1\/default \(ECONNREFUSED\)/);
});

test('a lease is renewed at a third of its ttl, and its ceiling rises', async () => {
  time.begin(100);
  const store = faulty();
  const renewals = [];
  store.fault = ({ does }) => {
    if (does === 'take' || does === 'renew') renewals.push(time.passed);
  };
  const flake = await leased(store, { layout: one });
  const { ceiling, expires, state, floor, slot, store: name } = flake.lease;
  assert.deepEqual([state, floor, name], ['held', null, 'faulty:']);
  assert.deepEqual(slot, { datacenterId: 1, workerId: 0 });
  for (const end of [ceiling, expires]) assert.equal(end, time.now() + TTL);
  await until(() => flake.lease.renewals >= 3);
  const third = Math.floor(TTL / 3);
  assert.deepEqual(
    renewals.map((at) => at - renewals[0]),
    [0, third, 2 * third, 3 * third],
  );
  assert.equal(flake.lease.expires, expires + 3 * third);
  assert.ok(flake.lease.ceiling > ceiling);
});

test('where replies lack the store’s time, it is read before a slot is taken, and again after an hour', async () => {
  const store = faulty();
  for (const name of ['read', 'write']) withoutTime(store, name);
  const flake = await leased(store, { ttl: 1_800_000 });
  await time.advance(4_300_000);
  assert.ok(flake.lease.renewals > 5, `${flake.lease.renewals} renewals`);
  const doings = store.calls.map(({ name, does }) => (name === 'now' ? 'now' : does)).join();
  assert.match(doings, /^[a-z,]*now[^w]*take([a-z,](?!now))*renew[^w]*now[^w]*renew/);
  assert.equal(doings.split('now').length - 1, 2, doings);
});

/** How long a new lease draws by the machine's clock, which is ahead in tests that wait for its ceiling. */
const LEFT = 200;

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
    time.begin(TTL - LEFT);
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
    await time.run(flake.close());
  }
  assert.fail('the machine is always late');
}

test('store away: IDs continue to the ceiling, stop, and continue by themselves', async () => {
  const { store, flake, ceiling } = await failing();
  await untilReal(() => Date.now() > ceiling);
  await time.advance(TTL);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, /the lease of workerId \d+ from faulty: expired at 20.*connection refused/);
  assert.match(message, /themselves\. Check the store$/);
  assert.equal(flake.lease.state, 'expired');
  await time.run(rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_LEASE_EXPIRED'));
  assert.throws(() => flake.nextIds(5), { code: 'ERR_SNOWFLAKE_LEASE_EXPIRED' });
  store.fault = undefined;
  await until(() => flake.lease.state === 'held');
  assert.equal(flake.parse(await soon(flake.nextId)).workerId, flake.workerId);
});

test('a lease that expires while the event loop is busy says so, and continues by itself', async () => {
  time.begin(TTL - LEFT);
  const flake = await leased(faulty());
  const { ceiling } = flake.lease;
  while (Date.now() <= ceiling);
  time.passed += TTL;
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, /themselves\. If this process was busy .* longer than ttl, raise ttl$/);
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
    while (flake.lease.renewals < 2 && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const next = thrown(flake.nextId)?.code ?? 'an ID';
    return { code, message, waited, renewals: flake.lease.renewals, next };`);
  assert.equal(code, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, /If this process was busy or suspended for longer than ttl, raise ttl$/);
  // By the timers it would be a third of ttl.
  assert.ok(waited < 60_000, `${waited} ms`);
  assert.deepEqual([renewals, next], [2, 'an ID']);
});

test('a call without a reply is given up in time, and tried again', async () => {
  const store = faulty();
  const flake = await leased(store, { callTimeout: 50 });
  store.fault = ({ does }) => does === 'renew' && new Promise(() => {});
  await until(() => flake.lease.failure !== undefined);
  assert.notEqual(flake.lease.state, 'held');
  assert.match(flake.lease.failure, /faulty: did not answer within 50 ms/);
  store.fault = undefined;
  await until(() => flake.lease.state === 'held' && flake.lease.failure === undefined);
});

test('a ceiling is not raised before the store has confirmed it', async () => {
  time.begin(TTL - LEFT);
  const store = faulty();
  const flake = await leased(store, { callTimeout: 60_000 });
  let confirm;
  store.fault = ({ does }) => does === 'renew' && new Promise((resolve) => (confirm = resolve));
  await until(() => confirm !== undefined);
  const { ceiling } = flake.lease;
  await untilReal(() => Date.now() > ceiling);
  refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  store.fault = undefined;
  confirm();
  await until(() => flake.lease.ceiling > ceiling);
  await soon(flake.nextId);
});

test('a slot that was taken over: another worker ID, one warning, no ID twice', async () => {
  let clock = 0;
  const store = faulty({ now: () => time.now() + clock });
  const flake = await leased(store, { layout: two });
  const had = flake.workerId;
  const ids = [...(await soon(() => flake.nextIds(1000)))];
  const warned = once(process, 'warning');
  // The store's time passes, so other processes find the slot expired.
  clock = 5000;
  store.steal(had);
  // Leases do not keep a process alive, so something else must.
  await until(() => flake.workerId === 1 - had);
  const [{ code, message }] = await warned;
  assert.equal(code, 'SNOWFLAKE_SLOT_LOST');
  assert.match(
    message,
    new RegExp(
      `workerId ${had} of faulty: was taken over by another process, .*; IDs continue under workerId ${1 - had}\\.`,
    ),
  );
  ids.push(...(await soon(() => flake.nextIds(1000))));
  assert.equal(flake.parse(ids.at(-1)).workerId, 1 - had);
  assert.deepEqual(flake.lease.slot, { datacenterId: 1, workerId: 1 - had });
  assert.equal(countDuplicates(ids), 0);
});

test('a slot that was taken over, and no other is free: IDs stop until one is free', async () => {
  time.begin(TTL - LEFT);
  let clock = 0;
  const store = faulty({ now: () => time.now() + clock });
  // What other holders record is bounded by ttl + maxClockSkew.
  const flake = await leased(store, { layout: one, maxWait: 3000, maxClockSkew: 600_000 });
  const id = await soon(flake.nextId);
  clock = 5000;
  store.steal(0);
  await until(() => flake.lease.state === 'lost' && flake.lease.failure !== undefined);
  assert.deepEqual([flake.workerId, flake.lease.slot.workerId], [0, 0]);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(
    message,
    /workerId 0 of faulty: was taken over by another process.*waits for a free slot.*by itself.*all slots of/,
  );
  assert.equal(flake.lease.lost, 'taken');
  store.free(0);
  await until(() => flake.lease.state === 'held');
  assert.ok((await soon(flake.nextId)) > id);
});

test('a slot that was taken over, and no other can be opened: workerId stays', async () => {
  let clock = 0;
  const store = faulty({ now: () => time.now() + clock });
  const flake = await leased(store, { layout: two, maxClockSkew: 600_000 });
  const id = await soon(flake.nextId);
  const had = flake.workerId;
  // The only slot that will be free is of a node that this process has open otherwise.
  const other = new SnowFlake({ layout: two, datacenterId: 1, workerId: 1 - had });
  open.push(other);
  clock = 5000;
  store.steal(had);
  await until(() => flake.lease.failure !== undefined && flake.lease.state === 'lost');
  assert.equal(flake.workerId, had);
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(message, new RegExp(`workerId ${had} of faulty: was taken over`));
  await time.run(rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_LEASE_EXPIRED'));
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

test('a lost namespace: one warning, and all of its holders continue above what was issued', async () => {
  time.begin(TTL - LEFT);
  const store = faulty();
  const options = { datacenterId: 3, layout: two, maxClockSkew: 50 };
  const flakes = [await leased(store, options), await leased(store, options)];
  const ids = [];
  for (const flake of flakes) ids.push(...(await soon(() => flake.nextIds(1000))));
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  const before = store.namespace.id;
  store.lose();
  const start = time.now();
  await until(() => flakes.every(({ lease }) => lease.state === 'held' && lease.floor > start));
  assert.notEqual(store.namespace.id, before);
  const noticed = time.now();
  for (const { nextId, lease } of flakes) {
    assert.ok(lease.floor <= noticed + TTL + 2 * 50, `${lease.floor - noticed} ms`);
    let code;
    try {
      nextId();
    } catch (error) {
      ({ code } = error);
    }
    // A machine may be so late that the clock has passed the floor.
    if (Date.now() <= lease.floor) assert.equal(code, 'ERR_SNOWFLAKE_WINDOW');
  }
  await untilReal(() => flakes.every(({ lease }) => Date.now() > lease.floor));
  for (const flake of flakes) {
    const above = await soon(() => flake.nextIds(1000));
    assert.ok(flake.parse(above[0]).timestamp > flake.lease.floor);
    ids.push(...above);
  }
  assert.equal(countDuplicates(ids), 0);
  process.off('warning', note);
  const lost = warnings.filter(({ code }) => code === 'SNOWFLAKE_NAMESPACE_LOST');
  assert.equal(lost.length, 2, 'one a holder');
  assert.match(lost[0].message, /workerId \d of faulty: is no longer recorded, .*a table/);
  assert.match(lost[0].detail, /may have issued the same IDs.*snowdrift [a-z ]*recover URL/);
});

test('a store that was restored from a backup is noticed, and its floor raised', async () => {
  const store = faulty();
  const layout = { ...layouts.node, workerBits: 2 };
  const flake = await leased(store, { layout, maxClockSkew: 300 });
  const backup = new Map(store.stored);
  const { id } = store.namespace;
  await until(() => flake.lease.renewals >= 1);
  const { ceiling, owner } = flake.lease;
  const warned = once(process, 'warning');
  store.restore(backup);
  await until(() => flake.lease.owner !== owner);
  const [{ code, message }] = await warned;
  assert.equal(code, 'SNOWFLAKE_NAMESPACE_LOST');
  assert.match(message, /is no longer recorded, or with an older ceiling: .*a backup was restored/);
  assert.equal(store.namespace.id, id);
  assert.ok(flake.lease.floor >= ceiling);
  const next = await leased(store, { layout, maxClockSkew: 300 });
  assert.ok(next.lease.floor >= ceiling, 'the next holder starts above it, too');
});

test('a slot that another holder took below its ceiling shows an older record', async () => {
  const store = faulty();
  const warned = once(process, 'warning');
  const flake = await leased(store, { layout: one });
  await until(() => flake.lease.renewals > 0);
  const { ceiling } = store.slot(0);
  // As one that took it from a record of the time before that renewal, and has renewed since.
  store.replace(0, { owner: 'b'.repeat(16), floor: ceiling - 1, ceiling: ceiling + 10_000 });
  await until(() => flake.lease.lost !== undefined);
  const [{ code, message }] = await warned;
  assert.equal(code, 'SNOWFLAKE_NAMESPACE_LOST');
  assert.match(message, /is no longer recorded, or with an older ceiling/);
  assert.equal(flake.lease.lost, 'reverted');
});

test('a namespace that is lost between two calls of one search is opened anew', async () => {
  const store = faulty();
  const options = { maxClockSkew: 0 };
  await leased(store, options);
  let times = 0;
  store.fault = ({ does }) => does === 'take' && times++ < 3 && store.lose();
  const flake = await leased(store, options);
  assert.ok(flake.lease.floor > 0, 'at the horizon');
  store.fault = ({ does }) => does === 'take' && store.lose();
  const { message } = await rejects(leased(store, options), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /faulty: failed to acquire or renew a slot: its records keep changing/);
});

test('a namespace that is gone when a holder needs another slot was lost', async () => {
  for (const isCreatedAnew of [false, true]) {
    let clock = 0;
    const now = () => time.now() + clock;
    const store = faulty({ now });
    const flake = await leased(store, { layout: two });
    const { ceiling, owner } = flake.lease;
    store.fault = async ({ name, of }) => {
      if (name !== 'read' || of !== 'namespace') return;
      store.fault = undefined;
      store.lose();
      // As by a holder that had none before.
      if (isCreatedAnew) await leased(faulty({ now, stored: store.stored }), { layout: two });
    };
    clock = 5000;
    store.steal(flake.workerId);
    await until(() => flake.lease.owner !== owner);
    assert.ok(flake.lease.floor >= ceiling, `${flake.lease.floor} is below ${ceiling}`);
    for (const each of open.splice(0)) await time.run(each.close());
  }
});

test('a holder with larger limits records them before it takes a slot', async () => {
  const store = faulty();
  const larger = { ttl: 4000, maxClockSkew: 400, maxAhead: 200 };
  await leased(store, { ttl: 2000, maxClockSkew: 500, maxAhead: 100 });
  const { length } = store.calls;
  await leased(store, larger);
  const does = store.calls.slice(length).map((call) => call.does);
  assert.ok(does.includes('raise') && does.indexOf('raise') < does.indexOf('take'), does.join());
  const highest = { ttl: 4000, maxClockSkew: 500, maxAhead: 200 };
  assert.deepEqual(store.namespace.limits, highest);
  // A holder with smaller ones uses its own, and lowers none.
  const flake = await leased(store, { ttl: 1000, maxClockSkew: 400, maxAhead: 0 });
  assert.equal(flake.lease.ceiling, time.now() + 1000);
  assert.deepEqual(store.namespace.limits, highest);
});

test('another layout or epoch in the namespace is refused', async () => {
  const store = memory();
  await leased(store);
  const { message } = await rejects(leased(store, { epoch: 0 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(
    message,
    /memory:default is for IDs of another layout or epoch: 41\/3\/5\/2\/12 .* from 2020-01-31T16:00.*, not .* from 1970-01-01.*\. Use/,
  );
});

test('the first lease of a namespace in a store that may forget waits for the horizon', async () => {
  // So that the machine's clock has passed it, too.
  time.begin(1500);
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  const store = { ...memory(), mayForget: true };
  const flake = await leased(store, { ttl: 1000, maxClockSkew: 200, maxAhead: 100 });
  await new Promise(setImmediate);
  process.off('warning', note);
  // Past ttl, twice maxClockSkew, and maxAhead, of which it may use the last.
  assert.ok(Math.abs(time.passed - 1400) < 5, `${time.passed} ms`);
  const [{ code, message, detail }] = warnings;
  assert.equal(code, 'SNOWFLAKE_FLOOR');
  assert.match(message, /waits 1\d\d\d ms for its first ID/);
  assert.match(
    detail,
    /^memory:default: .*the namespace is new, was lost or was recovered.*snowdrift recover URL --new$/,
  );
  await soon(flake.nextId);
  const second = await leased(store, { ttl: 1000, maxClockSkew: 200 });
  assert.notEqual(second.workerId, flake.workerId);
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
  const stored = new Map();
  const store = memory({ now: () => start + performance.now(), stored });
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
    const { write } = store;
    store.write = (...values) => { renewals++; return write(...values); };
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
    const [slot] = [...stored.values()].filter((text) => text.includes(' held '));
    const ceiling = Number(slot.split(' ')[6]);
    const { lease } = flake;
    const ahead = ceiling + flake.layout.epoch - (start + performance.now());
    shift(0);
    const again = (await soon(flake)) > id;
    return { first, renewals, ms, refused, name, ahead, lease, again };`);
  assert.equal(first, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  // Each draw wants a renewal; they come no faster than after failures.
  assert.ok(renewals <= ms / 100 + 4, `${renewals} renewals in ${ms} ms`);
  assert.equal(refused, 'ERR_SNOWFLAKE_CLOCK_SKEW');
  const [, mine, theirs] = /clock shows (\S+Z), and the clock of memory:default shows (\S+Z):/.exec(
    name,
  );
  const apart = Date.parse(mine) - Date.parse(theirs);
  assert.ok(Math.abs(apart - lease.clockSkew) < 2 && apart > 9 * 364 * 86_400_000, name);
  assert.ok(ahead <= 1500, `the ceiling is ${ahead} ms ahead of the store's clock`);
  assert.ok(again);
});

test('a clock that jumped ahead issues nothing above the horizon of a loss', {
  skip: noMachine() ?? gate,
}, async () => {
  const { ids, floor, highest } = await underShiftedClock(`${STEADY}
    const flake = await SnowFlake.lease(store, { ...options, maxAhead: 400 });
    const ids = [];
    // Within what ttl, maxClockSkew and maxAhead allow, and past it.
    for (const ms of [900, 1400, 1800, 5000]) {
      shift(ms);
      // More on a machine that is late.
      for (let n = 0; n < 8 || (ids.length <= 8 && n < 200); n++) {
        try { ids.push(String(flake.nextId())); } catch {}
        await pause(30);
      }
    }
    stored.clear();
    shift(0);
    const next = await SnowFlake.lease({ ...store, mayForget: true }, { ...options, maxAhead: 400, datacenterId: 2 });
    const highest = Math.max(...ids.map((id) => flake.parse(id).timestamp));
    return { ids: ids.length, floor: next.lease.floor, highest };`);
  assert.ok(ids > 8, `${ids} IDs`);
  assert.ok(highest <= floor, `${highest} ms was issued, the new namespace starts above ${floor}`);
});

test('slots whose nodes this process has open otherwise are skipped, and never taken', async () => {
  const store = faulty();
  const other = new SnowFlake({ layout: two, datacenterId: 1, workerId: 0 });
  open.push(other);
  assert.equal((await leased(store, { layout: two })).workerId, 1);
  assert.deepEqual(
    store.slots.map(({ workerId }) => workerId),
    [1],
  );
  // In another namespace both slots are free.
  await rejects(leased(memory(), { layout: two }), 'ERR_SNOWFLAKE_CONFLICT');
  other.close();
  assert.equal((await leased(store, { layout: two })).workerId, 0);
});

test('if each free slot has a node that is open otherwise, the error says so', async () => {
  const store = faulty();
  const other = new SnowFlake({ layout: one, datacenterId: 1 });
  open.push(other);
  await rejects(leased(store, { layout: one }), 'ERR_SNOWFLAKE_CONFLICT');
  other.close();
  assert.equal((await leased(store, { layout: one })).workerId, 0);
});

test('the next holder starts above what the last one recorded, close() lowers it', async () => {
  const store = faulty();
  const layout = { ...layouts.node, workerBits: 0 };
  const first = await leased(store, { layout });
  const id = await soon(first.nextId);
  await first.close();
  assert.equal(first.lease.state, 'released');
  const { kind, ceiling } = store.slot(0);
  assert.deepEqual([kind, ceiling], ['free', first.parse(id).timestamp - layout.epoch]);
  const second = await leased(store, { layout, maxWait: 1000 });
  assert.equal(second.lease.floor, first.parse(id).timestamp);
  assert.ok((await soon(second.nextId)) > id);
});

/** Three ways in which a write can go on after its call was given up: by what becomes of it. */
const GIVEN_UP = {
  'was written, without a reply': { late: () => new Promise(() => {}) },
  'is written late': { fault: () => time.sleep(300) },
  'is never written': { fault: () => new Promise(() => {}) },
};

for (const [name, { fault, late }] of Object.entries(GIVEN_UP)) {
  test(`a slot whose record ${name} is free when lease() rejects, or expires`, async () => {
    const store = faulty();
    const settled = [];
    const during = (hook) => (call) => {
      if (call.does !== 'take') return undefined;
      const hooked = hook?.();
      settled.push(hooked);
      return hooked;
    };
    store.fault = during(fault);
    store.late = during(late);
    const options = { layout: one, callTimeout: 100 };
    await rejects(leased(store, options), 'ERR_SNOWFLAKE_STORE');
    const isFree = () => store.slots.every(({ kind }) => kind === 'free');
    assert.ok(isFree(), JSON.stringify(store.slots));
    store.fault = undefined;
    store.late = undefined;
    if (name === 'is written late') {
      await time.run(Promise.all(settled));
      await new Promise(setImmediate);
      assert.ok(!isFree(), 'nobody renews it');
    }
    const start = time.passed;
    const { workerId } = await leased(store, { layout: one, waitForSlot: 2 * TTL });
    assert.equal(workerId, 0);
    if (name !== 'is written late') assert.ok(time.passed - start < 10, 'at once');
  });

  test(`a slot whose record ${name} is free when close() ends its taking, or expires`, async () => {
    let clock = 0;
    const store = faulty({ now: () => time.now() + clock });
    const flake = await leased(store, { layout: two, callTimeout: 60_000 });
    const next = 1 - flake.workerId;
    clock = 5000;
    let isTaking = false;
    let settled;
    const during = (hook) => (call) => {
      if (call.does !== 'take') return undefined;
      isTaking = true;
      settled = hook?.();
      return settled;
    };
    store.fault = during(fault);
    store.late = during(late);
    store.steal(flake.workerId, { ttl: 10_000 });
    await until(() => isTaking);
    await time.run(flake.close());
    const isFree = () => (store.slot(next)?.kind ?? 'free') === 'free';
    assert.ok(isFree(), JSON.stringify(store.slots));
    if (name === 'is written late') await time.run(settled);
    await new Promise(setImmediate);
    assert.equal(isFree(), name !== 'is written late', JSON.stringify(store.slots));
    assert.equal(flake.lease.state, 'released');
    store.fault = undefined;
    store.late = undefined;
    const { workerId } = await leased(store, { layout: two, waitForSlot: 2 * TTL });
    assert.equal(workerId, next);
  });
}

test('clocks too far apart are refused, and the error says which one is ahead', async () => {
  // So far that a pause within a call, which may explain a part of it, does not matter.
  const stored = new Map();
  const ahead = memory({ now: () => time.now() + 60_000, stored });
  const { message } = await rejects(leased(ahead), 'ERR_SNOWFLAKE_CLOCK_SKEW');
  assert.equal(stored.size, 0, 'before anything is written');
  assert.match(
    message,
    /clock is [456]\d{4} ms behind the clock of memory:default; maxClockSkew allows 10000 ms/,
  );
  const behind = memory({ now: () => time.now() - 60_000 });
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
    for (const name of ['read', 'write']) {
      const call = store[name];
      store[name] = async (...values) => {
        await time.sleep(pauses[0]);
        const reply = await call(...values);
        await time.sleep(pauses[1]);
        return reply;
      };
    }
    // A call of a renewal may take a sixth of it.
    const ttl = 2000;
    const flake = await leased(store, { ttl, maxClockSkew: 20, callTimeout: 60_000 });
    await until(() => flake.lease.renewals >= 1);
    assert.equal(flake.lease.clockSkew, undefined);
  }
});

test('wrong replies of a store are refused, at first and later', async () => {
  const token = '0123456789abcdef';
  const record = { token, text: 'text' };
  const throwing = {
    get token() {
      throw new Error('thrown');
    },
  };
  const wrong = {
    now: [undefined, null, Number.NaN, Number.POSITIVE_INFINITY, '2026-01-01', 5n, {}],
    read: [
      ...[undefined, null, 5, 'text', { record: null }, { record: {} }, { record: { token } }],
      ...[{ record: { token: 'x', text: '' } }, { record: { token: [token], text: '' } }],
      ...[{ record: { token: token.toUpperCase().replace('0', 'A'), text: '' } }],
      ...[{ record: { token, text: 5 } }, { record: undefined, now: 'noon' }],
      ...[{ record, now: Number.NaN }, { record: throwing }],
    ],
    write: [
      ...[undefined, true, {}, { isWritten: 1 }, { isWritten: 'true' }],
      ...[
        { isWritten: false, found: null },
        { isWritten: false, found: {} },
      ],
      ...[{ isWritten: true, now: null }],
    ],
  };
  for (const [call, replies] of Object.entries(wrong)) {
    for (const reply of replies) {
      const store = faulty();
      store[call] = async () => reply;
      // Then its time is read by a call.
      if (call === 'now') for (const other of ['read', 'write']) withoutTime(store, other);
      const { message } = await rejects(leased(store), 'ERR_SNOWFLAKE_STORE');
      assert.match(
        message,
        /^faulty: failed to .*: (Error: it returned .*; it must return |Error: thrown|TypeError)/,
      );
    }
  }
  for (const reply of wrong.write) {
    const store = faulty();
    const flake = await leased(store);
    const { ceiling } = flake.lease;
    store.write = async () => reply;
    await until(() => flake.lease.failure !== undefined);
    assert.match(flake.lease.failure, /failed to write a record: Error: it returned/);
    assert.equal(flake.lease.ceiling, ceiling);
    drawsBelow(ceiling, flake);
    await time.run(flake.close());
  }
});

function withoutTime(store, name) {
  const call = store[name];
  store[name] = async (...values) => ({ ...(await call(...values)), now: undefined });
}

test('a record that no holder writes is named, or left as it is', async () => {
  const stored = new Map();
  const store = memory({ stored });
  await leased(store, { layout: one });
  const [key] = [...stored.keys()].filter((each) => each.endsWith('/0'));
  const sound = stored.get(key);
  const refused = (code) => rejects(leased(store, { layout: one }), code);
  // A line: its worker ID is named, and not used.
  const held = /\n(.*)$/.exec(sound)[1];
  const lines = ['0', '0 x', `0 held ${'x '.repeat(1000)}`, '0 held\0'];
  // What is shown of a holder is bounded.
  lines.push(`${held}${'x'.repeat(65)}`, `${held}\u001b[2J a`);
  for (const line of lines) {
    const value = sound.replace(/\n.*/s, `\n${line}`);
    stored.set(key, value);
    const { message } = await refused('ERR_SNOWFLAKE_NO_SLOT');
    assert.match(
      message,
      /all slots of datacenterId 1 in memory:default are held or cannot be used \(the record of workerId 0 is damaged/,
    );
    assert.equal(stored.get(key), value);
  }
  const token = '0123456789abcdef';
  const texts = ['', 'x', '\0'.repeat(4000), 'snowdrift2 namespace', 'x '.repeat(1 << 20)];
  // A bucket: where there are others, they are used.
  for (const text of [...texts, 'snowdrift2 bucket']) {
    stored.set(key, `${token} ${text}`);
    const { message } = await refused('ERR_SNOWFLAKE_STORE');
    assert.match(message, /^memory:default has records of another format: .*the key 1\/0\b/);
    assert.equal(stored.get(key), `${token} ${text}`);
  }
  for (const text of texts) {
    stored.set('default/namespace', `${token} ${text}`);
    const { message } = await refused('ERR_SNOWFLAKE_STORE');
    assert.match(message, /^memory:default has records of another format: .*the key namespace\b/);
  }
});

test('a damaged line, and a damaged bucket, leave all other worker IDs to others', async () => {
  // Two buckets.
  const layout = { ...layouts.node, datacenterBits: 0, workerBits: 6 };
  const store = faulty();
  const options = { layout, datacenterId: 0 };
  const flakes = [await leased(store, options)];
  const [before] = store.slots;
  store.stored.set(
    `default/${before.key}`,
    store.stored.get(`default/${before.key}`).replace(/\n\d+ held/, (line) => `${line} damaged`),
  );
  for (let n = 0; n < 63; n++) flakes.push(await leased(store, options));
  assert.equal(new Set(flakes.map(({ workerId }) => workerId)).size, 64);
  const { message } = await rejects(leased(store, options), 'ERR_SNOWFLAKE_NO_SLOT');
  assert.match(message, new RegExp(`the record of workerId ${before.workerId} is damaged`));
  for (const flake of open.splice(0)) await time.run(flake.close());
  // Its own holder found no line of its own any more, so the namespace was lost: the others begin above the horizon.
  for (const damage of ['0123456789abcdef snowdrift2 damage', 'of another program']) {
    store.stored.set(`default/${before.key}`, damage);
    for (let n = 0; n < 32; n++) {
      const { workerId } = await leased(store, options);
      assert.notEqual(`0/${Math.trunc(workerId / 32)}`, before.key);
    }
    const refusal = await rejects(leased(store, options), 'ERR_SNOWFLAKE_STORE');
    assert.match(refusal.message, new RegExp(`records of another format: .*${before.key}`));
    for (const flake of open.splice(0)) await time.run(flake.close());
  }
});

const noHost = process.platform !== 'linux' && 'tried on Linux, with its memory file system';

/** Two leases of a host that share a slot. The second one has seen that its store is that of the page. */
async function sharing(options) {
  const store = faulty();
  const flake = await leased(store, options);
  const second = faulty({ stored: store.stored });
  const other = await leased(second, options);
  assert.equal(other.lease.owner, flake.lease.owner);
  const { length } = second.calls;
  await until(() => flake.lease.renewals > 0 && second.calls.length > length);
  return { store, flake, second, other };
}

test('a process that fails to renew is well again when another one of its host has renewed', {
  skip: noHost,
}, async () => {
  const { store, flake, other } = await sharing({ scope: 'host', datacenterId: 6 });
  const { owner } = flake.lease;
  store.fault = () => Promise.reject(new Error('away'));
  await until(() => flake.lease.failure !== undefined);
  assert.match(flake.lease.state, /^(failing|expired)$/);
  await until(() => flake.lease.failure === undefined && flake.lease.state === 'held');
  assert.equal(other.lease.failure, undefined);
  assert.deepEqual([flake.lease.owner, other.lease.owner], [owner, owner]);
});

test('a process that joined just now takes a slot over that nobody renews, and shares it again', {
  skip: noHost,
}, async () => {
  const options = { scope: 'host', datacenterId: 6 };
  const store = faulty();
  const flake = await leased(store, options);
  const { owner, slot } = flake.lease;
  const ids = [...(await soon(() => flake.nextIds(100)))];
  store.fault = () => Promise.reject(new Error('away'));
  const other = await leased(faulty({ stored: store.stored }), options);
  assert.equal(other.lease.owner, owner);
  await until(() => other.lease.owner !== owner);
  assert.deepEqual(other.lease.slot, slot);
  await until(() => flake.lease.state === 'lost');
  assert.equal(flake.lease.lost, 'page');
  ids.push(...(await soon(() => other.nextIds(100))));
  store.fault = undefined;
  await until(() => flake.lease.state === 'held');
  assert.deepEqual([flake.lease.owner, flake.lease.slot], [other.lease.owner, slot]);
  ids.push(...(await soon(() => flake.nextIds(100))), ...other.nextIds(100));
  assert.equal(countDuplicates(ids), 0);
});

test('a worker ID that was lost is not taken again while the store assigns none', async () => {
  const store = faulty();
  let isAway = false;
  store.assignRow = async () => {
    if (isAway) throw new Error('away');
    return { workerId: store.assigned++, now: time.now(), register: store };
  };
  store.assigned = 5;
  const flake = await leased(store);
  assert.equal(flake.workerId, 5);
  isAway = true;
  store.steal(5);
  await until(() => flake.lease.state === 'lost' && flake.lease.failure !== undefined);
  const { length } = store.calls;
  // Another process that has it by now ends.
  store.free(5);
  const tries = { before: 0 };
  store.assignRow = async () => {
    tries.before++;
    if (tries.before < 5) throw new Error('away');
    return { workerId: store.assigned++, now: time.now(), register: store };
  };
  await until(() => flake.lease.state === 'held');
  const taken = store.calls.slice(length).filter(({ does }) => does === 'take');
  assert.deepEqual([flake.workerId, taken.map(({ workerId }) => workerId)], [6, [6]]);
});

test('a process that finds an expired slot of its host has IDs once lease() returns', {
  skip: noHost,
}, async () => {
  const options = { scope: 'host', datacenterId: 7 };
  const store = faulty();
  const flake = await leased(store, options);
  store.fault = () => Promise.reject(new Error('away'));
  await until(() => time.now() > flake.lease.ceiling + TTL);
  const other = await leased(faulty({ stored: store.stored }), options);
  assert.deepEqual([other.lease.state, other.workerId], ['held', flake.workerId]);
  assert.ok(other.lease.ceiling > time.now());
});

/** A store in a file, which needs nothing that keeps a process alive. Its replies have no time. */
function fileStore(fs, path) {
  const load = () => (fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, 'utf8')) : {});
  return {
    name: 'a file',
    now: async () => Date.now(),
    read: async (key) => ({ record: load()[key] }),
    write: async (key, record, before) => {
      const all = load();
      const found = all[key];
      if (found?.token !== before) return { isWritten: false, found };
      fs.writeFileSync(`${path}.new`, JSON.stringify({ ...all, [key]: record }));
      fs.renameSync(`${path}.new`, path);
      return { isWritten: true };
    },
  };
}

test('a process that waits for an expired slot of its host does not end before it has it', {
  skip: noHost,
}, async () => {
  // By the machine's time: another process takes part.
  time.end();
  const options = { datacenterId: 2, ttl: TTL, scope: 'host' };
  const path = join(createDirectory(), 'store');
  const flake = await leased(fileStore(fs, path), options);
  // By its clock, the slot has expired. It waits for the one that renews.
  const script = `
    const { now } = Date;
    Date.now = () => now() + 3_600_000;
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const fileStore = ${fileStore};
    SnowFlake.lease(fileStore(require('node:fs'), ${JSON.stringify(path)}), ${JSON.stringify(options)})
      .then(({ workerId }) => console.log(workerId));`;
  const { stdout, stderr } = await runScript(script);
  assert.equal(stdout, `${flake.workerId}\n`, stderr);
});

test('on a machine whose clock is ahead by more than ttl, a lease has IDs once lease() returns', async () => {
  const store = faulty({ now: () => time.now() - 5 * TTL });
  const start = time.passed;
  const flake = await leased(store);
  assert.deepEqual([flake.lease.state, flake.lease.renewals], ['held', 1]);
  assert.ok(time.passed - start < TTL / 3, 'before a renewal is due');
});

test('a process that joins while another one renews has the slot', { skip: noHost }, async () => {
  // By the machine's time: ceilings follow its clock.
  time.end();
  const options = { scope: 'host', datacenterId: 5 };
  const store = faulty();
  const flake = await leased(store, options);
  const before = flake.lease.renewals;
  // Between the look of the one that joins and the reply.
  const joining = faulty({ stored: store.stored });
  joining.late = async ({ name, of }) => {
    if (name !== 'read' || of !== 'bucket') return;
    joining.late = undefined;
    await untilReal(() => flake.lease.renewals > before);
  };
  const other = await leased(joining, options);
  assert.deepEqual([other.lease.state, other.lease.owner], ['held', flake.lease.owner]);
});

test('a process by a copy of the store leaves the page, and never renews its slot', {
  skip: noHost,
}, async () => {
  const options = { scope: 'host', datacenterId: 4 };
  const store = faulty();
  const flake = await leased(store, options);
  // The last renewal is in it, too.
  const copy = faulty({ stored: new Map(store.stored) });
  const trial = await leased(copy, options);
  const { owner, workerId } = { ...flake.lease, workerId: flake.workerId };
  assert.equal(trial.lease.owner, owner);
  const ids = [...(await soon(() => trial.nextIds(100)))];
  await until(() => trial.lease.owner !== owner && trial.lease.state === 'held');
  assert.notEqual(trial.workerId, workerId);
  await until(() => flake.lease.renewals > 5);
  assert.deepEqual([flake.lease.owner, flake.lease.lost], [owner, undefined]);
  assert.ok(copy.calls.every((call) => call.name !== 'write' || call.workerId !== workerId));
  ids.push(...(await soon(() => flake.nextIds(100))));
  assert.equal(countDuplicates(ids), 0);
});

/** By name: breaks a store for a lease of one of two slots, and how many calls a try makes at most. */
const BREAKS = {
  'whose slots are all held': [
    (store, flake, set) => {
      set.clock = 5000;
      store.steal(flake.workerId);
      store.steal(1 - flake.workerId);
    },
    4,
  ],
  'that fails at once': [(store) => (store.fault = () => Promise.reject(new Error('away'))), 2],
  'whose namespace is damaged': [
    (store) => {
      store.lose();
      store.stored.set('default/namespace', '0123456789abcdef damage');
    },
    2,
  ],
  'that reverts after each write': [
    (store) => {
      const backup = new Map(store.stored);
      store.late = ({ name }) => name === 'write' && store.restore(backup);
    },
    // In a second.
    100,
  ],
  'that forgets each write': [
    (store) => {
      store.late = ({ name }) => name === 'write' && store.lose();
    },
    100,
  ],
  'that refuses each write': [
    (store) => {
      store.write = async (key, ...rest) => {
        const { record: found } = await store.read(key, rest.at(-1));
        return { isWritten: false, found };
      };
    },
    // As many writes as one try may make.
    160,
  ],
};

test('a lease that fails again and again makes few calls a second', async () => {
  const cases = Object.entries(BREAKS).map(async ([name, [breakStore, most]], datacenterId) => {
    const set = { clock: 0 };
    const store = faulty({ now: () => time.now() + set.clock });
    const options = { datacenterId, layout: two, maxClockSkew: 600_000 };
    // The other slot is used, too.
    const other = await leased(store, options);
    const flake = await leased(store, options);
    await other.close();
    breakStore(store, flake, set);
    const taken = store.count('take');
    await until(() => flake.lease.failure !== undefined || store.count('take') > taken + 1);
    const [start, before] = [time.passed, store.calls.length];
    await until(() => time.passed > start + 500);
    const tries = (time.passed - start) / 100 + 2;
    const calls = store.calls.length - before;
    assert.ok(calls <= tries * most, `of a store ${name}: ${calls} calls in ${tries} tries`);
    await time.run(flake.close());
  });
  await Promise.all(cases);
});

test('a store that does not keep what is written is refused', async () => {
  const finds = (found) => async () => ({ isWritten: false, found });
  for (const [name, broken] of [
    ['read', async () => ({ record: undefined, now: time.now() })],
    ['write', finds(undefined)],
    ['write', finds({ token: '0123456789abcdef', text: '' })],
    ['write', async () => ({ isWritten: true })],
  ]) {
    const store = faulty();
    let calls = 0;
    store.fault = () => calls++;
    store[name] = (...values) => {
      calls++;
      return broken(...values);
    };
    await assert.rejects(leased(store, { layout: two }), {
      code: /^ERR_SNOWFLAKE_(STORE|NO_SLOT)$/,
    });
    assert.ok(calls < 1000, `${calls} calls`);
  }
});

/** By the call that never returns: which it is, and what comes before it. */
const HANGS = {
  'a renewal': { is: ({ does }) => does === 'renew' },
  'the read of the namespace after a loss': {
    is: ({ name, of }) => name === 'read' && of === 'namespace',
    isTaken: true,
  },
  'the read of a bucket after a loss': {
    is: ({ name, of }) => name === 'read' && of === 'bucket',
    isTaken: true,
  },
  'the take of a slot': { is: ({ does }) => does === 'take', isTaken: true },
  'the read of the namespace once a slot was taken': {
    is: ({ name, of }, store) =>
      name === 'read' && of === 'namespace' && store.calls.at(-2)?.does === 'take',
    isTaken: true,
  },
  'the creation of a namespace': { is: ({ does }) => does === 'create', isLost: true },
  'the creation of a bucket': { is: ({ does }) => does === 'make', isLost: true },
  'the count of a bucket': { is: ({ does }) => does === 'count', isLost: true },
  'the clock of the store': { is: ({ name }) => name === 'now', isLost: true },
  'the release': { is: ({ does }) => does === 'release', isClosed: true },
  'the end of the connection': { is: ({ name }) => name === 'close', isClosed: true },
  'each call': { is: () => true, isClosed: true },
};

test('close() settles while a call hangs, and nothing is called after it', async () => {
  const closings = Object.entries(HANGS).map(async ([name, hang], n) => {
    const { is, isTaken, isLost, isClosed } = hang;
    let clock = 0;
    const store = faulty({ now: () => time.now() + clock });
    store.close = async () => {
      const call = { name: 'close' };
      store.calls.push(call);
      await store.fault?.(call);
    };
    for (const each of ['read', 'write']) if (isLost) withoutTime(store, each);
    const options = { datacenterId: n % 8, layout: n < 8 ? two : one, callTimeout: 60_000 };
    const flake = await leased(store, options);
    const hanging = [];
    store.fault = (call) =>
      is(call, store) ? new Promise((resolve) => hanging.push(resolve)) : undefined;
    if (isTaken) {
      clock = 5000;
      store.steal(flake.workerId);
    }
    if (isLost) store.lose();
    if (!isClosed) await until(() => hanging.length > 0);
    const start = time.passed;
    await time.run(flake.close());
    const ms = time.passed - start;
    assert.ok(ms < 4000, `${name}: ${ms} ms`);
    assert.equal(flake.lease.state, 'released');
    const { length } = store.calls;
    for (const resolve of hanging) resolve();
    return { name, store, length };
  });
  const closed = await Promise.all(closings);
  await time.advance(TTL);
  for (const { name, store, length } of closed) {
    assert.deepEqual(store.calls.slice(length), [], `after ${name}`);
  }
});

test('a subscriber may close the lease whose event it receives', async () => {
  for (const [event, cause] of [
    ['renewed', () => {}],
    ['failing', ({ store }) => (store.fault = () => Promise.reject(new Error('away')))],
    ['lost', ({ store, flake }) => store.steal(flake.workerId)],
    ['lost', ({ store }) => store.lose()],
  ]) {
    let clock = 0;
    const store = faulty({ now: () => time.now() + clock });
    const flake = await leased(store, { layout: two });
    const { owner } = flake.lease;
    const closed = new Promise((resolve) => {
      const listen = (lease) => {
        if (lease.owner !== owner) return;
        unsubscribe(`snowdrift:lease-${event}`, listen);
        resolve(flake.close());
      };
      subscribe(`snowdrift:lease-${event}`, listen);
    });
    clock = 5000;
    cause({ store, flake });
    await time.run(closed);
    assert.equal(flake.lease.state, 'released');
    assert.equal(store.count('take'), 1);
    const { length } = store.calls;
    await time.advance(TTL / 2);
    assert.equal(store.calls.length, length);
  }
});

test('close() abandons the calls under way, and the end of the process waits for it', async () => {
  const script = `
    const { SnowFlake } = require('../..');
    const { memory } = require('../../js/stores/memory.js');
    const inner = memory();
    let renews;
    const store = {
      ...inner,
      async write(key, record, ...rest) {
        const [, kind] = /\\n\\d+ (held|free) /.exec(record.text) ?? [];
        if (kind === 'held' && renews) return new Promise(() => renews());
        if (kind !== 'free') return inner.write(key, record, ...rest);
        await new Promise((resolve) => setTimeout(resolve, 300));
        const reply = await inner.write(key, record, ...rest);
        console.log('released');
        return reply;
      },
    };
    const options = { datacenterId: 1, ttl: 1000, callTimeout: 60_000 };
    SnowFlake.lease(store, options).then(async (flake) => {
      const alive = setInterval(() => {}, 1000);
      await new Promise((resolve) => { renews = resolve; });
      clearInterval(alive);
      flake.close();
      if (process.env.ENDED) process.kill(process.pid, 'SIGTERM');
    });`;
  const ends = async ([env, signal]) => {
    const start = performance.now();
    const ended = await runScript(script, { env });
    assert.deepEqual([ended.stdout, ended.signal], ['released\n', signal], ended.stderr);
    if (isStorms) assert.ok(performance.now() - start < 50_000, 'the call');
  };
  await Promise.all([ends([{}, null]), ends([{ ENDED: '1' }, 'SIGTERM'])]);
});

test('values that are no store, and wrong options, are refused', async () => {
  for (const store of [{}, [], () => {}, { read() {}, write() {}, list() {} }]) {
    const { message } = await rejects(leased(store), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /LeaseStore|must be a URL/);
  }
  const { message } = await rejects(leased('kafka://a'), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, / must be a URL of file:, postgres:.*'kafka:\/\/a'/);
  for (const [url, said] of [
    [`postgres://${'a'.repeat(254)}/app`, / names a host of 254 characters/],
    [`postgres://db/app?${'a'.repeat(32_768)}`, / the URL of a server has at most 32768$/],
    // The password is all up to the last @: the host would be `app`.
    ['postgres://app:1/2@db/app', / is not a valid URL.* is %40$/],
    ['redis://app:1?2@db/0', / is not a valid URL.* is %40$/],
  ]) {
    assert.match((await rejects(leased(url), 'ERR_SNOWFLAKE_CONFIG')).message, said);
  }
  for (const options of [
    { ttl: 999 },
    { callTimeout: 0 },
    { maxClockSkew: -1 },
    { waitForSlot: '5' },
    { workerId: 32 },
    { state: '/tmp' },
    { clock: Date.now },
    { datacenterId: 8 },
    { address: 'http://ids:8080' },
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
