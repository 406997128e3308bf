'use strict';
// The main job, on real input: cluster workers draw IDs as BigInts and as strings, and the primary
// compares every one of them and decodes it back to who made it and when.
//
//   npm run demo [-- --count N] [--lease URL]
//
// --count: N IDs of each kind a worker, default 1,000,000. --lease: the workers take any free
// workerId from there (file:///some/directory, postgres://..., redis://...) instead of their own.

const cluster = require('node:cluster');
const { parseArgs } = require('node:util');

const WORKERS = 3;
const DATACENTER = 1;

function readArguments() {
  const options = {
    count: { type: 'string', default: '1000000' },
    lease: { type: 'string' },
  };
  const { count: text, lease } = parseArgs({ options }).values;
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 10_000_000) {
    console.error(`--count must be a whole number from 1 to 10000000; it is '${text}'`);
    process.exit(2);
  }
  return { count, lease };
}

if (cluster.isPrimary) {
  require('./primary.js').run({
    workers: WORKERS,
    datacenterId: DATACENTER,
    count: readArguments().count,
  });
} else {
  // A worker has the primary's arguments.
  require('./worker.js')
    .run(readArguments())
    .catch(({ message }) => {
      console.error(message);
      process.exit(1);
    });
}
