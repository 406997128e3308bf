'use strict';
// The store of a lease, as an application may write one. Its properties are read and checked once, before a slot is taken.

const { AsyncLocalStorage } = require('node:async_hooks');

const { wholeNumber } = require('../messages/checks.js');
const { SnowFlakeError, configError, describe } = require('../messages/errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { ownOf, propertyOf, readAll } = require('../ids/properties.js');
const { showsPassword } = require('../messages/secrets.js');
const { memory } = require('../stores/memory.js');

/**
 * @import { AssigningStore } from '../stores/store.d.ts'
 * @import { Assign, CheckedStore, ForeignStore, RowStore, WantedWorker } from '../stores/types.d.ts'
 */

/** @typedef {'read' | 'write' | 'now' | 'namespaces' | 'schemas' | 'show' | 'close'} Call */

/** Characters of a store's name. */
const MOST_OF_NAME = 500;

/** How many worker IDs a record may have lines for. */
const BUCKET_SIZES = /** @type {const} */ ([1, 8, 32]);

/** @param {unknown} name */
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

/** @param {unknown} size */
function checkBucketSize(size) {
  const known = BUCKET_SIZES.find((one) => one === size);
  if (known !== undefined) return known;
  throw configError(
    `bucketSize of a LeaseStore must be ${BUCKET_SIZES.join(', ')} or left out; it is ${describe(size)}`,
  );
}

/** The properties that a lease reads once. @param {object} store */
function readProperties(store) {
  try {
    return readAll(store, [
      'name',
      'server',
      'scope',
      'mayForget',
      'bucketSize',
      'assign',
      'assignRow',
    ]);
  } catch (cause) {
    throw configError(`the store of lease() cannot be read: ${describe(cause)}`, {
      cause,
    });
  }
}

/**
 * @param {object} store a LeaseStore, or a store that assigns worker IDs
 * @returns {CheckedStore} with properties that do not change, whose calls are the store's at that moment
 */
function checkedRegister(store) {
  const given = readProperties(store);
  const { server, scope, mayForget, bucketSize = 32 } = given;
  const name = checkName(given.name);
  const foreign = /** @type {ForeignStore} */ (store);
  /** @param {Call} call */
  const callOf =
    (call) =>
    /** @param {unknown[]} values */
    (...values) =>
      propertyOf(foreign, call)?.call(foreign, ...values);
  const assign = assignOf(name, store, given);
  /** @type {CheckedStore} */
  const own = {
    name,
    mayForget: mayForget === true,
    bucketSize: checkBucketSize(bucketSize),
    ...(typeof server === 'string' && { server }),
    read: callOf('read'),
    write: callOf('write'),
    now: callOf('now'),
    namespaces: callOf('namespaces'),
    schemas: callOf('schemas'),
    show: callOf('show'),
    close: callOf('close'),
    ...(assign && { assign }),
    ...((assign || scope === 'process') && { scope: 'process' }),
  };
  return Object.freeze(ownOf(own));
}

/**
 * What assigns the worker IDs of a store that does so.
 * @param {string} name
 * @param {object} store
 * @param {{ assign?: unknown, assignRow?: unknown }} given
 * @returns {Assign | undefined}
 */
function assignOf(name, store, { assign, assignRow }) {
  if (typeof assignRow === 'function') {
    const own = /** @type {RowStore} */ (store);
    return (request) => own.assignRow(request);
  }
  if (typeof assign !== 'function') return undefined;
  const own = /** @type {AssigningStore} */ (store);
  return (request) => assignOwn(name, own, request);
}

/**
 * The worker IDs that assigners of applications have returned in this thread, with layout and datacenter.
 * @type {Set<string>}
 */
const assigned = new Set();

/** The assigners that are called within this one. @type {AsyncLocalStorage<AssigningStore[]>} */
const assigning = new AsyncLocalStorage();

/**
 * Calls an application's assigner. Its register is this process's memory: nobody else has the worker ID.
 * @param {string} name
 * @param {AssigningStore} store
 * @param {WantedWorker} request
 */
async function assignOwn(name, store, request) {
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
  /** @param {string} message */
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
