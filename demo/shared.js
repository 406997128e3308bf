'use strict';
// Processes that all have one worker ID, as replicas of one environment have. They share a sequence.

const { fork } = require('node:child_process');
const { dirname } = require('node:path');
const { SnowFlake } = require('snowdrift');

const { compare } = require('./compare.js');
const { number, printText } = require('./output.js');
const { drawTogether } = require('./together.js');

const PROCESSES = 8;
const NODE = { datacenterId: 1, workerId: 3 };

/** The file by which the processes share the sequence; undefined where they cannot. */
function findPage() {
  try {
    const flake = new SnowFlake({ ...NODE, scope: 'host' });
    const { page } = flake.stats();
    flake.close();
    return page;
  } catch ({ code, message }) {
    if (code !== 'ERR_SNOWFLAKE_CONFIG') throw new Error(message);
    printText(`Left out: ${message}.`);
    return undefined;
  }
}

async function run({ count }) {
  const node = `datacenterId=${NODE.datacenterId} and workerId=${NODE.workerId}`;
  printText(`${PROCESSES} processes, all with ${node} in their environment.`, '2. ');
  const page = findPage();
  if (page === undefined) return true;
  const each = Math.ceil(count / PROCESSES / 2);
  printText(
    `They share one sequence, by a page in ${dirname(page)}. Each generates ${number(each)} IDs as BigInt, and as many as strings.`,
  );
  console.log();
  const env = { ...process.env, ...NODE, DEMO_SCOPE: 'host' };
  delete env.SNOWDRIFT_LEASE;
  const processes = {};
  for (let n = 1; n <= PROCESSES; n++) {
    processes[`process ${n}`] = fork(require.resolve('./worker.js'), {
      env,
      serialization: 'advanced',
    });
  }
  const start = Date.now();
  const drawn = await drawTogether(processes, each);
  console.log();
  const namesByMs = new Map();
  const visit = (name, ms) => namesByMs.set(ms, (namesByMs.get(ms) ?? new Set()).add(name));
  const { total, duplicates, wrong } = await compare(drawn, { ...NODE, start, visit });
  const shared = [...namesByMs.values()].filter(({ size }) => size > 1).length;
  console.log();
  printText(
    `Milliseconds in which several processes generated IDs: ${number(shared)} of ${number(namesByMs.size)}`,
  );
  printText(`Duplicates among all ${number(total)} IDs: ${number(duplicates)}`);
  printText(`IDs that do not decode to this node and this minute: ${number(wrong)}`);
  return duplicates + wrong === 0;
}

module.exports = { run };
