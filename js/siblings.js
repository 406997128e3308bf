'use strict';
// Where a host has no place for pages, processes of one node issue duplicates. Checks what a process can know of
// sibling processes, which have the same code and the same environment.

const { configError } = require('./errors.js');
const { warn } = require('./warnings.js');

/** The variable that forkWorkers() sets to the primary's process ID, for workers that it has numbered. */
const NUMBERED_BY = 'SNOWDRIFT_NUMBERED_BY';

/** By environment variable of a test runner's workers: the runner. */
const RUNNERS = {
  JEST_WORKER_ID: 'jest',
  VITEST_WORKER_ID: 'vitest',
  MOCHA_WORKER_ID: 'mocha',
  TEST_WORKER_INDEX: 'Playwright',
  NODE_TEST_CONTEXT: 'node --test',
};

const WHY = 'this system has no directory in memory, /dev/shm, for processes to share a sequence';
const REMEDY =
  'Mount a tmpfs at /dev/shm, or set SNOWDRIFT_SHARED to a directory in one. Or use a lease (SnowFlake.lease(), SNOWDRIFT_LEASE). ' +
  "Or give each process a workerId of its own, and pass scope: 'process'";

/** Whether forkWorkers() gave this process a node of its own, and this is that node. */
function isNumbered({ datacenterId, workerId }) {
  const { env } = process;
  return (
    env[NUMBERED_BY] === String(process.ppid) &&
    env.datacenterId === String(datacenterId) &&
    env.workerId === String(workerId)
  );
}

/**
 * Refuses a node that sibling processes may have, and warns where only tests may, or nothing is known.
 * @param node the datacenterId and workerId of this process
 */
function checkAlone(node) {
  const { env } = process;
  const isClusterWorker = require('node:cluster').isWorker;
  if (isClusterWorker && isNumbered(node)) return;
  if (isClusterWorker || env.pm_id !== undefined) {
    const manager = env.pm_id === undefined ? 'a cluster' : 'pm2';
    throw configError(
      `this process is a worker of ${manager}, and others may have its datacenterId and workerId: ${WHY}. ${REMEDY}`,
    );
  }
  const [runner] = Object.keys(RUNNERS).filter((name) => env[name] !== undefined);
  const more = runner === undefined ? '' : `, such as other workers of ${RUNNERS[runner]},`;
  warn(
    'SNOWFLAKE_PROCESS_SCOPE',
    `Other processes with datacenterId ${node.datacenterId} and workerId ${node.workerId}${more} issue duplicates: ${WHY}.`,
    `${REMEDY}.`,
  );
}

module.exports = { NUMBERED_BY, checkAlone };
