'use strict';
// A copy of the package for each test, which has a default instance of its own, and an environment that names
// nothing.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { afterEach, beforeEach } = require('node:test');

const { refuses, rejects } = require('./support.js');

const JS = join(__dirname, '../../js/');
const NAMES = ['datacenterId', 'workerId', 'SNOWDRIFT_LEASE', 'SNOWDRIFT_STATE'];

const opened = [];

/** The last copy, which is loaded by the first test that needs it. */
const current = () => require('../..');

function dropCopy() {
  for (const path of Object.keys(require.cache)) {
    if (path.startsWith(JS) && path.endsWith('.js')) delete require.cache[path];
  }
}

/** Loads another copy of the package, and returns it. */
function loadCopy() {
  dropCopy();
  return current();
}

beforeEach(() => {
  dropCopy();
  for (const name of NAMES) delete process.env[name];
});

/** An instance of the copy's, closed after the test. */
function open(options, Class = current().SnowFlake) {
  return closeLater(new Class({ datacenterId: 6, workerId: 1, ...options }));
}

function closeLater(flake) {
  opened.push(flake);
  return flake;
}

async function closeAll() {
  for (const flake of opened.splice(0)) await flake.close();
}

afterEach(closeAll);

/** Every static call that draws: each returns the last ID. */
const STATIC_CALLS = {
  nextId: () => current().SnowFlake.nextId(),
  nextIdString: () => current().SnowFlake.nextIdString(),
  nextIds: () => current().SnowFlake.nextIds(2)[1],
  nextIdStrings: () => current().SnowFlake.nextIdStrings(2)[1],
  'many nextIdStrings': () => current().SnowFlake.nextIdStrings(40)[39],
};

/** Static calls draw from this instance. */
function assertAllDraw({ datacenterId, workerId, layout }) {
  for (const [name, call] of Object.entries(STATIC_CALLS)) {
    const id = current().SnowFlake.parse(call(), layout);
    assert.deepEqual([id.datacenterId, id.workerId], [datacenterId, workerId], name);
  }
}

function refusesAll(code, text) {
  for (const call of Object.values(STATIC_CALLS)) refuses(call, code, text);
}

module.exports = {
  assertAllDraw,
  closeAll,
  closeLater,
  loadCopy,
  open,
  refuses,
  refusesAll,
  rejects,
};
