'use strict';
// The primary of a cluster, its workers and a thread of each draw, all with one environment.

const cluster = require('node:cluster');
const { Worker, isMainThread, threadId } = require('node:worker_threads');
const snowdrift = require('snowdrift');

const { draw } = require('./draw.js');

draw(snowdrift, `${process.pid}-${threadId}`);
if (isMainThread) {
  new Worker(__filename);
  if (cluster.isPrimary) for (let n = 0; n < 2; n++) cluster.fork();
}
