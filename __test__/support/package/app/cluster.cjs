'use strict';
// Workers of a cluster draw, and the primary compares. Prints what came of it, as JSON.

const cluster = require('node:cluster');
const { SnowFlake } = require('snowdrift');

const COUNT = 20_000;
const WORKERS = 2;

if (cluster.isPrimary) {
  const ids = [];
  for (let n = 0; n < WORKERS; n++) cluster.fork({ datacenterId: 1, workerId: 3 });
  cluster.on('message', (worker, drawn) => {
    ids.push(...drawn);
    worker.disconnect();
    if (ids.length < WORKERS * COUNT) return;
    console.log(JSON.stringify({ drawn: ids.length, different: new Set(ids).size }));
  });
} else {
  process.send(Array.from({ length: COUNT }, () => SnowFlake.nextIdString()));
}
