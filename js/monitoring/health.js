'use strict';
// Whether an instance can issue IDs, as far as that is known without generating one.

/**
 * @import { Health } from '../monitoring.js'
 * @import { Failure, LeaseInfo } from '../types.js'
 *
 * What is read of an instance, or of a mock of one.
 * @typedef {{ isClosed: boolean, lease: LeaseInfo | null, datacenterId: number, workerId: number }} Flake
 */

const { argumentError, describe } = require('../messages/errors.js');
const { readAll } = require('../ids/properties.js');
const { unixNow } = require('../runtime/time.js');
const { SnowFlake } = require('../snowflake.js');

/** Reasons by the state of a lease. They name no host: probes often have no login. */
const OVER = {
  expired: 'the lease was not renewed before its ceiling',
  lost: 'the slot was lost',
  released: 'the slot was released',
};

/**
 * Why there is no ID now; undefined if there is one.
 * @param {Flake} flake
 */
function reasonOf({ isClosed, lease }) {
  if (isClosed) return 'the instance is closed';
  if (lease === null) return undefined;
  const { state, lost, floor } = lease;
  if (state !== 'held' && state !== 'failing') {
    return lost === undefined ? OVER[state] : `${OVER[state]}: ${lost}`;
  }
  // After a loss of data a slot is held, and its floor is ahead.
  return unixNow() <= (floor ?? -Infinity)
    ? 'the clock has not passed the floor of the slot'
    : undefined;
}

/**
 * @param {Flake} flake
 * @returns {Health}
 */
function healthOf(flake) {
  const { datacenterId, workerId, lease } = flake;
  const reason = reasonOf(flake);
  return {
    status: reason === undefined ? 'up' : 'down',
    ...(reason === undefined ? {} : { reason }),
    ...{ datacenterId, workerId },
    ...(lease === null ? {} : { lease: leaseOf(lease, reason === undefined) }),
  };
}

/**
 * @param {LeaseInfo} lease
 * @param {boolean} isUp
 */
function leaseOf({ state, ceiling }, isUp) {
  const remainingMs = isUp && Number.isFinite(ceiling) ? Math.max(ceiling - unixNow(), 0) : 0;
  return { state, remainingMs };
}

/**
 * Whether a value is an instance. A proxy or a getter may throw.
 * @param {unknown} value
 */
function isFlake(value) {
  try {
    const { isClosed, lease, stats } = readAll(Object(value), ['isClosed', 'lease', 'stats']);
    const isLease = lease === null || typeof Object(lease).state === 'string';
    return typeof isClosed === 'boolean' && isLease && typeof stats === 'function';
  } catch {
    return false;
  }
}

/**
 * An instance that was given to a function.
 * @param {unknown} flake
 * @param {string} caller
 */
function givenFlake(flake, caller) {
  if (isFlake(flake)) return flake;
  throw argumentError(`${caller}() takes a SnowFlake or CachedSnowFlake; it is ${describe(flake)}`);
}

/**
 * @param {unknown} [flake]
 * @returns {Health}
 */
function health(flake) {
  if (flake === undefined) {
    try {
      return healthOf(SnowFlake.default);
    } catch (failure) {
      const { code } = /** @type {Failure} */ (failure);
      return { status: 'down', reason: `there is no default instance: ${code}` };
    }
  }
  return healthOf(/** @type {Flake} */ (givenFlake(flake, 'health')));
}

module.exports = { givenFlake, health, healthOf, isFlake };
