'use strict';
// Where a host has no place for pages, processes of one node issue duplicates. Checks what a process can know of
// sibling processes, which have the same code and the same environment.

const { environmentOf } = require('./environment.js');
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

/** In a thread, node:cluster does not know it, and Node removes the variable of workers from process.env. */
function isClusterWorker() {
  // Loaded here: that takes more than a ms, and few systems have no place for pages.
  if (require('node:worker_threads').isMainThread) return require('node:cluster').isWorker;
  const { readFileSync } = require('node:fs');
  try {
    return /(^|\0)NODE_UNIQUE_ID=/.test(readFileSync('/proc/self/environ', 'latin1'));
  } catch {
    return false;
  }
}

/** Whether forkWorkers() gave this process a node of its own, and this is that node. Its child has another parent. */
function isNumbered({ datacenterId, workerId }) {
  return (
    environmentOf(NUMBERED_BY) === String(process.ppid) &&
    environmentOf('datacenterId') === String(datacenterId) &&
    environmentOf('workerId') === String(workerId)
  );
}

/**
 * Refuses a node that sibling processes may have, and warns where only tests may, or nothing is known.
 * @param node the datacenterId and workerId of this process
 */
function checkAlone(node) {
  const isOfPm2 = environmentOf('pm_id') !== undefined;
  const hasOwnNode = isNumbered(node);
  if (hasOwnNode && !isOfPm2) return;
  if (!hasOwnNode && (isOfPm2 || isClusterWorker())) {
    throw configError(
      `this process is a worker of ${isOfPm2 ? 'pm2' : 'a cluster'}, and others may have its datacenterId and workerId: ${WHY}. ${REMEDY}`,
    );
  }
  // Each instance of pm2 may be a primary that gives the same nodes to its workers.
  const starter = isOfPm2
    ? 'pm2'
    : Object.entries(RUNNERS).find(([name]) => environmentOf(name) !== undefined)?.[1];
  const more = starter === undefined ? '' : `, such as other workers of ${starter},`;
  warn(
    'SNOWFLAKE_PROCESS_SCOPE',
    `Other processes with datacenterId ${node.datacenterId} and workerId ${node.workerId}${more} issue duplicates: ${WHY}.`,
    `${REMEDY}.`,
  );
}

module.exports = { NUMBERED_BY, checkAlone };
