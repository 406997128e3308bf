'use strict';
// Clocks that step: the machine's, under the real addon, and those that applications pass in.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { SnowFlake, countDuplicates, layouts, refuses, standing } = require('./support.js');
const { missing, underSteppedClock } = require('./machine.js');

const stepped = { skip: missing() };

const NOW = Date.UTC(2026, 5, 1);
const node = { datacenterId: 1, workerId: 1 };

const DRAWS = {
  BigInt: ['() => [flake.nextId()]', 1],
  string: ['() => [flake.nextIdString()]', 1],
  batch: ['() => [...flake.nextIds(50)]', 50],
  'string batch': ['() => flake.nextIdStrings(50)', 50],
};

for (const [kind, [draw, size]] of Object.entries(DRAWS)) {
  test(
    `${kind} IDs do not repeat when the clock steps by -5 s, -1 ms, +1 h, and back and forth`,
    stepped,
    async () => {
      const { duplicates, total, steps, counters } = await underSteppedClock(`
      const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
      const draw = ${draw};
      const ids = [];
      const load = async () => { for (let i = 0; i < ${1500 / size}; i++) ids.push(...draw()); await turn(); };
      await load();
      step(-5000); await load();
      step(-5001); await load();
      step(3600000); await load();
      for (let i = 0; i < 20; i++) { step(3600000 - (i % 2 ? 0 : 40)); await load(); }
      // In the middle of a synchronous burst, too.
      step(7200000);
      for (let i = 0; i < 400; i++) {
        if (i === 100) step(7200000 - 2000);
        if (i === 300) step(7200000);
        ids.push(...draw());
      }
      const counters = [...new Set(ids.map((id) => flake.parse(id).clockBack))].sort();
      return { duplicates: countDuplicates(ids), total: ids.length, steps: flake.stats().clockStepsBack, counters };`);
      assert.equal(duplicates, 0);
      assert.ok(total >= 35_000, `${total} IDs`);
      assert.ok(steps >= 3, `${steps} steps noticed`);
      assert.ok(counters.length > 1, 'other counter values were used');
    },
  );
}

test(
  '4 threads of one node do not repeat an ID while the clock steps under them',
  stepped,
  async () => {
    const { duplicates, total, steps } = await underSteppedClock(`
    const { Worker } = require('node:worker_threads');
    const draw = \`
      const { SnowFlake } = require(\${JSON.stringify(require.resolve('..'))});
      const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
      const ids = [];
      for (let i = 0; i < 60000; i++) ids.push(i % 2 ? flake.nextId() : BigInt(flake.nextIdString()));
      require('node:worker_threads').parentPort.postMessage(ids);\`;
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    const all = [];
    let left = 4;
    for (let i = 0; i < 4; i++) {
      new Worker(draw, { eval: true }).on('message', (ids) => { all.push(...ids); left--; });
    }
    for (let i = 0; left > 0; i++) {
      step(i % 3 === 0 ? -30 : 0);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { duplicates: countDuplicates(all), total: all.length, steps: flake.stats().clockStepsBack };`);
    assert.equal(duplicates, 0);
    assert.equal(total, 240_000);
    assert.ok(steps > 0);
  },
);

test('each step is one warning that tells how far and which counter value', stepped, async () => {
  const warnings = await underSteppedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    flake.nextId();
    step(-5000);
    for (let i = 0; i < 2000; i++) { flake.nextId(); if (i % 100 === 0) await turn(); }
    step(-9000);
    for (let i = 0; i < 2000; i++) { flake.nextIdString(); if (i % 100 === 0) await turn(); }
    await turn();
    return warnings;`);
  assert.equal(warnings.length, 2);
  for (const [i, { name, code, message }] of warnings.entries()) {
    assert.deepEqual([name, code], ['SnowFlakeWarning', 'SNOWFLAKE_CLOCK_BACK']);
    const [, back, counter] = message.match(/by (\d+) ms; IDs go on under clock-back counter (\d)/);
    assert.ok(Math.abs(back - [5000, 4000][i]) < 500, message);
    assert.equal(Number(counter), i + 1);
  }
});

test('a step that a worker thread meets is warned of', stepped, async () => {
  const warned = await underSteppedClock(`
    const { Worker } = require('node:worker_threads');
    new SnowFlake({ datacenterId: 1, workerId: 1 }).nextId();
    step(-5000);
    const worker = new Worker(\`
      process.on('warning', ({ code }) => require('node:worker_threads').parentPort.postMessage(code));
      const { SnowFlake } = require(\${JSON.stringify(require.resolve('..'))});
      new SnowFlake({ datacenterId: 1, workerId: 1 }).nextIds(3);\`, { eval: true });
    return new Promise((resolve) => worker.on('message', resolve).on('exit', () => resolve('none')));`);
  assert.equal(warned, 'SNOWFLAKE_CLOCK_BACK');
});

test('200 steps do not flood the log', stepped, async () => {
  const { warnings, steps } = await underSteppedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    for (let i = 0; i < 200; i++) {
      step(i * 100); flake.nextId(); await turn();
      step(i * 100 - 50); flake.nextId(); await turn();
    }
    await turn();
    return { warnings: warnings.length, steps: flake.stats().clockStepsBack };`);
  assert.equal(steps, 200);
  assert.ok(warnings >= 10 && warnings <= 12, `${warnings} warnings`);
});

test(
  "under 'wait' a small step is waited out, a large one is refused with the time it takes",
  stepped,
  async () => {
    const answer = await underSteppedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1, clockBack: 'wait', maxWait: 200 });
    const ids = flake.nextIds(10);
    step(-20);
    const start = performance.now();
    const waited = flake.nextId();
    const ms = performance.now() - start;
    step(-5000);
    const from = performance.now();
    const error = thrown(() => flake.nextId());
    const refusedIn = performance.now() - from;
    step(0);
    const after = flake.nextId();
    return { ms, refusedIn, code: error.code, retryAfterMs: error.retryAfterMs,
      rising: waited > ids[9] && after > waited, counter: flake.parse(after).clockBack };`);
    assert.ok(answer.ms > 5 && answer.ms < 150, `waited ${answer.ms} ms`);
    assert.ok(answer.refusedIn < 100, `refused in ${answer.refusedIn} ms`);
    assert.equal(answer.code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    assert.ok(Math.abs(answer.retryAfterMs - 4980) < 100, `${answer.retryAfterMs}`);
    assert.deepEqual([answer.rising, answer.counter], [true, 0]);
  },
);

test(
  "under 'throw' every step is refused, and it goes on when the clock has caught up",
  stepped,
  async () => {
    const answer = await underSteppedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1, clockBack: 'throw' });
    const first = flake.nextId();
    step(-20);
    const error = thrown(() => flake.nextIdString());
    step(20);
    return { code: error.code, retryAfterMs: error.retryAfterMs, rising: flake.nextId() > first };`);
    assert.equal(answer.code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    assert.ok(answer.retryAfterMs >= 1 && answer.retryAfterMs <= 21, `${answer.retryAfterMs}`);
    assert.equal(answer.rising, true);
  },
);

test(
  'a fourth step at one time is refused under the default layout, then it goes on',
  stepped,
  async () => {
    const answer = await underSteppedClock(`
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    const ids = [];
    for (const ms of [0, -1000, -2000, -3000]) { step(ms); ids.push(flake.nextId()); }
    step(-4000);
    const error = thrown(() => flake.nextId());
    step(1000);
    ids.push(flake.nextId());
    return { code: error.code, retryAfterMs: error.retryAfterMs, counters: ids.map((id) => flake.parse(id).clockBack) };`);
    assert.equal(answer.code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    assert.ok(Math.abs(answer.retryAfterMs - 1000) < 100);
    assert.deepEqual(answer.counters, [0, 1, 2, 3, 0]);
  },
);

test('a clock of its own is read for every ID, and has a state of its own', () => {
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

test('a clock that stands still is waited for within maxWait, then refused', async () => {
  const flake = new SnowFlake({ ...node, clock: standing(NOW), maxWait: 20 });
  assert.equal(countDuplicates([...flake.nextIds(4096)]), 0);
  const start = performance.now();
  const { retryAfterMs } = refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_EXHAUSTED');
  assert.equal(retryAfterMs, 1);
  assert.ok(performance.now() - start < 1000);
});

test('nextIdAsync waits for a clock that stands still until it is moved', async () => {
  const clock = standing(NOW);
  const flake = new SnowFlake({ ...node, clock });
  flake.nextIds(4096);
  const waiting = flake.nextIdAsync();
  setImmediate(() => {
    clock.now += 1;
  });
  assert.equal(flake.parse(await waiting).timestamp, NOW + 1);
});

test('maxAhead takes IDs from the future instead of waiting, and remembers them', () => {
  const clock = standing(NOW);
  const flake = new SnowFlake({ ...node, clock, maxAhead: 2, maxWait: 0 });
  const ids = [...flake.nextIds(3 * 4096)];
  assert.equal(countDuplicates(ids), 0);
  assert.equal(flake.parse(ids.at(-1)).timestamp, NOW + 2);
  refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_EXHAUSTED');
  clock.now = NOW + 1;
  assert.equal(flake.parse(flake.nextId()).timestamp, NOW + 3);
});

test('a random start spreads sequence numbers over the lower half of their range', () => {
  const clock = standing(NOW);
  const flake = new SnowFlake({ ...node, clock, sequenceStart: 'random' });
  const starts = Array.from({ length: 500 }, () => {
    clock.now++;
    return flake.parse(flake.nextId()).sequence;
  });
  assert.ok(starts.every((sequence) => sequence < 2048));
  const odd = starts.filter((sequence) => sequence % 2).length;
  assert.ok(odd > 150 && odd < 350, `${odd} of 500 are odd`);
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

test("UidGenerator's own epoch has run out: an error, not a negative ID", () => {
  const flake = new SnowFlake({ layout: 'uid', workerId: 1 });
  refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_TIME_ENDED');
});
