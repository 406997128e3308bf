'use strict';
// One process, many callers: instances and worker_threads that name one node share its generator, and
// threads that end take nothing down with them.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');

const { amount, gate } = require('../support/amount.js');
const {
  SnowFlake,
  countDuplicates,
  entry,
  refuses,
  runScript,
  runWorker,
  slow,
} = require('../support/support.js');
const { limitWait } = require('../support/limit-wait.js');

const DRAW = `
  const { SnowFlake } = require(${JSON.stringify(entry)});
  const { parentPort, workerData } = require('node:worker_threads');
  const flake = new SnowFlake(workerData.options);
  const ids = [];
  while (ids.length < workerData.count) {
    for (let i = 0; i < 300; i++) ids.push(flake.nextId());
    for (let i = 0; i < 300; i++) ids.push(BigInt(flake.nextIdString()));
    ids.push(...flake.nextIds(300));
  }
  parentPort.postMessage(BigUint64Array.from(ids));`;

test('4 worker threads and 3 instances of one node never draw an ID twice', async () => {
  const options = { datacenterId: 3, workerId: 3 };
  const count = amount(20_000, 100_000);
  const workerData = { options, count };
  const drawing = Array.from({ length: 4 }, () => runWorker(DRAW, { workerData }));
  const flakes = Array.from({ length: 3 }, () => new SnowFlake(options));
  const ids = [];
  for (let i = 0; i < count / 4; i++) for (const flake of flakes) ids.push(flake.nextId());
  for (const drawn of await Promise.all(drawing)) for (const id of drawn) ids.push(id);
  assert.ok(ids.length >= 4.75 * count);
  assert.equal(countDuplicates(ids), 0);
  assert.equal(flakes[0].stats().issued, ids.length);
});

test('instances of one node differ in their policies, and agree on scope', () => {
  const node = { datacenterId: 3, workerId: 4 };
  const flake = new SnowFlake(node);
  flake.nextId();
  for (const other of [{ clockBack: 'wait' }, { maxWait: 11 }, { sequenceStart: 'random' }]) {
    const also = new SnowFlake({ ...node, ...other });
    const { issued } = flake.stats();
    also.nextId();
    assert.equal(flake.stats().issued, issued + 1, 'of one sequence');
    also.close();
  }
  if (flake.stats().scope === 'host') {
    const conflict = () => new SnowFlake({ ...node, scope: 'process' });
    refuses(conflict, 'ERR_SNOWFLAKE_CONFLICT', /open with scope 'host'/);
  }
  flake.close();
});

test('a node that is closed and opened again does not repeat itself', () => {
  const ids = [];
  for (let i = 0; i < 10; i++) {
    const flake = new SnowFlake({ layout: slow, datacenterId: 3, workerId: 6 });
    for (let n = 0; n < 5; n++) ids.push(flake.nextId());
    flake.close();
  }
  assert.equal(countDuplicates(ids), 0);
});

test('instances that are forgotten rather than closed do not keep their node open for ever', async () => {
  const { stdout, stderr, code } = await runScript(
    `const { SnowFlake } = require(${JSON.stringify(entry)});
     for (let i = 0; i < 2000; i++) new SnowFlake({ datacenterId: 1, workerId: 1 }).nextId();
     setImmediate(() => {
       gc();
       setImmediate(() => {
         new SnowFlake({ datacenterId: 1, workerId: 1, clockBack: 'wait' }).nextId();
         console.log('reopened');
       });
     });`,
    { args: ['--expose-gc'] },
  );
  assert.deepEqual([stdout.trim(), code], ['reopened', 0], stderr);
});

test('what a thread issued is remembered after its end, even if no other thread had the addon loaded', async () => {
  // Node unloads an addon with the last thread that loaded it; the next thread would start anew.
  const { stdout, stderr } = await runScript(
    `const { Worker } = require('node:worker_threads');
     const { once } = require('node:events');
     const draw = () => {
       const { SnowFlake } = require(${JSON.stringify(entry)});
       const flake = new SnowFlake({ layout: ${JSON.stringify(slow)}, datacenterId: 1, workerId: 1 });
       require('node:worker_threads').parentPort.postMessage(flake.nextIdString());
     };
     (async () => {
       const ids = new Set();
       for (let i = 0; i < 5; i++) {
         const worker = new Worker('(' + draw + ')()', { eval: true });
         const [[id]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')]);
         ids.add(id);
       }
       console.log(ids.size);
     })();`,
  );
  assert.equal(stdout.trim(), '5', stderr);
});

test('short-lived threads, some of them terminated while they draw, crash nothing', async () => {
  const endless = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const flake = new SnowFlake({ datacenterId: 3, workerId: 7 });
    require('node:worker_threads').parentPort.postMessage('drawing');
    const how = require('node:worker_threads').workerData % 3;
    if (how === 1) process.exit(0);
    for (let i = 0; how === 2 || i < 5000; i++) { flake.nextId(); flake.nextIdString(); flake.nextIds(9); }`;
  for (let round = 0; round < (gate ? 5 : 25); round++) {
    await Promise.all(
      Array.from({ length: 4 }, async (_, n) => {
        const worker = new Worker(endless, { eval: true, workerData: round * 4 + n });
        const ended = once(worker, 'exit');
        await limitWait(once(worker, 'message'), 'the message of a thread');
        if ((round * 4 + n) % 3 === 2) await worker.terminate();
        await limitWait(ended, 'the end of a thread');
      }),
    );
  }
  assert.equal(typeof new SnowFlake({ datacenterId: 3, workerId: 7 }).nextId(), 'bigint');
});

test('process.exit in the middle of other threads draws ends with its code, not a signal', async () => {
  const script = `
    const { Worker } = require('node:worker_threads');
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
    const draw = 'const { SnowFlake } = require(${JSON.stringify(entry)});'
      + 'const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });'
      + 'for (;;) { flake.nextId(); flake.nextIdString(); flake.nextIds(50); }';
    let ready = 0;
    for (let i = 0; i < 2; i++) {
      new Worker(draw, { eval: true })
        .on('online', () => { if (++ready === 2) { for (let n = 0; n < 9000; n++) flake.nextId(); process.exit(7); } });
    }`;
  for (let round = 0; round < (gate ? 2 : 10); round++) {
    const { code, signal, stderr } = await runScript(script);
    assert.deepEqual([code, signal], [7, null], stderr);
  }
});
