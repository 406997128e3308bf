'use strict';
// Cluster workers, each with a worker ID of its own, draw IDs as BigInts and as strings.

const cluster = require('node:cluster');
const { layouts } = require('snowdrift');
const { forkWorkers } = require('snowdrift/cluster');

const { compare } = require('./compare.js');
const { number, printTable, printText } = require('./output.js');
const { drawTogether } = require('./together.js');

const WORKERS = 3;
const DATACENTER = 1;
/** IDs a second and node. */
const LIMIT = 2 ** layouts.node.sequenceBits * 1000;

function fork(lease) {
  cluster.setupPrimary({ exec: require.resolve('./worker.js'), serialization: 'advanced' });
  const group = forkWorkers({
    count: WORKERS,
    datacenterId: DATACENTER,
    ...(lease === undefined ? {} : { lease }),
    signals: [],
  });
  // Else it is a warning. drawTogether() ends the demo.
  group.on('died', () => {});
  const workers = [...group.workers.values()];
  return Object.fromEntries(workers.map((worker, n) => [`worker ${n}`, worker]));
}

async function run({ count, lease }) {
  const workers = fork(lease);
  const whose =
    lease === undefined
      ? `datacenterId=${DATACENTER} and workerId=0 to ${WORKERS - 1} in their environment`
      : `datacenterId=${DATACENTER} in their environment, and a leased workerId`;
  printText(
    `${WORKERS} cluster workers: ${whose}. Each generates ${number(count)} IDs as BigInt, and as many as strings.`,
    '1. ',
  );
  console.log();
  const start = Date.now();
  const drawn = await drawTogether(workers, count);
  console.log();
  const rate = ({ length, ms }) => (length / ms) * 1000;
  printTable(
    drawn.map((one) => ({
      worker: one.workerId,
      'IDs as': one.kind,
      IDs: number(one.length),
      ms: number(one.ms),
      'IDs/s': number(rate(one)),
      'of limit': `${((rate(one) / LIMIT) * 100).toFixed(1)}%`,
    })),
  );
  console.log();
  const { total, duplicates, wrong } = await compare(drawn, { datacenterId: DATACENTER, start });
  console.log();
  printText('The last string of each:');
  const strings = drawn.filter(({ kind }) => kind === 'string');
  printTable(
    strings.map(({ last: { id, date, datacenterId, workerId, sequence } }) => ({
      ID: id,
      time: date.toISOString(),
      datacenter: datacenterId,
      worker: workerId,
      sequence,
    })),
  );
  console.log();
  printText(`Duplicates among all ${number(total)} IDs: ${number(duplicates)}`);
  printText(`IDs that do not decode to their worker and this minute: ${number(wrong)}`);
  return duplicates + wrong === 0;
}

module.exports = { run };
