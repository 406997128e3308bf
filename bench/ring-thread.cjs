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

if (isMainThread) {
  // 131,072 IDs a ms: sequence bits for 131 million a second.
  const bits = { datacenterBits: 1, workerBits: 2, clockBackBits: 0, sequenceBits: 17 };
  const layout = { ...layouts.node, ...bits };
  const [kind, ms] = process.argv.slice(2);
  const options = { layout, datacenterId: 1, workerId: 1, maxWait: 1000 };
  const flake =
    kind === 'SnowFlake'
      ? new SnowFlake(options)
      : new CachedSnowFlake({ ...options, boostPower: 0 });
  perSecond(flake.nextId, 200);
  console.log(perSecond(flake.nextId, Number(ms)));
} else {
  const { ms, start, options } = workerData;
  const { nextId } = new CachedSnowFlake(options);
  perSecond(nextId, 50);
  parentPort.postMessage('ready');
  Atomics.wait(start, 0, 0);
  parentPort.postMessage(perSecond(nextId, ms));
}
