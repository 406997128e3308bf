'use strict';
// Workers of a cluster draw, and the primary compares. Prints what came of it, as JSON.

const cluster = require('node:cluster');
const { SnowFlake } = require('snowdrift');
const { forkWorkers } = require('snowdrift/cluster');

const COUNT = 20_000;

if (cluster.isPrimary) {
  const ids = [];
  const workers = forkWorkers({ count: 2, datacenterId: 1 });
  workers.on('fork', (worker) => {
    worker.on('message', (drawn) => {
      ids.push(...drawn);
      worker.disconnect();
    });
  });
  workers.ended.then(() =>
    console.log(JSON.stringify({ drawn: ids.length, different: new Set(ids).size })),
  );
} else {
  process.send(Array.from({ length: COUNT }, () => SnowFlake.nextIdString()));
}
