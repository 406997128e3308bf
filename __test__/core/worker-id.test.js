'use strict';
// Worker IDs from where a process runs: what each finds, and what it says when it does not.

const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');

const { refuses } = require('../support/support.js');
const { fromPm2, fromStatefulSet, fromSwarmTask } = require('../../js/worker-id.js');

const VARIABLES = ['POD_INDEX', 'TASK_SLOT', 'SLOT', 'NODE_APP_INSTANCE'];

afterEach(() => {
  for (const name of VARIABLES) delete process.env[name];
});

test('a StatefulSet’s ordinal is at the end of the host name', () => {
  assert.equal(fromStatefulSet({ hostname: 'web-0' }), 0);
  assert.equal(fromStatefulSet({ hostname: 'order-api-17' }), 17);
  assert.equal(fromStatefulSet({ hostname: 'web-3', workersPerPod: 4, slot: 2 }), 14);
});

test('a Deployment’s pods have none, and that is said', () => {
  for (const hostname of ['web-7d4b9c6f5-x2x9k', 'web', 'web-', 'web-01', 'web-1a', '3', '']) {
    const { message } = refuses(() => fromStatefulSet({ hostname }), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /does not end with an ordinal.*SnowFlake\.lease\(\)/);
  }
});

test('the pod-index label is read from the variable that holds it', () => {
  process.env.POD_INDEX = '5';
  assert.equal(fromStatefulSet({ podIndex: 'POD_INDEX', hostname: 'web-9' }), 5);
  process.env.POD_INDEX = '05';
  refuses(() => fromStatefulSet({ podIndex: 'POD_INDEX' }), 'ERR_SNOWFLAKE_CONFIG');
  delete process.env.POD_INDEX;
  const { message } = refuses(
    () => fromStatefulSet({ podIndex: 'POD_INDEX' }),
    'ERR_SNOWFLAKE_CONFIG',
  );
  assert.match(message, /POD_INDEX is not set.*apps\.kubernetes\.io\/pod-index/);
});

test('a Swarm task slot counts from 1', () => {
  process.env.TASK_SLOT = '1';
  assert.equal(fromSwarmTask(), 0);
  process.env.SLOT = '12';
  assert.equal(fromSwarmTask({ variable: 'SLOT' }), 11);
  process.env.TASK_SLOT = '0';
  refuses(() => fromSwarmTask(), 'ERR_SNOWFLAKE_CONFIG');
  delete process.env.TASK_SLOT;
  const { message } = refuses(() => fromSwarmTask(), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /--env TASK_SLOT=\{\{\.Task\.Slot\}\}/);
});

test('pm2’s instance is refused with the reason and the way out, unless asked for', () => {
  process.env.NODE_APP_INSTANCE = '2';
  const { message } = refuses(() => fromPm2(), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /reload.*8,243 in 110,145 IDs.*SnowFlake\.lease.*iKnowThatReloadsOverlap/);
  assert.equal(fromPm2({ iKnowThatReloadsOverlap: true }), 2);
  delete process.env.NODE_APP_INSTANCE;
  refuses(() => fromPm2({ iKnowThatReloadsOverlap: true }), 'ERR_SNOWFLAKE_CONFIG');
});

test('slots outside their pod are refused', () => {
  for (const within of [
    { workersPerPod: 2, slot: 2 },
    { slot: 1 },
    { workersPerPod: 0 },
    { slot: '0' },
  ]) {
    refuses(() => fromStatefulSet({ hostname: 'web-1', ...within }), 'ERR_SNOWFLAKE_CONFIG');
  }
  const { message } = refuses(
    () => fromStatefulSet({ hostname: 'web-1', slot: 1 }),
    'ERR_SNOWFLAKE_CONFIG',
  );
  assert.equal(message, 'slot must be a whole number from 0 to 0; it is 1');
});
