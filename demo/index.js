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
               postgres://..., mysql://..., redis://..., etcd://...
  --help       shows this`;

function readOptions() {
  try {
    const options = {
      count: { type: 'string', default: '200000' },
      lease: { type: 'string' },
      help: { type: 'boolean', default: false },
    };
    const { count, lease, help } = parseArgs({ options }).values;
    if (help) {
      console.log(USAGE);
      process.exit(0);
    }
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
  const started = performance.now();
  const parts = [
    () => workers.showOwnNodes(count, lease),
    () => workers.showOneNode(count),
    rollback.show,
  ];
  let duplicates = 0;
  for (const show of parts) {
    duplicates += await show();
    console.log();
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`snowdrift: ${number(duplicates)} duplicates, after ${seconds} s.`);
  if (duplicates > 0) process.exitCode = 1;
}

main().catch((error) => {
  console.error(error.code === undefined ? error : error.message);
  process.exit(1);
});
