'use strict';
// SnowFlake.lease with a store: what an application sees when slots are taken, renewed and lost, and when the store
// fails. The store is in memory, with faults put between, and time passes when a test says so.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { once } = require('node:events');
const fs = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { isStorms } = require('../support/amount.js');
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

test('a lease says where its slot is, and how long it may issue', async () => {
  time.begin(100);
  const flake = await leased(faulty(), { layout: one });
  const { ceiling, expires, state, floor, slot, store } = flake.lease;
  assert.deepEqual([state, floor, store], ['held', null, 'faulty:']);
  assert.deepEqual(slot, { datacenterId: 1, workerId: 0 });
  for (const end of [ceiling, expires]) assert.equal(end, time.now() + TTL);
  await until(() => flake.lease.renewals >= 3);
  assert.ok(flake.lease.ceiling > ceiling && flake.lease.expires > expires);
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

test('a slot that was taken over, and no other can be opened: IDs stop until one can, and workerId stays', async () => {
  time.begin(TTL - LEFT);
  let clock = 0;
  const store = faulty({ now: () => time.now() + clock });
  // What other holders record is bounded by ttl + maxClockSkew.
  const flake = await leased(store, { layout: two, maxWait: 3000, maxClockSkew: 600_000 });
  const id = await soon(flake.nextId);
  const had = flake.workerId;
  // The only slot that is free is of a node that this process has open otherwise.
  const other = new SnowFlake({ layout: two, datacenterId: 1, workerId: 1 - had });
  open.push(other);
  clock = 5000;
  store.steal(had);
  await until(() => flake.lease.state === 'lost' && flake.lease.failure !== undefined);
  assert.deepEqual(
    [flake.workerId, flake.lease.slot.workerId, flake.lease.lost],
    [had, had, 'taken'],
  );
  const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.match(
    message,
    new RegExp(
      `workerId ${had} of faulty: was taken over by another process.*waits for a free slot.*by itself`,
    ),
  );
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

test('a lost namespace: one warning, and IDs continue above what was issued', async () => {
  time.begin(TTL - LEFT);
  const store = faulty();
  const flake = await leased(store, { layout: two, maxClockSkew: 50 });
  const last = await soon(flake.nextId);
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  const start = time.now();
  store.lose();
  await until(() => flake.lease.state === 'held' && flake.lease.floor > start);
  let code;
  try {
    flake.nextId();
  } catch (error) {
    ({ code } = error);
  }
  // A machine may be so late that the clock has passed the floor.
  if (Date.now() <= flake.lease.floor) assert.equal(code, 'ERR_SNOWFLAKE_WINDOW');
  await untilReal(() => Date.now() > flake.lease.floor);
  const id = await soon(flake.nextId);
  assert.ok(id > last && flake.parse(id).timestamp > flake.lease.floor);
  process.off('warning', note);
  const [lost, ...more] = warnings.filter(({ code }) => code === 'SNOWFLAKE_NAMESPACE_LOST');
  assert.deepEqual(more, []);
  assert.match(
    lost.message,
    /workerId \d of faulty: is no longer recorded, or with an older ceiling: a table.*a backup was restored/,
  );
  assert.match(lost.detail, /may have issued the same IDs.*snowdrift [a-z ]*recover URL/);
  const [, ms] = /stop for up to (\d+) ms/.exec(lost.detail);
  assert.equal(Number(ms), TTL + 3 * 50, 'its clock may be behind that of the store by 50 ms');
});

test('a store that loses each slot that is taken is refused', async () => {
  const store = faulty();
  await leased(store, { maxClockSkew: 0 });
  store.fault = ({ does }) => does === 'take' && store.lose();
  const { message } = await rejects(leased(store, { maxClockSkew: 0 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /faulty: failed to acquire or renew a slot: its records keep changing/);
});

test('another layout or epoch in the namespace is refused', async () => {
  const store = memory();
  await leased(store);
  const { message } = await rejects(leased(store, { epoch: 0 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(
    message,
    /memory:default is for IDs of another layout or epoch: 41\/3\/5\/2\/12 .* from 2020-01-31T16:00.*, not .* from 1970-01-01.*\. First stop all processes .*; then use another namespace/,
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

test('a lease whose floor is half an hour ahead waits for no ID', async () => {
  const stored = new Map();
  await leased(memory({ stored }));
  const floor = Date.now() - layouts.node.epoch + 1_800_000;
  const record = stored.get('default/namespace');
  stored.set('default/namespace', record.replace(/^floor .*$/m, `floor ${floor}`));
  const start = time.passed;
  const flake = await leased(memory({ stored }));
  assert.ok(time.passed - start < 100, `${time.passed - start} ms`);
  refuses(flake.nextId, 'ERR_SNOWFLAKE_WINDOW');
});

test('a burst may run maxAhead from the first ID on', async () => {
  const layout = { ...layouts.node, sequenceBits: 1 };
  const flake = await leased(memory(), { layout, maxAhead: 60_000, ttl: 1000 });
  // Two a tick: 4,000 ticks of 1 ms, of which the ttl has 1,000. The rest is for a machine that is late.
  assert.equal(countDuplicates([...flake.nextIds(8000)]), 0);
});

test('a clock that jumped ahead is refused at the draw, with what both clocks show', {
  skip: noMachine(),
}, async () => {
  const { first, refused, name, skew, again } = await underShiftedClock(`
    const { memory } = require('snowdrift/lease/memory');
    // Its clock does not follow the machine's.
    const start = Date.now() - performance.now();
    const store = memory({ now: () => start + performance.now() });
    const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
    const flake = await SnowFlake.lease(store, { datacenterId: 1, ttl: 1000, maxClockSkew: 500 });
    /** Until a draw has such a code. */
    const until = async (code) => {
      for (const end = performance.now() + 60_000; performance.now() < end; await pause()) {
        const refusal = thrown(flake.nextId);
        if (refusal?.code === code) return refusal;
      }
      throw new Error('not within a minute: ' + code);
    };
    await until(undefined);
    shift(9 * 365 * 86_400_000);
    const first = thrown(flake.nextId).code;
    const { code: refused, message: name } = await until('ERR_SNOWFLAKE_CLOCK_SKEW');
    const skew = flake.lease.clockSkew;
    shift(0);
    return { first, refused, name, skew, again: await until(undefined) };`);
  assert.equal(first, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  assert.equal(refused, 'ERR_SNOWFLAKE_CLOCK_SKEW');
  const [, mine, theirs] = /clock shows (\S+Z), and the clock of memory:default shows (\S+Z):/.exec(
    name,
  );
  const apart = Date.parse(mine) - Date.parse(theirs);
  assert.ok(Math.abs(apart - skew) < 2 && apart > 9 * 364 * 86_400_000, name);
  assert.equal(again, undefined);
});

test('a lease whose floor is maxAhead ahead of the clock issues at once', async () => {
  // By the machine's time. The first ID lies in the last tick that it may take.
  time.end();
  const layout = { ...layouts.uid, timestampBits: 32, workerBits: 0, sequenceBits: 4 };
  const ahead = { layout, epoch: 1580486410000, datacenterId: 0, ttl: 60_000, maxAhead: 5500 };
  const flake = await leased(memory(), { ...ahead, scope: 'host', maxWait: 0 });
  const { timestamp } = flake.parse(flake.nextId());
  assert.ok(timestamp > Date.now() && timestamp <= Date.now() + ahead.maxAhead, `${timestamp}`);
});

test('slots whose nodes this process has open otherwise are skipped; with no other, the error says so', async () => {
  const store = faulty();
  const other = new SnowFlake({ layout: two, datacenterId: 1, workerId: 0 });
  open.push(other);
  assert.equal((await leased(store, { layout: two })).workerId, 1);
  assert.equal(store.slots.length, 1);
  // In another namespace both slots are free.
  await rejects(leased(memory(), { layout: two }), 'ERR_SNOWFLAKE_CONFLICT');
  other.close();
  assert.equal((await leased(store, { layout: two })).workerId, 0);
});

test('a slot whose record was written without a reply is free when lease() rejects', async () => {
  const store = faulty();
  store.late = ({ does }) => does === 'take' && new Promise(() => {});
  await rejects(leased(store, { layout: one, callTimeout: 100 }), 'ERR_SNOWFLAKE_STORE');
  assert.deepEqual([store.slots[0].kind, store.count('take')], ['free', 1]);
});

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

test('a record that no holder writes is named, and left as it is', async () => {
  const stored = new Map();
  const store = memory({ stored });
  await leased(store, { layout: one });
  const bucket = 'default/1/0';
  const token = '0123456789abcdef';
  const foreign = /^memory:default has records of another format: .*the key (1\/0|namespace)\b/;
  for (const [key, value, code, said] of [
    [
      bucket,
      stored.get(bucket).replace(/\n.*/s, '\n0 held\0'),
      'ERR_SNOWFLAKE_NO_SLOT',
      /all slots of datacenterId 1 in memory:default are held or cannot be used \(the record of workerId 0 is damaged/,
    ],
    [bucket, `${token} snowdrift2 bucket`, 'ERR_SNOWFLAKE_STORE', foreign],
    ['default/namespace', `${token} ${'x '.repeat(1 << 20)}`, 'ERR_SNOWFLAKE_STORE', foreign],
  ]) {
    stored.set(key, value);
    assert.match((await rejects(leased(store, { layout: one }), code)).message, said);
    assert.equal(stored.get(key), value);
  }
});

test('a bucket that cannot be read is named, and keeps nobody from the other one', async () => {
  const options = {
    layout: { ...layouts.node, datacenterBits: 0, workerBits: 6 },
    datacenterId: 0,
  };
  const store = faulty();
  const inDamaged = await leased(store, { ...options, workerId: 3 });
  for (const damage of [
    'of another program',
    '0123456789abcdef snowdrift2 bucket of a newer version',
  ]) {
    store.stored.set('default/0/0', damage);
    for (let n = 0; n < 8; n++) assert.ok((await leased(store, options)).workerId >= 32);
    const claim = leased(store, { ...options, workerId: 4 });
    const { message } = await rejects(claim, 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /records of another format: .*the key 0\/0/);
  }
  // Its holder knows no more what the store says of it.
  await until(() => inDamaged.lease.state === 'lost');
  await until(() => /the key 0\/0/.test(inDamaged.lease.failure));
});

const noHost = process.platform !== 'linux' && 'tried on Linux, with its memory file system';

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

test('a call that is about to be made when the lease is closed is not made', async () => {
  const store = faulty({ now: time.now });
  const flake = await leased(store, { layout: two });
  const { owner } = flake.lease;
  const closed = new Promise((resolve) => {
    const listen = (lease) => {
      if (lease.owner !== owner) return;
      unsubscribe('snowdrift:lease-lost', listen);
      // The search for another slot would wait for this.
      store.fault = () => new Promise(() => {});
      const { length } = store.calls;
      resolve(flake.close().then(() => store.calls.slice(length)));
    };
    subscribe('snowdrift:lease-lost', listen);
  });
  store.steal(flake.workerId);
  assert.deepEqual(await time.run(closed), []);
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
