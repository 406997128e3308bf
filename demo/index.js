'use strict';
// Shows what snowdrift is for, on real input, and compares every ID that is drawn:
//
//   1. cluster workers, each with datacenterId and workerId in its environment;
//   2. eight processes that all have one worker ID;
//   3. a clock that goes back.
//
//   npm run demo [-- --count N] [--lease URL]

const { constants } = require('node:os');
const { parseArgs } = require('node:util');

const { number } = require('./output.js');

const MOST = 10_000_000;
const USAGE = `npm run demo -- [--count N] [--lease URL]

  --count N    IDs that each cluster worker generates as BigInt, and as many as strings:
               1 to ${number(MOST)}, default 1,000,000
  --lease URL  the cluster workers lease a workerId there: file:///some/directory,
               postgres://..., mysql://..., redis://..., etcd://...
  --help       shows this`;

function readOptions() {
  try {
    const options = {
      count: { type: 'string', default: '1000000' },
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
  // All processes of the demo end with this one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
  const started = performance.now();
  const parts = [
    () => require('./workers.js').run({ count, lease }),
    () => require('./shared.js').run({ count }),
    () => require('./rollback.js').run(),
  ];
  for (const run of parts) {
    if (!(await run())) process.exitCode = 1;
    console.log();
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (process.exitCode === 1) console.error(`FAILED, after ${seconds} s: see above.`);
  else console.log(`All as it should be, after ${seconds} s.`);
}

main().catch(({ message }) => {
  console.error(message);
  process.exit(1);
});
