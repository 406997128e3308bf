'use strict';
// Draws in a thread, of the node and of the ring of the main thread.

const { parentPort, workerData } = require('node:worker_threads');
const { CachedSnowFlake, SnowFlake } = require('snowdrift');

const { node, count } = workerData;
const flake = new SnowFlake(node);
const cached = new CachedSnowFlake(node);
const ids = [];
for (let i = 0; i < count / 2; i++) ids.push(flake.nextId(), cached.nextId());
cached.close();
flake.close();
parentPort.postMessage(ids);
