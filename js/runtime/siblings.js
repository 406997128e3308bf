'use strict';
// On a host without a directory for pages, processes of one node issue duplicates. Checks whether this process may have
// siblings: processes with the same code and the same environment.

const { environmentOf } = require('./environment.js');
const { configError } = require('../messages/errors.js');
const { warn } = require('../messages/warnings.js');

/** @import { Cluster } from 'node:cluster' */
/** @import { Settings } from '../types.js' */

const WHY = 'this system has no directory in memory, /dev/shm, for processes to share a sequence';
const REMEDY =
  'Mount a tmpfs at /dev/shm, or set SNOWDRIFT_SHARED to a directory in one. Or use a lease (SnowFlake.lease(), SNOWDRIFT_LEASE). ' +
  "Or give each process a workerId of its own, and pass scope: 'process'";

/**
 * Whether this process is a worker of a cluster. In a thread, node:cluster cannot tell, and process.env lacks the
 * variable of workers.
 */
function isClusterWorker() {
  // Loads on use, since that takes more than a ms, and few systems have no directory for pages.
  const { isMainThread } = require('node:worker_threads');
  if (isMainThread) {
    // The compiler knows the form of an ES module only.
    /** @type {unknown} */
    const cluster = require('node:cluster');
    return /** @type {Cluster} */ (cluster).isWorker;
  }
  const { readFileSync } = require('node:fs');
  try {
    return /(^|\0)NODE_UNIQUE_ID=/.test(readFileSync('/proc/self/environ', 'latin1'));
  } catch {
    return false;
  }
}

/**
 * Refuses a node that sibling processes may share. Warns if it knows of none.
 * @param {Pick<Settings, 'datacenterId' | 'workerId'>} node the datacenterId and workerId of this process
 */
function checkAlone(node) {
  const isOfPm2 = environmentOf('pm_id') !== undefined;
  if (isOfPm2 || isClusterWorker()) {
    throw configError(
      `this process is a worker of ${isOfPm2 ? 'pm2' : 'a cluster'}, and others may have its datacenterId and workerId: ${WHY}. ${REMEDY}`,
    );
  }
  warn(
    'SNOWFLAKE_PROCESS_SCOPE',
    `Other processes with datacenterId ${node.datacenterId} and workerId ${node.workerId}, such as other workers of a test runner, issue duplicates: ${WHY}.`,
    `${REMEDY}.`,
  );
}

module.exports = { checkAlone };
