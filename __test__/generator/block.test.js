'use strict';
// A block that is drawn in later turns of the ms that reserved it: each ID is of the ms in which it is
// drawn, whatever clocks do, and of the slot that the instance has.

const assert = require('node:assert/strict');
const { mkdtempSync, readdirSync, readFileSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');

const { isQuick, storm } = require('../support/amount.js');
const { SnowFlake, countDuplicates, entry, runScript, wide } = require('../support/support.js');
const { createDirectory } = require('../support/own-directory.js');

const ROUNDS = isQuick ? 15 : 50;

function spin(ms) {
  const start = Date.now();
  while (Date.now() < start + ms);
}

test('with up to 16 draws in a turn, a draw after a pause has the ms in which it is drawn', async () => {
  const flake = new SnowFlake({ layout: wide, datacenterId: 0, workerId: 1 });
  for (let round = 0; round < 20; round += isQuick ? 7 : 1) {
    for (let draws = 0; draws <= 15; draws++) {
      await new Promise(setImmediate);
      for (let n = 0; n < draws; n++) flake.nextId();
      spin(2);
      const before = Date.now();
      const { timestamp } = flake.parse(flake.nextId());
      assert.ok(timestamp >= before, `${before - timestamp} ms old, after ${draws} draws`);
    }
    // A past of loops changes nothing.
    for (let n = 0; n < round * 97; n++) {
      flake.nextId();
      if (n % 50 === 0) await undefined;
    }
  }
  flake.close();
});

test('when a loop pauses, the rest of one block lags at most', async () => {
  const flake = new SnowFlake({ layout: wide, datacenterId: 1, workerId: 0 });
  for (let burst = 20; burst < 40_000; burst = Math.ceil(burst * 1.7)) {
    await new Promise(setImmediate);
    for (let n = 0; n < burst; n++) flake.nextId();
    spin(3);
    const before = Date.now();
    let lagging = 0;
    while (flake.parse(flake.nextId()).timestamp < before) lagging++;
    assert.ok(lagging <= Math.max(16, burst / 16, 1) && lagging < 256, `${lagging} after ${burst}`);
  }
  flake.close();
});

/** Loads snowdrift with another clock for its blocks, `shown`, and counts native calls. */
const PRELUDE = `
  const real = Date.now;
  let shown = real;
  const time = require(${JSON.stringify(entry.replace('index.js', 'runtime/time.js'))});
  if (typeof time.blockNow !== 'function') throw new Error('no clock');
  time.blockNow = () => shown();
  const { SnowFlake, layouts } = require(${JSON.stringify(entry)});
  const native = require(${JSON.stringify(entry.replace('index.js', 'runtime/native.js'))});
  const { Drawer } = require(${JSON.stringify(entry.replace('index.js', 'generator/draw.js'))});
  const turn = () => new Promise(setImmediate);
  const node = { datacenterId: 1, workerId: 1, layout: ${JSON.stringify(wide)} };
  const request = (workerId) => ({
    ...{ layout: node.layout, datacenterId: 1, workerId, clockBack: 'wait', maxWait: 10, maxAhead: 0 },
    ...{ sequenceStart: 'zero', scope: 'process', ownClock: false },
  });
  let calls = 0;
  function counted(channel, lease) {
    const { refill } = channel;
    channel.refill = (memory) => { calls++; return refill(memory); };
    return new Drawer(channel, request(1), lease);
  }
  const msOf = (id) => SnowFlake.parse(id, node.layout).timestamp;
  /** Stops the clock within a ms of whose block some IDs are left. */
  async function stopWithinBlock(drawer) {
    for (;;) {
      shown = real;
      let before = calls;
      const ms = msOf(drawer.nextId());
      if (calls > before) continue;
      shown = () => ms;
      before = calls;
      await turn();
      if (msOf(drawer.nextId()) === ms && calls === before) return;
    }
  }
`;

async function answerOf(script) {
  const { stdout, stderr } = await runScript(`${PRELUDE}
    (async () => { ${script} })().then((answer) => {
      console.log(JSON.stringify(answer));
      process.exit();
    });`);
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

test('many turns of a ms make one native call', { skip: storm }, async () => {
  const calls = await answerOf(`
    const drawer = counted(native.open(request(1)));
    for (let n = 0; n < 20000; n++) { await undefined; drawer.nextId(); }
    return calls;`);
  assert.ok(calls < 10_000, `${calls} calls for 20,000 IDs`);
});

test('a clock that stops at the ms of a block serves no more than the rest of it', async () => {
  const stale = await answerOf(`
    const flake = new SnowFlake(node);
    let most = 0;
    for (let round = 0; round < ${ROUNDS}; round++) {
      shown = real;
      for (let n = 0; n < 200; n++) { await undefined; flake.nextId(); }
      const ms = msOf(flake.nextId());
      shown = () => ms;
      let stale = 0;
      for (let n = 0; n < 200; n++) {
        await turn();
        const now = real();
        if (msOf(flake.nextId()) < now) stale++;
      }
      most = Math.max(most, stale);
    }
    return most;`);
  assert.ok(stale <= 64, `${stale} IDs`);
});

test('under a clock that is wrong by an hour, stands, runs backwards or returns nothing, each ID has the ms in which it is drawn', async () => {
  const CLOCKS = {
    'is wrong by an hour': '() => real() + 3_600_000',
    stands: '() => 1_700_000_000_000',
    'runs backwards': '() => 2 * start - real()',
    'returns nothing': '() => undefined',
  };
  const stale = await answerOf(`
    const answer = {};
    let start;
    for (const [what, clock] of Object.entries({${Object.entries(CLOCKS).map(([what, clock]) => `'${what}': ${clock}`)}})) {
      shown = real;
      const flake = new SnowFlake(node);
      start = real() + 5;
      shown = clock;
      answer[what] = 0;
      for (let n = 0; n < 5000; n++) {
        await (n % 2 ? turn() : undefined);
        const now = real();
        const ms = msOf(flake.nextId());
        if (ms < now || ms > real()) answer[what]++;
      }
      flake.close();
    }
    return answer;`);
  // A process that pauses where the two clocks meet sees the ms of its block again, and draws its rest.
  const { 'runs backwards': ofBackwards, ...others } = stale;
  assert.ok(ofBackwards <= 64, `${ofBackwards} IDs`);
  assert.deepEqual(others, { 'is wrong by an hour': 0, stands: 0, 'returns nothing': 0 });
});

test('a Date that was replaced before snowdrift was loaded is not read for blocks', async () => {
  const { stdout, stderr } = await runScript(`
    const real = Date.now;
    let shown = real;
    globalThis.Date = class extends Date { static now() { return shown(); } };
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const layout = ${JSON.stringify(wide)};
    const flake = new SnowFlake({ layout, datacenterId: 1, workerId: 1 });
    (async () => {
      let stale = 0;
      for (let round = 0; round < ${ROUNDS}; round++) {
        for (let n = 0; n < 200; n++) { await undefined; flake.nextId(); }
        // As fake timers do: the clock stands at the time of their installation.
        const { timestamp } = flake.parse(flake.nextId());
        shown = () => timestamp;
        for (let n = 0; n < 40; n++) {
          await new Promise(setImmediate);
          const now = real();
          if (flake.parse(flake.nextId()).timestamp < now) stale++;
        }
        // Up to 16 draws in a turn, at any time after many turns of one ms.
        for (let n = 0; n < 30 + 2 * round; n++) { await undefined; flake.nextId(); }
        await undefined;
        for (let n = 0; n < 15; n++) flake.nextId();
        const now = real() + 2;
        while (real() < now);
        if (flake.parse(flake.nextId()).timestamp < now) stale++;
        shown = real;
      }
      console.log(stale);
      process.exit();
    })();`);
  assert.equal(stdout, '0\n', stderr);
});

test('an instance that moves to another slot draws from the new one at once', async () => {
  const workers = await answerOf(`
    const workers = [];
    for (let round = 0; round < 20; round++) {
      const channel = native.open(request(0));
      const drawer = counted(channel);
      await stopWithinBlock(drawer);
      channel.moveTo(request(1));
      await turn();
      workers.push(SnowFlake.parse(drawer.nextId(), node.layout).workerId);
      drawer.close();
      channel.close();
    }
    return workers;`);
  assert.deepEqual(new Set(workers), new Set([1]));
});

test('no ID is drawn in a turn after the slot has ended, nor after close()', async () => {
  const codes = await answerOf(`
    const codes = [];
    const { holdSlot, releaseSlot } = require(${JSON.stringify(require.resolve('../support/lease/held.js'))});
    for (const end of ['restored', 'close']) {
      for (let round = 0; round < 10; round++) {
        const held = holdSlot(request(round % 2));
        const channel = native.open({ ...request(round % 2), isLeased: true, lease: held });
        const slot = { workerId: 0 };
        const lease = { state: 'lost', lost: 'taken', store: 'memory', slot, ceiling: 0 };
        const drawer = counted(channel, { report: () => lease });
        await stopWithinBlock(drawer);
        if (end === 'close') drawer.close();
        channel[end]();
        await turn();
        try { codes.push(String(drawer.nextId())); } catch ({ code }) { codes.push(code); }
        channel.close();
        releaseSlot(held);
      }
    }
    return codes;`);
  assert.deepEqual(new Set(codes), new Set(['ERR_SNOWFLAKE_LEASE_EXPIRED']));
});

test('processes and threads that draw one ID a turn repeat none while their page is deleted', {
  skip: storm,
}, async () => {
  const shared = createDirectory();
  const results = mkdtempSync(join(tmpdir(), 'snowdrift-block-'));
  const drawing = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { writeFileSync } = require('node:fs');
    const { Worker, isMainThread } = require('node:worker_threads');
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    const ids = new BigUint64Array(60_000);
    (async () => {
      for (let n = 0; n < ids.length; n++) {
        if (n % 8 === 0) await new Promise(setImmediate);
        else await undefined;
        ids[n] = flake.nextId();
      }
      const name = process.pid + (isMainThread ? '-main' : '-thread');
      writeFileSync(${JSON.stringify(results)} + '/' + name, ids);
    })();`;
  const script = `${drawing}
    if (isMainThread) new Worker(${JSON.stringify(drawing)}, { eval: true });`;
  let deleted = 0;
  /** Deletes pages until both processes have ended. Returns what they drew. */
  async function drawWhileDeleting() {
    const env = { SNOWDRIFT_SHARED: shared };
    let isDone = false;
    const processes = Promise.all([1, 2].map(() => runScript(script, { env }))).finally(() => {
      isDone = true;
    });
    processes.catch(() => {});
    while (!isDone) {
      for (const place of readdirSync(shared, { recursive: true })) {
        if (!place.endsWith('.page')) continue;
        rmSync(join(shared, place), { force: true });
        deleted++;
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    for (const { code, stderr } of await processes) assert.equal(code, 0, stderr);
    return readdirSync(results).flatMap((name) => {
      const bytes = readFileSync(join(results, name));
      rmSync(join(results, name));
      return Array.from(new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8));
    });
  }
  const ids = [];
  // A machine that stops this process, but not the others, lets them draw undisturbed.
  for (let rounds = 1; deleted <= 3; rounds++) {
    assert.ok(rounds <= 20, `${deleted} pages deleted`);
    for (const id of await drawWhileDeleting()) ids.push(id);
    assert.equal(ids.length, rounds * 240_000);
  }
  rmSync(results, { recursive: true });
  assert.equal(countDuplicates(ids), 0);
});

test('without a clock of its own it draws where a tick is exhausted and booked ahead', async () => {
  const drawing = `
    const time = require(${JSON.stringify(entry.replace('index.js', 'runtime/time.js'))});
    time.blockNow = undefined;
    const { SnowFlake, layouts } = require(${JSON.stringify(entry)});
    const { Worker, isMainThread } = require('node:worker_threads');
    const layout = { ...layouts.node, sequenceBits: 8 };
    const flake = new SnowFlake({ layout, datacenterId: 1, workerId: 1, maxWait: 1000 });
    const ids = new Set();
    (async () => {
      for (let n = 0; n < 40_000; n++) {
        if (n % 1000 === 0) await new Promise(setImmediate);
        ids.add(flake.nextId());
      }
      console.log(ids.size);
    })();`;
  const { stdout, stderr } = await runScript(`${drawing}
    if (isMainThread) new Worker(${JSON.stringify(drawing)}, { eval: true });`);
  assert.deepEqual(stdout.trim().split('\n'), ['40000', '40000'], stderr);
});
