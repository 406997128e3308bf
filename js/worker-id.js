'use strict';
// `snowdrift/worker-id`: worker IDs from the platform that runs the process. Each function reads one platform's
// number and refuses a missing one. None guesses.

const { hostname } = require('node:os');

const { environmentOf } = require('./environment.js');
const { configError, describe } = require('./errors.js');
const { numberRemedy, optionsOf, wholeNumber } = require('./checks.js');
const { NONE } = require('./ids/properties.js');

/** Reads a whole number. The error names its `source`. */
function readNumber(text, source, remedy) {
  if (text === undefined || !/^(0|[1-9][0-9]{0,8})$/.test(text)) {
    const found = text === undefined ? 'is not set' : `holds ${describe(text)}`;
    const meant = text === undefined ? '' : numberRemedy('', text, 0, 999_999_999, 'set it to');
    throw configError(`${source} ${found}; it must be a whole number${meant}. ${remedy}`);
  }
  return Number(text);
}

/** The worker ID of one of a pod's processes. */
function workerIdInPod(ordinal, { workersPerPod = 1, slot = 0 }) {
  wholeNumber('workersPerPod', workersPerPod, 1, 1_000_000);
  wholeNumber('slot', slot, 0, workersPerPod - 1);
  return ordinal * workersPerPod + slot;
}

function fromStatefulSet(options = NONE) {
  const keys = ['podIndex', 'hostname', 'workersPerPod', 'slot'];
  const given = optionsOf(options, 'options of fromStatefulSet()', keys);
  if (given.podIndex !== undefined) {
    const variable = given.podIndex;
    if (typeof variable !== 'string') {
      throw configError(`podIndex must name an environment variable; it is ${describe(variable)}`);
    }
    const remedy =
      "Set it in the pod from the label: valueFrom.fieldRef.fieldPath metadata.labels['apps.kubernetes.io/pod-index'] (Kubernetes 1.28 or later)";
    const source = `the environment variable ${variable}`;
    return workerIdInPod(readNumber(environmentOf(variable), source, remedy), given);
  }
  const name = given.hostname === undefined ? hostname() : given.hostname;
  const ordinal = /-(0|[1-9][0-9]{0,8})$/.exec(String(name))?.[1];
  if (ordinal === undefined) {
    throw configError(
      `the host name ${describe(name)} does not end with an ordinal. Pods of a StatefulSet have one ('web-3'), pods of a Deployment do not: lease a worker ID with SnowFlake.lease(), or use a StatefulSet`,
    );
  }
  return workerIdInPod(Number(ordinal), given);
}

function fromSwarmTask(options = NONE) {
  const keys = ['variable', 'workersPerPod', 'slot'];
  const given = optionsOf(options, 'options of fromSwarmTask()', keys);
  const variable = given.variable === undefined ? 'TASK_SLOT' : given.variable;
  const remedy = `Create the service with --env ${describe(variable).slice(1, -1)}={{.Task.Slot}}`;
  const source = `the environment variable ${variable}`;
  const slot = readNumber(environmentOf(variable), source, remedy);
  if (slot === 0) throw configError(`${source} holds 0, and Docker counts task slots from 1`);
  return workerIdInPod(slot - 1, given);
}

function fromPm2(options = NONE) {
  const keys = ['iKnowThatReloadsOverlap'];
  const given = optionsOf(options, 'options of fromPm2()', keys);
  if (given.iKnowThatReloadsOverlap !== true) {
    throw configError(
      "two processes can have the same NODE_APP_INSTANCE: `pm2 reload` runs the old and the new process with one number for about a second. Processes of one host with one workerId share one sequence, so they need no number each. With scope 'process' they issue duplicates (8,243 in 110,145 IDs in one measurement): lease a worker ID with SnowFlake.lease('file:///var/lib/app/ids') there. To use NODE_APP_INSTANCE, pass { iKnowThatReloadsOverlap: true }",
    );
  }
  const remedy = 'Start the application with pm2, in cluster mode';
  const source = 'the environment variable NODE_APP_INSTANCE';
  return readNumber(environmentOf('NODE_APP_INSTANCE'), source, remedy);
}

module.exports = { fromPm2, fromStatefulSet, fromSwarmTask };
