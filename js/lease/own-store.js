'use strict';
// The store of a lease, as an application may write one. Its properties are read and checked once, before a slot is taken.

const { AsyncLocalStorage } = require('node:async_hooks');

const { wholeNumber } = require('../messages/checks.js');
const { SnowFlakeError, configError, describe } = require('../messages/errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { propertyOf } = require('../ids/properties.js');
const { showsPassword } = require('../messages/secrets.js');
const { memory } = require('../stores/memory.js');

/** Characters of a store's name. */
const MOST_OF_NAME = 500;

/** How many worker IDs a record may have lines for. */
const BUCKET_SIZES = [1, 8, 32];

const CALLS = ['read', 'write', 'now', 'namespaces', 'schemas', 'show', 'close'];

function checkName(name) {
  if (typeof name !== 'string' || name === '' || name.length > MOST_OF_NAME) {
    throw configError(
      `the name of a LeaseStore must be a text of 1 to ${MOST_OF_NAME} characters; it is ${describe(name)}`,
    );
  }
  if (showsPassword(name)) {
    throw configError(
      `the name of a LeaseStore is shown in errors and logs, and must not contain a login or a password; it is ${describe(name)}`,
    );
  }
  return name;
}

function checkBucketSize(size) {
  if (BUCKET_SIZES.includes(size)) return size;
  throw configError(
    `bucketSize of a LeaseStore must be ${BUCKET_SIZES.join(', ')} or left out; it is ${describe(size)}`,
  );
}

/** The properties that a lease reads once. */
function readProperties(store) {
  const names = ['name', 'server', 'scope', 'mayForget', 'bucketSize', 'assign', 'assignRow'];
  try {
    return Object.fromEntries(names.map((name) => [name, propertyOf(store, name)]));
  } catch (cause) {
    throw configError(`the store of SnowFlake.lease() cannot be read: ${describe(cause)}`, {
      cause,
    });
  }
}

/**
 * @param store a Register, or a store that assigns worker IDs
 * @returns a Register with properties that do not change, whose calls are the store's at that moment
 */
function checkedRegister(store) {
  const {
    name,
    server,
    scope,
    mayForget,
    bucketSize = 32,
    assign,
    assignRow,
  } = readProperties(store);
  const own = {
    __proto__: null,
    name: checkName(name),
    mayForget: mayForget === true,
    bucketSize: checkBucketSize(bucketSize),
  };
  if (typeof server === 'string') own.server = server;
  for (const call of CALLS) {
    own[call] = (...values) => propertyOf(store, call)?.call(store, ...values);
  }
  if (typeof assignRow === 'function') own.assign = (request) => store.assignRow(request);
  else if (typeof assign === 'function') own.assign = (request) => assignOwn(own, store, request);
  if (own.assign !== undefined || scope === 'process') own.scope = 'process';
  return Object.freeze(own);
}

/** The worker IDs that assigners of applications have returned in this thread, with layout and datacenter. */
const assigned = new Set();

/** The assigners that are called within this one. */
const assigning = new AsyncLocalStorage();

/** Calls an application's assigner. Its register is this process's memory: nobody else has the worker ID. */
async function assignOwn({ name }, store, request) {
  const { layout, datacenterId, workerIds, signal } = request;
  const outer = assigning.getStore() ?? [];
  if (outer.includes(store)) {
    throw configError(
      `assign() of ${name} leases from its own store: it must return a worker ID without a lease`,
    );
  }
  const given = await assigning.run([...outer, store], async () =>
    store.assign({ datacenterId, workerIds, signal }),
  );
  const toError = (message) => new SnowFlakeError('ERR_SNOWFLAKE_STORE', message);
  const workerId = wholeNumber(
    `the worker ID that assign() of ${name} returned`,
    given,
    0,
    workerIds - 1,
    toError,
  );
  const key = `${layoutKey(layout)} ${datacenterId} ${workerId}`;
  if (assigned.has(key)) {
    throw toError(
      `assign() of ${name} returned worker ID ${workerId} a second time: it must return one that nobody had before, in any process`,
    );
  }
  assigned.add(key);
  return { workerId, register: memory() };
}

module.exports = { checkedRegister };
