'use strict';
// `snowdrift/worker-id`: worker IDs from where a process runs. Each is asked for by name, and refuses
// what it does not find: nothing is guessed.

const { hostname } = require('node:os');

const { configError, shown } = require('./errors.js');
const { propertiesOf, wholeNumber } = require('./options.js');

/** A whole number as the environment and host names have it. */
function numberIn(text, what, remedy) {
  if (text === undefined || !/^(0|[1-9][0-9]{0,8})$/.test(text)) {
    const found = text === undefined ? 'is not set' : `holds ${shown(text)}`;
    throw configError(`${what} ${found}; it must be a whole number. ${remedy}`);
  }
  return Number(text);
}

/** The worker ID of a process among those of its pod. */
function withinPod(ordinal, { workersPerPod = 1, slot = 0 }) {
  wholeNumber('workersPerPod', workersPerPod, 1, 1_000_000);
  wholeNumber('slot', slot, 0, workersPerPod - 1);
  return ordinal * workersPerPod + slot;
}

function fromStatefulSet(options = {}) {
  const keys = ['podIndex', 'hostname', 'workersPerPod', 'slot'];
  const given = propertiesOf(options, 'options of fromStatefulSet()', keys, configError);
  if (given.podIndex !== undefined) {
    const variable = given.podIndex;
    if (typeof variable !== 'string') {
      throw configError(`podIndex must name an environment variable; it is ${shown(variable)}`);
    }
    const remedy =
      "Set it in the pod from the label: valueFrom.fieldRef.fieldPath metadata.labels['apps.kubernetes.io/pod-index'] (Kubernetes 1.28 or later)";
    const what = `the environment variable ${variable}`;
    return withinPod(numberIn(process.env[variable], what, remedy), given);
  }
  const name = given.hostname === undefined ? hostname() : given.hostname;
  const ordinal = /-(0|[1-9][0-9]{0,8})$/.exec(String(name))?.[1];
  if (ordinal === undefined) {
    throw configError(
      `the host name ${shown(name)} does not end with an ordinal, as a StatefulSet's pods' do ('web-3'). A Deployment's pods have none: take a worker ID with SnowFlake.lease(), or make it a StatefulSet`,
    );
  }
  return withinPod(Number(ordinal), given);
}

function fromSwarmTask(options = {}) {
  const keys = ['variable', 'workersPerPod', 'slot'];
  const given = propertiesOf(options, 'options of fromSwarmTask()', keys, configError);
  const variable = given.variable === undefined ? 'TASK_SLOT' : given.variable;
  const remedy = `Create the service with --env ${shown(variable).slice(1, -1)}={{.Task.Slot}}`;
  const slot = numberIn(process.env[variable], `the environment variable ${variable}`, remedy);
  // Docker counts from 1.
  if (slot === 0)
    throw configError(
      `the environment variable ${variable} holds 0, and Docker counts task slots from 1`,
    );
  return withinPod(slot - 1, given);
}

function fromPm2(options = {}) {
  const keys = ['iKnowThatReloadsOverlap'];
  const given = propertiesOf(options, 'options of fromPm2()', keys, configError);
  if (given.iKnowThatReloadsOverlap !== true) {
    throw configError(
      "pm2's NODE_APP_INSTANCE is not one process's alone: `pm2 reload` runs the old and the new process with one number for about a second. On Linux all processes of one workerId share one sequence, so they need no number each. With scope 'process' they issue duplicates (8,243 duplicates in 110,145 IDs were measured): take a worker ID with SnowFlake.lease('file:///var/lib/app/ids') there. To use NODE_APP_INSTANCE, pass { iKnowThatReloadsOverlap: true }",
    );
  }
  const remedy = 'Start the application with pm2, in cluster mode';
  const variable = 'the environment variable NODE_APP_INSTANCE';
  return numberIn(process.env.NODE_APP_INSTANCE, variable, remedy);
}

module.exports = { fromPm2, fromStatefulSet, fromSwarmTask };
