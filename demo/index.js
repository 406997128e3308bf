'use strict';
// The main job, on real input: cluster workers draw IDs as BigInts and as strings, and the primary
// compares every one of them and decodes it back to who made it and when.
//
//   npm run demo [-- --count N]     N IDs of each kind a worker, default 1,000,000

const cluster = require('node:cluster');
const { parseArgs } = require('node:util');

const WORKERS = 3;
const DATACENTER = 1;

function readCount() {
  const { values } = parseArgs({ options: { count: { type: 'string', default: '1000000' } } });
  const count = Number(values.count);
  if (!Number.isInteger(count) || count < 1 || count > 10_000_000) {
    console.error(`--count must be a whole number from 1 to 10000000; it is '${values.count}'`);
    process.exit(2);
  }
  return count;
}

if (cluster.isPrimary) {
  require('./primary.js').run({ workers: WORKERS, datacenterId: DATACENTER, count: readCount() });
} else {
  require('./worker.js').run(readCount());
}
