'use strict';
// Drains a ring for some time: as a thread of several, or as a process with one core.

const { isMainThread, parentPort, workerData } = require('node:worker_threads');
const { CachedSnowFlake, SnowFlake, layouts } = require('..');

const kept = new Array(4096).fill(0n);

/** IDs a second. They are kept, else nothing would make BigInts of them. */
function perSecond(draw, ms) {
  const start = performance.now();
  let drawn = 0;
  do {
    for (let i = 0; i < kept.length; i++) kept[i] = draw();
    drawn += kept.length;
  } while (performance.now() - start < ms);
  return (drawn / (performance.now() - start)) * 1000;
}

// 131,072 IDs a ms: sequence bits for 131 million a second.
const bits = { datacenterBits: 0, workerBits: 3, clockBackBits: 0, sequenceBits: 17 };
const options = { layout: { ...layouts.node, ...bits }, maxWait: 1000 };

const drawOf = (kind, workerId) =>
  kind === 'SnowFlake'
    ? new SnowFlake({ ...options, workerId }).nextId
    : new CachedSnowFlake({ ...options, workerId: 7 }).nextId;

if (isMainThread) {
  const [kind, ms] = process.argv.slice(2);
  const draw = drawOf(kind, 1);
  perSecond(draw, 200);
  console.log(perSecond(draw, Number(ms)));
} else {
  const { kind, n, ms, start } = workerData;
  const draw = drawOf(kind, n);
  perSecond(draw, 50);
  parentPort.postMessage('ready');
  Atomics.wait(start, 0, 0);
  parentPort.postMessage(perSecond(draw, ms));
}
