'use strict';
// CachedSnowFlake: UidGenerator's cached generator, with its known faults mended.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');

const { isQuick } = require('../support/amount.js');
const { removeDirectory } = require('../support/own-directory.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { missing, underShiftedClock } = require('../support/machine.js');
const {
  CachedSnowFlake,
  SnowFlake,
  countDuplicates,
  entry,
  layouts,
  refuses,
  rejects,
  runScript,
  slow,
  soon,
  wide,
} = require('../support/support.js');
const { limitWait } = require('../support/limit-wait.js');
const { memory } = require('../../js/stores/memory.js');
const { faulty } = require('../support/lease/faulty.js');

/** 16 IDs in a tick that no test outlives. */
const scarce = { ...slow, sequenceBits: 4 };
const DAY = 86_400_000;

/** Nodes of this test alone, since a process remembers them all. */
let workerId = 0;
const own = () => ({ datacenterId: 6, workerId: workerId++ });

test('every way to draw gives IDs of the node that rise and do not repeat', async () => {
  const node = own();
  // No ID grows too old, however late this process runs.
  const flake = new CachedSnowFlake({ ...node, maxAge: 60_000 });
  const { nextId, nextIdString } = flake;
  const ids = [nextId(), BigInt(nextIdString()), ...flake.nextIds(5000)];
  for (let i = 0; i < 20_000; i++) ids.push(i % 2 ? nextId() : BigInt(nextIdString()));
  ids.push(...flake.nextIdStrings(500).map(BigInt));
  await undefined;
  ids.push(nextId(), await flake.nextIdAsync());
  await new Promise(setImmediate);
  const before = Date.now();
  ids.push(nextId());
  const after = Date.now();
  assert.equal(countDuplicates(ids), 0);
  assert.ok(ids.every((id, i) => i === 0 || id > ids[i - 1]));
  const { datacenterId, workerId: worker, timestamp } = flake.parse(ids.at(-1));
  assert.deepEqual({ datacenterId, workerId: worker }, node);
  assert.ok(before - 1001 <= timestamp && timestamp <= after, `${timestamp - before} ms`);
  assert.equal(flake.stats().issued, ids.length);
});

test('4 worker threads draw millions of IDs, and not one twice', async () => {
  const COUNT = isQuick ? 500_000 : 5_000_000;
  const draw = `
    const { workerData: { options, buffer, count } } = require('node:worker_threads');
    const { CachedSnowFlake } = require(${JSON.stringify(entry)});
    const { nextId } = new CachedSnowFlake(options);
    const ids = new BigUint64Array(buffer);
    // Turns as an application has them, large and small.
    let i = 0;
    (function turn() {
      const end = Math.min(count, i + (i % 3 ? 70_001 : 13));
      while (i < end) ids[i++] = nextId();
      if (i < count) setImmediate(turn);
    })();`;
  const options = { datacenterId: 1, workerId: 1, layout: wide, boostPower: 0, maxWait: 1000 };
  const drawn = Array.from({ length: 4 }, () => {
    const buffer = new SharedArrayBuffer(8 * COUNT);
    const worker = new Worker(draw, {
      eval: true,
      workerData: { options, buffer, count: COUNT },
    });
    return limitWait(once(worker, 'exit'), 'the end of a thread').then(
      () => new BigUint64Array(buffer),
    );
  });
  const ids = await Promise.all(drawn);
  assert.ok(ids.every((one) => one.length === COUNT && one.at(-1) > 0n));
  assert.equal(countDuplicatesOf(ids), 0);
});

test('a SnowFlake of the same node draws none of what is in the ring', () => {
  const node = own();
  const cached = new CachedSnowFlake(node);
  const plain = new SnowFlake(node);
  const ids = [];
  for (let i = 0; i < 20_000; i++) ids.push(cached.nextId(), plain.nextId());
  assert.equal(countDuplicates(ids), 0);
});

test('instances of a node share one ring, and must agree on it', (t) => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-cached-'));
  t.after(() => removeDirectory(state));
  const node = { ...own(), state };
  const first = new CachedSnowFlake(node);
  const second = new CachedSnowFlake(node);
  assert.equal(first.stats().ring.size, 32_768);
  first.nextIds(10_000);
  assert.equal(second.stats().issued, 10_000);
  const { message } = refuses(
    () => new CachedSnowFlake({ ...node, boostPower: 2 }),
    'ERR_SNOWFLAKE_CONFLICT',
  );
  assert.match(
    message,
    /boostPower 3, paddingFactor 50, scheduleIntervalMs 0, maxAge of 1000 ticks/,
  );
  refuses(() => new CachedSnowFlake({ ...node, maxAhead: 5 }), 'ERR_SNOWFLAKE_CONFLICT');
  for (const flake of [first, second]) flake.close();
});

test('the ring issues no ID of the day before', { skip: missing() }, async () => {
  const { ages, duplicates, dropped } = await underShiftedClock(`
    const { CachedSnowFlake } = require(${JSON.stringify(entry)});
    const flake = new CachedSnowFlake({ datacenterId: 1, workerId: 1 });
    const ids = [...flake.nextIds(100)];
    // What is left of a block that a turn began is not kept overnight, either.
    for (let i = 0; i < 300; i++) ids.push(flake.nextId());
    await turn();
    shift(${DAY});
    const ages = [];
    for (const draw of [() => flake.nextId(), () => flake.nextIdString(), () => flake.nextIds(1)[0]]) {
      const before = Date.now();
      const id = BigInt(draw());
      const after = Date.now();
      ids.push(id);
      const { timestamp } = flake.parse(id);
      ages.push({ before: before - timestamp, after: after - timestamp });
      await turn();
    }
    return { ages, duplicates: countDuplicates(ids), dropped: flake.stats().ring.dropped };`);
  // No older when it was called, and not of the future when it returned.
  for (const { before, after } of ages) assert.ok(before <= 1000 && after >= 0, `${before} ms`);
  assert.equal(duplicates, 0);
  assert.ok(dropped > 0);
});

test('an empty ring: thrown, waited for, or an ID of the application’s', async () => {
  const thrown = new CachedSnowFlake({ ...own(), layout: scarce, onRejectedTake: 'throw' });
  assert.equal(thrown.nextIds(16).length, 16);
  const { retryAfterMs } = refuses(thrown.nextId, 'ERR_SNOWFLAKE_EXHAUSTED');
  assert.ok(retryAfterMs > 0 && retryAfterMs <= DAY);
  refuses(thrown.nextIdString, 'ERR_SNOWFLAKE_EXHAUSTED');
  assert.ok(thrown.stats().ring.rejectedTakes >= 2);

  const layout = { ...layouts.node, tickMs: 20, sequenceBits: 1 };
  const waits = new CachedSnowFlake({ ...own(), layout, maxWait: 1000 });
  assert.equal(countDuplicates(Array.from({ length: 9 }, waits.nextId)), 0);

  const refusals = [];
  let instead = 0n;
  const replaced = new CachedSnowFlake({
    ...own(),
    layout: scarce,
    onRejectedTake: (refusal) => {
      refusals.push(refusal.code);
      return instead;
    },
  });
  replaced.nextIds(16);
  instead = 9_000_000_000_010_001n;
  assert.equal(replaced.nextId(), instead);
  assert.equal(replaced.nextIdString(), '9000000000010001');
  instead = '7';
  assert.deepEqual([...replaced.nextIds(2)], [7n, 7n]);
  assert.equal(replaced.nextIdString(), '7');
  assert.deepEqual(new Set(refusals), new Set(['ERR_SNOWFLAKE_EXHAUSTED']));
  instead = 7.5;
  refuses(replaced.nextId, 'ERR_SNOWFLAKE_INVALID_ID');
  instead = 2n ** 63n;
  refuses(replaced.nextId, 'ERR_SNOWFLAKE_INVALID_ID');
  for (const flake of [thrown, waits, replaced]) flake.close();
});

test('a scheduled padding of a full ring calls onRejectedPut', async () => {
  // The listener keeps nothing alive, so something else does.
  const alive = setInterval(() => {}, 1000);
  const called = new Promise((resolve) => {
    const onRejectedPut = resolve;
    new CachedSnowFlake({
      ...own(),
      layout: scarce,
      boostPower: 0,
      scheduleIntervalMs: 20,
      onRejectedPut,
    });
  });
  const told = await limitWait(called, 'a call of onRejectedPut');
  clearInterval(alive);
  assert.deepEqual([told.ring.size, told.ring.left], [16, 16]);
  assert.ok(told.ring.rejectedPuts >= 1);
});

test('a schedule keeps no process alive, nor does the ring', async () => {
  const { stdout, code } = await runScript(`
    const { CachedSnowFlake } = require('../..');
    const flake = new CachedSnowFlake({
      datacenterId: 1, workerId: 1, scheduleIntervalMs: 10, onRejectedPut: () => {},
    });
    console.log(typeof flake.nextId());`);
  assert.deepEqual([stdout, code], ['bigint\n', 0]);
});

test('a lease has a new ring for the slot that follows a lost one', async () => {
  let clock = 0;
  const store = faulty({ now: () => Date.now() + clock });
  const flake = await CachedSnowFlake.lease(store, { datacenterId: 5, ttl: 1000 });
  assert.ok(flake instanceof CachedSnowFlake);
  // A lease keeps nothing alive.
  const alive = setInterval(() => {}, 1000);
  const ids = [...(await soon(() => flake.nextIds(1000)))];
  const lost = flake.workerId;
  const warned = new Promise((resolve) => {
    process.on('warning', function listen({ code }) {
      if (code !== 'SNOWFLAKE_SLOT_LOST') return;
      process.off('warning', listen);
      resolve();
    });
  });
  clock = 5000;
  store.steal(lost);
  await limitWait(warned, 'SNOWFLAKE_SLOT_LOST');
  ids.push(...(await soon(() => flake.nextIds(1000))));
  clearInterval(alive);
  assert.notEqual(flake.workerId, lost);
  assert.deepEqual(
    new Set(ids.map((id) => flake.parse(id).workerId)),
    new Set([lost, flake.workerId]),
  );
  assert.equal(countDuplicates(ids), 0);
  flake.close();
  refuses(flake.nextId, 'ERR_SNOWFLAKE_CLOSED');
});

test('wrong options are refused by name', async () => {
  const bad = {
    boostPower: [-1, 25, 1.5, '3'],
    paddingFactor: [-1, 101, null],
    scheduleIntervalMs: [-1, DAY + 1],
    maxAge: [-1, Number.POSITIVE_INFINITY],
    onRejectedPut: ['throw', 1],
    onRejectedTake: ['discard', {}],
    clock: [Date.now],
    unknown: [1],
  };
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      const options = { datacenterId: 1, workerId: 1, [name]: value };
      const { message } = refuses(() => new CachedSnowFlake(options), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, new RegExp(name));
    }
  }
  const { message } = refuses(
    () => new CachedSnowFlake({ ...own(), layout: slow }),
    'ERR_SNOWFLAKE_CONFIG',
  );
  assert.match(
    message,
    /a ring of 34359738368 IDs.*choose a smaller boostPower, or fewer sequenceBits/,
  );
  await rejects(CachedSnowFlake.lease(memory(), { boostPower: 99 }), 'ERR_SNOWFLAKE_CONFIG');
  await rejects(CachedSnowFlake.lease(memory(), { clock: Date.now }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => new SnowFlake({ ...own(), boostPower: 3 }), 'ERR_SNOWFLAKE_CONFIG');
});
