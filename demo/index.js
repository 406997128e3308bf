'use strict';
// Shows three things, and compares every ID with every other:
//
//   1. cluster workers, each with datacenterId and workerId in its environment;
//   2. cluster workers that all have one node, beside a plain JavaScript class;
//   3. a clock that rolls back, until IDs are refused.
//
//   npm run demo [-- --count N] [--lease URL]

const { constants } = require('node:os');
const { parseArgs } = require('node:util');

const { number } = require('./output.js');
const rollback = require('./rollback.js');
const workers = require('./workers.js');

const MOST = 1_000_000;
const USAGE = `npm run demo -- [--count N] [--lease URL]

  --count N    IDs that each worker generates as BigInt, and as many as strings:
               1 to ${number(MOST)}, default 200,000
  --lease URL  the workers of part 1 lease a workerId there: file:///some/directory,
               postgres://..., mysql://..., redis://..., etcd://...`;

function readOptions() {
  try {
    const options = { count: { type: 'string', default: '200000' }, lease: { type: 'string' } };
    const { count, lease } = parseArgs({ options }).values;
    if (!/^\d+$/.test(count) || Number(count) < 1 || Number(count) > MOST) {
      throw new Error(`--count must be a whole number from 1 to ${number(MOST)}; it is '${count}'`);
    }
    return { count: Number(count), lease };
  } catch ({ message }) {
    console.error(`${message}\n\n${USAGE}`);
    process.exit(2);
  }
}

async function main() {
  const { count, lease } = readOptions();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
  // The application's own lease is none of the demo's.
  delete process.env.SNOWDRIFT_LEASE;
  const started = performance.now();
  let duplicates = await workers.showOwnNodes(count, lease);
  duplicates += await workers.showOneNode(count);
  duplicates += await rollback.show();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`\nsnowdrift: ${number(duplicates)} duplicates, after ${seconds} s.`);
  if (duplicates > 0) process.exitCode = 1;
}

main().catch((error) => {
  console.error(error.code === undefined ? error : error.message);
  process.exit(1);
});
