'use strict';
// Clocks that step: the machine's, under the real addon, and those that applications pass in.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { isStorms } = require('../support/amount.js');
const { SnowFlake, countDuplicates, layouts, refuses, standing } = require('../support/support.js');
const { missing, underShiftedClock } = require('../support/machine.js');

const shifted = { skip: missing() };

const NOW = Date.UTC(2026, 5, 1);
const node = { datacenterId: 1, workerId: 1 };

test(
  'IDs drawn one by one and in batches do not repeat when the clock rolls back by 5 s or 1 ms, or jumps by 1 h, or both',
  shifted,
  async () => {
    const all = await underShiftedClock(`
      const DRAWS = {
        nextId: [(flake) => [flake.nextId()], 1],
        nextIdString: [(flake) => [flake.nextIdString()], 1],
        nextIds: [(flake) => [...flake.nextIds(50)], 50],
        nextIdStrings: [(flake) => flake.nextIdStrings(50), 50],
      };
      const all = {};
      let workerId = 0;
      for (const [kind, [draw, size]] of Object.entries(DRAWS)) {
        shift(0);
        const flake = new SnowFlake({ datacenterId: 1, workerId: workerId++ });
        const ids = [];
        const load = async () => { for (let i = 0; i < 1500 / size; i++) ids.push(...draw(flake)); await turn(); };
        await load();
        shift(-5000); await load();
        shift(-5001); await load();
        shift(3600000); await load();
        // So far apart that the counter has a value for each, however fast they are.
        for (let ms = 3600000; ms < 3601000; ms += 100) {
          shift(ms); await load();
          shift(ms - 40); await load();
        }
        // In the middle of a synchronous burst, too.
        shift(7200000);
        for (let i = 0; i < 400; i++) {
          if (i === 100) shift(7200000 - 2000);
          if (i === 300) shift(7200000);
          ids.push(...draw(flake));
        }
        const counters = new Set(ids.map((id) => flake.parse(id).clockBack)).size;
        const rollbacks = flake.stats().clockRollbacks;
        all[kind] = { duplicates: countDuplicates(ids), total: ids.length, rollbacks, counters };
      }
      return all;`);
    assert.equal(Object.keys(all).length, 4);
    for (const [kind, { duplicates, total, rollbacks, counters }] of Object.entries(all)) {
      assert.equal(duplicates, 0, kind);
      assert.ok(total >= 35_000, `${total} IDs of ${kind}`);
      // A process that is stopped for as long as its clock rolls back notices nothing.
      if (isStorms) {
        assert.ok(rollbacks >= 3, `${rollbacks} rollbacks noticed by ${kind}`);
        assert.ok(counters > 1, `other counter values were used by ${kind}`);
      }
    }
  },
);

test(
  'each clock rollback is one warning with its size and the counter value',
  shifted,
  async () => {
    const { warnings, limits } = await underShiftedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    const limits = [];
    /** Draws before and after a rollback. What passes in between makes it smaller. */
    const roll = async (draw, from, to) => {
      const start = performance.now();
      draw();
      shift(to);
      draw();
      limits.push([from - to - (performance.now() - start) - 1, from - to]);
      for (let i = 0; i < 2000; i++) { draw(); if (i % 100 === 0) await turn(); }
    };
    await roll(flake.nextId, 0, -500_000);
    await roll(flake.nextIdString, -500_000, -900_000);
    await turn();
    return { warnings, limits };`);
    assert.equal(warnings.length, 2);
    for (const [i, { name, code, message }] of warnings.entries()) {
      assert.deepEqual([name, code], ['SnowFlakeWarning', 'SNOWFLAKE_CLOCK_BACK']);
      const [, back, counter] = message.match(
        /by (\d+) ms; IDs continue under clock-back counter (\d)/,
      );
      const [least, most] = limits[i];
      assert.ok(least <= back && back <= most, `${message} It was ${least} to ${most} ms`);
      assert.equal(Number(counter), i + 1);
    }
  },
);

test('the warning of a clock rollback says whether IDs stop', shifted, async () => {
  const warned = await underShiftedClock(`
    const attempt = (flake) => { try { flake.nextId(); } catch {} };
    const warned = {};
    for (const [workerId, clockBack] of ['throw', 'wait', 'counter'].entries()) {
      shift(0);
      const flake = new SnowFlake({ datacenterId: 1, workerId, clockBack, maxWait: 0 });
      // One more than there are values of the counter.
      for (let n = 0; n <= 4; n++) { shift(-500_000 * n); attempt(flake); await turn(); }
      warned[clockBack] = warnings.splice(0).map(({ message }) => message.split('; ')[1]);
    }
    return warned;`);
  const stopped = 'IDs stop until it has caught up.';
  const continued = (n) => `IDs continue under clock-back counter ${n}.`;
  assert.deepEqual(warned, {
    throw: [stopped],
    wait: [stopped],
    counter: [continued(1), continued(2), continued(3), stopped],
  });
});

test('a clock rollback in a worker thread emits a warning there', shifted, async () => {
  const warned = await underShiftedClock(`
    const { Worker } = require('node:worker_threads');
    new SnowFlake({ datacenterId: 1, workerId: 1 }).nextId();
    shift(-500_000);
    const worker = new Worker(\`
      process.on('warning', ({ code }) => require('node:worker_threads').parentPort.postMessage(code));
      const { SnowFlake } = require(\${JSON.stringify(require.resolve('../..'))});
      new SnowFlake({ datacenterId: 1, workerId: 1 }).nextIds(3);\`, { eval: true });
    return new Promise((resolve) => worker.on('message', resolve).on('exit', () => resolve('none')));`);
  assert.equal(warned, 'SNOWFLAKE_CLOCK_BACK');
});

test('200 clock rollbacks do not flood the log', shifted, async () => {
  const { warnings, rollbacks, seconds } = await underShiftedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    const start = performance.now();
    for (let i = 0; i < 200; i++) {
      shift(i * 100_000); flake.nextId(); await turn();
      shift(i * 100_000 - 50_000); flake.nextId(); await turn();
    }
    await turn();
    const seconds = (performance.now() - start) / 1000;
    return { warnings: warnings.length, rollbacks: flake.stats().clockRollbacks, seconds };`);
  assert.equal(rollbacks, 200);
  // Ten at once, then one every ten seconds.
  assert.ok(warnings >= 10 && warnings <= 12 + seconds / 10, `${warnings} warnings`);
});

test(
  "with 'wait' a small clock rollback is waited for, a large one is refused with retryAfterMs",
  shifted,
  async () => {
    const { rounds, code, limits, retryAfterMs, rising, counter } = await underShiftedClock(`
    // It is loaded at its first use, which takes ms.
    performance.now();
    const rounds = [];
    const within = (start, ms) => [ms - (performance.now() - start) - 1, ms + 1];
    let answer;
    // Of a late machine the waits and refusals that take long mean nothing.
    for (let workerId = 0; workerId < 32; workerId++) {
      shift(0);
      const flake = new SnowFlake({ datacenterId: 1, workerId, clockBack: 'wait', maxWait: 200 });
      const from = performance.now();
      const ids = flake.nextIds(10);
      shift(-20);
      const start = performance.now();
      const waited = flake.nextId();
      const end = performance.now();
      shift(-500_000);
      const refused = performance.now();
      const error = thrown(() => flake.nextId());
      const limits = within(start, 500_000 - 20);
      rounds.push({ ms: end - start, sinceDraw: end - from, refusedIn: performance.now() - refused });
      shift(0);
      const after = flake.nextId();
      answer = { rounds, limits, code: error.code, retryAfterMs: error.retryAfterMs,
        rising: waited > ids[9] && after > waited, counter: flake.parse(after).clockBack };
      if (rounds.at(-1).ms < 150 && rounds.at(-1).refusedIn < 100) break;
    }
    return answer;`);
    const { ms, refusedIn } = rounds.at(-1);
    for (const { sinceDraw } of rounds) assert.ok(sinceDraw > 18, `waited ${sinceDraw} ms`);
    if (isStorms) {
      assert.ok(ms < 150, `waited ${ms} ms`);
      assert.ok(refusedIn < 100, `refused in ${refusedIn} ms`);
    }
    assert.equal(code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    const [least, most] = limits;
    assert.ok(least <= retryAfterMs && retryAfterMs <= most, `${retryAfterMs}: ${limits}`);
    assert.deepEqual([rising, counter], [true, 0]);
  },
);

for (const [name, options, shifts, end, counters] of [
  ["with 'throw' every clock rollback is refused", { clockBack: 'throw' }, [0], -500_000, [0, 0]],
  [
    'a fourth clock rollback at once is refused on the default layout',
    {},
    [0, -100_000, -200_000, -300_000],
    -400_000,
    [0, 1, 2, 3, 0],
  ],
]) {
  test(`${name}, then IDs continue`, shifted, async () => {
    const answer = await underShiftedClock(`
      const flake = new SnowFlake({ datacenterId: 1, workerId: 1, ...${JSON.stringify(options)} });
      const ids = [];
      let start;
      for (const ms of [${shifts}]) {
        shift(ms);
        start = performance.now();
        ids.push(flake.nextId());
      }
      shift(${end});
      const { code, retryAfterMs } = thrown(() => flake.nextIdString());
      const since = performance.now() - start;
      shift(1000);
      ids.push(flake.nextId());
      const rises = ids.at(-1) > ids[0];
      return { code, retryAfterMs, since, rises, counters: ids.map((id) => flake.parse(id).clockBack) };`);
    const { retryAfterMs, since, ...rest } = answer;
    assert.deepEqual(rest, { code: 'ERR_SNOWFLAKE_CLOCK_BACK', rises: true, counters });
    const most = shifts.at(-1) - end + 1;
    assert.ok(most - since - 2 <= retryAfterMs && retryAfterMs <= most, `${retryAfterMs}: ${most}`);
  });
}

test('an own clock is read for every ID, and has a state of its own', () => {
  const clock = standing(NOW);
  const flake = new SnowFlake({ ...node, clock });
  for (const now of [NOW, NOW + 5, NOW + 1000]) {
    clock.now = now;
    assert.equal(flake.parse(flake.nextId()).timestamp, now);
    assert.equal(flake.parse(flake.nextIdString()).timestamp, now);
    assert.equal(flake.parse(flake.nextIds(2)[1]).timestamp, now);
  }
  assert.equal(flake.stats().clock, 'custom');
  assert.equal(flake.stats().issued, 12);
  const other = new SnowFlake({ ...node, clock });
  assert.equal(other.parse(other.nextId()).sequence, 0);
});

test('calls wait for a clock that stands still within maxWait, and are then refused', async () => {
  const flake = new SnowFlake({ ...node, clock: standing(NOW), maxWait: 20 });
  assert.equal(countDuplicates([...flake.nextIds(4096)]), 0);
  const { retryAfterMs } = refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_EXHAUSTED');
  assert.equal(retryAfterMs, 1);
  const { waits, waitedMs } = flake.stats();
  assert.deepEqual([waits, waitedMs], [20, 20]);
});

test('nextIdAsync() waits for a clock that stands still until it moves', async () => {
  const clock = standing(NOW);
  const flake = new SnowFlake({ ...node, clock });
  flake.nextIds(4096);
  const waiting = flake.nextIdAsync();
  setImmediate(() => {
    clock.now += 1;
  });
  assert.equal(flake.parse(await waiting).timestamp, NOW + 1);
});

test('a clock before the epoch or past the last tick is refused, at the exact ms', () => {
  const { epoch } = layouts.node;
  const clock = standing(epoch - 1);
  const flake = new SnowFlake({ ...node, clock, maxWait: 0 });
  assert.equal(refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_BEFORE_EPOCH').retryAfterMs, 1);
  clock.now = epoch;
  assert.equal(flake.parse(flake.nextId()).timestamp, epoch);
  const end = flake.stats().endOfTime.getTime();
  clock.now = end - 1;
  assert.ok(flake.nextId() > 0n);
  clock.now = end;
  const { message, retryAfterMs } = refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_TIME_ENDED');
  assert.equal(retryAfterMs, undefined);
  assert.match(message, /2089-10-07T07:47:35\.552Z/);
});
