'use strict';
// A thread of several that drain one ring, or have a SnowFlake each, for some time.

const { parentPort, workerData } = require('node:worker_threads');
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
const { kind, n, ms, start } = workerData;
const { nextId } =
  kind === 'SnowFlake'
    ? new SnowFlake({ ...options, workerId: n })
    : new CachedSnowFlake({ ...options, workerId: 7 });

perSecond(nextId, 50);
parentPort.postMessage('ready');
Atomics.wait(start, 0, 0);
parentPort.postMessage(perSecond(nextId, ms));
