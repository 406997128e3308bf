'use strict';
// One of 2 threads that draw from one node.

const { parentPort, workerData } = require('node:worker_threads');
const { SnowFlake } = require('..');

const flake = new SnowFlake({ datacenterId: 2, workerId: 0 });
const ids = new BigUint64Array(workerData.count);
for (let i = 0; i < ids.length; i++) ids[i] = flake.nextId();
parentPort.postMessage({ ids });
