'use strict';
// Checks options and returns settings.

const {
  choice,
  directoryOf,
  optionsOf,
  sharedDirectory,
  variable,
  wholeNumber,
} = require('../messages/checks.js');
const { environmentOf } = require('../runtime/environment.js');
const { configError, describe, faultError } = require('../messages/errors.js');
const { layouts, readLayout } = require('../ids/layouts.js');
const { NONE, ownOf } = require('../ids/properties.js');
const { ofThread, readNode } = require('./node-options.js');
const { moment, unixNow } = require('../runtime/time.js');

const urls = () => require('../stores/url.js');

/** @import { DirectoryLeasing, Layout, OwnSettings, Properties, SlotTimes, StoreSettings } from '../types.js' */

/** Choices and bounds of the options, in ms. */
const MAX_WAIT_MS = 60_000;
const MAX_AHEAD_MS = 3_600_000;
const DEFAULT_MAX_WAIT_MS = 10;
const TTL_MS = { min: 1000, max: 3_600_000, usual: 10_000 };
const MOST_CLOCK_SKEW_MS = 86_400_000;
const STORE_TTL_MS = 30_000;
const MAX_WAIT_FOR_SLOT_MS = 3_600_000;
/** The bound of Twitter Snowflake, whose SnowflakeServer does not start beyond it. */
const MAX_CLOCK_SKEW_MS = 10_000;
const CALL_TIMEOUT_MS = 5000;
const CLOCK_BACK = /** @type {const} */ (['counter', 'wait', 'throw']);
const SEQUENCE_START = /** @type {const} */ (['zero', 'random']);
const SCOPES = /** @type {const} */ (['auto', 'host', 'process']);

const OPTION_KEYS = /** @type {const} */ ([
  'datacenterId',
  'workerId',
  'layout',
  'epoch',
  'clockBack',
  'maxWait',
  'maxAhead',
  'sequenceStart',
  'scope',
  'clock',
  'state',
  'lease',
  'ttl',
  'waitForSlot',
]);
/** @typedef {Properties<object, (typeof OPTION_KEYS)[number]>} Given */

/** The minimum age of an epoch. A younger one was probably read from the clock, and differs with each start. */
const LEAST_AGE_MS = 3_600_000;

/** Of the holders of a directory: the usual ttl, and what no option sets (src/registry/keeper.rs). */
const DIRECTORY_LIMITS = { ttl: TTL_MS.usual, maxClockSkew: MAX_CLOCK_SKEW_MS };

/**
 * The ranges of the limits that a namespace records, in ms.
 * @type {Record<'ttl' | 'maxClockSkew' | 'maxAhead', [number, number]>}
 */
const LIMIT_RANGES = {
  ttl: [TTL_MS.min, TTL_MS.max],
  maxClockSkew: [0, MOST_CLOCK_SKEW_MS],
  maxAhead: [0, MAX_AHEAD_MS],
};

/** Options that SnowFlake.lease() does not have. */
const NON_LEASE_KEYS = ['workerId', 'state', 'lease', 'clock'];

/** Further options of SnowFlake.lease() with a LeaseStore or a server. */
const STORE_KEYS = /** @type {const} */ (['workerId', 'maxClockSkew', 'callTimeout', 'address']);

/** The options of all generators. */
const ALL_KEYS = [...new Set([...OPTION_KEYS, ...STORE_KEYS])];

/** A host and a port. */
const ADDRESS = /^[\w.:[\]-]{1,250}:\d{1,5}$/;

/**
 * The lease from a directory, from the options or else from the environment; undefined if there is none.
 * @param {Given} given
 * @returns {DirectoryLeasing | undefined}
 */
function readDirectoryLease(given) {
  let { state, lease } = given;
  let names = { state: 'state', lease: 'lease' };
  // The clock option is for tests, so the environment's stores do not apply to it.
  if (state === undefined && lease === undefined && given.clock === undefined) {
    state = variable('SNOWDRIFT_STATE');
    lease = variable('SNOWDRIFT_LEASE');
    names = {
      state: 'the environment variable SNOWDRIFT_STATE',
      lease: 'the environment variable SNOWDRIFT_LEASE',
    };
  }
  if (state === undefined && lease === undefined) {
    for (const name of /** @type {const} */ (['ttl', 'waitForSlot'])) {
      if (given[name] !== undefined) throw configError(`${name} needs state or lease`);
    }
    return undefined;
  }
  if (state !== undefined && lease !== undefined) {
    throw configError(
      `${names.state} and ${names.lease} are both set: state records the workerId that you name, lease takes any free one. Set only one of them`,
    );
  }
  if (given.clock !== undefined) {
    throw configError(
      'an instance with the option clock has no lease: leave out clock, or state and lease',
    );
  }
  const isFromEnvironment = lease !== undefined && given.lease === undefined;
  if (isFromEnvironment && urls().namesServer(lease)) {
    throw configError(
      `SNOWDRIFT_LEASE names a server, ${describe(lease)}: await SnowFlake.ready() once before the first static call, or await SnowFlake.lease() for a separate instance.${ofThread()}`,
    );
  }
  if (lease !== undefined && given.workerId !== undefined) {
    throw configError(
      `${names.lease} takes any free workerId of a directory: leave out workerId, or use state instead of lease`,
    );
  }
  const { ttl = TTL_MS.usual, waitForSlot = 0 } = given;
  return {
    anyWorker: lease !== undefined,
    directory:
      lease === undefined
        ? directoryOf(names.state, state, { urlOnly: false })
        : directoryOf(names.lease, lease, { urlOnly: true }),
    ...readTimes(ttl, waitForSlot),
  };
}

/**
 * Refuses an epoch that probably causes duplicates: if it differs with each start, timestamps start from 0 each time.
 * The epochs of named layouts are constants, and the generator refuses a clock before its epoch.
 * @param {Layout} layout
 */
function checkEpoch({ epoch }) {
  if (Object.values(layouts).some((one) => one.epoch === epoch)) return;
  if (epoch >= 0 && epoch <= unixNow() - LEAST_AGE_MS) return;
  throw configError(
    `epoch ${epoch} is ${moment(epoch)}, and must lie between 1970 and an hour ago: write one moment of the past as a constant, such as Date.UTC(2026, 0, 1). An epoch that differs after each start, such as Date.now(), causes duplicates`,
  );
}

/**
 * @param {unknown} given
 * @param {boolean} isFree whether no lease bounds the node's IDs
 */
function readMaxAhead(given, isFree) {
  const maxAhead = wholeNumber('maxAhead', given, 0, MAX_AHEAD_MS);
  if (maxAhead > 0 && isFree) throw faultError({ kind: 'ahead-unrecorded', maxAhead });
  return maxAhead;
}

/** For a generator without a lease from a store. */
const UNLEASED = Object.freeze({ __proto__: null, isLeased: false, isClaim: false });

/**
 * The settings of a generator. They have no prototype.
 * @param {unknown} [options]
 * @param {{ isLeased: boolean, isClaim: boolean }} [lease] whether one is taken from a store, and claims one worker ID
 * @returns {OwnSettings}
 */
function readOptions(options = NONE, { isLeased, isClaim } = UNLEASED) {
  const given = optionsOf(options, 'options', OPTION_KEYS);
  const { maxWait = DEFAULT_MAX_WAIT_MS, maxAhead = 0 } = given;
  const { sequenceStart = 'zero', scope: sharing = 'auto', clock } = given;
  const layout = readLayout(given.layout ?? 'node', given.epoch);
  const { clockBack: back = layout.clockBackBits > 0 ? 'counter' : 'wait' } = given;
  const clockBack = choice('clockBack', back, CLOCK_BACK);
  if (clockBack === 'counter' && layout.clockBackBits === 0) {
    throw configError(
      "clockBack 'counter' needs a layout with clockBackBits; use 'wait' or 'throw', or another layout",
    );
  }
  if (clock !== undefined && typeof clock !== 'function') {
    throw configError(
      `clock must be a function that returns Unix ms, such as Date.now; it is ${describe(clock)}`,
    );
  }
  if (clock === undefined) checkEpoch(layout);
  const leasing = isLeased ? undefined : readDirectoryLease(given);
  const scope = choice('scope', sharing, SCOPES);
  if (scope === 'host' && clock !== undefined) {
    throw configError(
      "an instance with the option clock shares no sequence: leave out clock, or scope 'host'",
    );
  }
  const isFree = !isLeased && leasing === undefined && clock === undefined;
  const isUnique = isLeased || given.workerId !== undefined;
  /** @type {{ datacenterId: number, workerId?: number }} */
  const fields = { datacenterId: layout.datacenterBits };
  if (isClaim || (!isLeased && !leasing?.anyWorker)) fields.workerId = layout.workerBits;
  return {
    __proto__: null,
    layout,
    ...readNode(given, fields, isUnique, layout),
    clockBack,
    maxWait: wholeNumber('maxWait', maxWait, 0, MAX_WAIT_MS),
    maxAhead: readMaxAhead(maxAhead, isFree),
    sequenceStart: choice('sequenceStart', sequenceStart, SEQUENCE_START),
    scope,
    shared: sharedDirectory(),
    clock: /** @type {OwnSettings['clock']} */ (clock),
    leasing,
  };
}

/**
 * The times of a slot, and the process that asks for it.
 * @param {unknown} ttl
 * @param {unknown} waitForSlot
 * @returns {SlotTimes}
 */
function readTimes(ttl, waitForSlot) {
  // Loaded on first use, since that takes half a ms, and not every application records or leases.
  const { hostname } = require('node:os');
  return {
    ttl: wholeNumber('ttl', ttl, TTL_MS.min, TTL_MS.max),
    wait: wholeNumber('waitForSlot', waitForSlot, 0, MAX_WAIT_FOR_SLOT_MS),
    host: hostname(),
    started: Math.round(unixNow() - process.uptime() * 1000),
  };
}

/**
 * @overload
 * @param {unknown} [options]
 * @param {undefined} [directory]
 * @param {boolean} [isOfEnvironment]
 * @param {unknown} [usualTtl]
 * @returns {StoreSettings}
 */
/**
 * @overload
 * @param {unknown} options
 * @param {unknown} directory
 * @param {boolean} [isOfEnvironment]
 * @param {unknown} [usualTtl]
 * @returns {OwnSettings | StoreSettings}
 */
/**
 * The settings of SnowFlake.lease() for a directory or, if that is undefined, for a server or a LeaseStore.
 * @param {unknown} [options]
 * @param {unknown} [directory]
 * @param {boolean} [isOfEnvironment] whether the environment names the store. Then it may name the workerId to claim, too
 * @param {unknown} [usualTtl] the store's own ttl, if it has one
 * @returns {OwnSettings | StoreSettings}
 */
function readLeaseOptions(
  options = NONE,
  directory,
  isOfEnvironment = false,
  usualTtl = STORE_TTL_MS,
) {
  const keys = OPTION_KEYS.filter((key) => !NON_LEASE_KEYS.includes(key));
  if (directory !== undefined) {
    // readDirectoryLease() says what a workerId needs instead.
    const what = 'options of lease() from a directory';
    return readOptions({ ...optionsOf(options, what, [...keys, 'workerId']), lease: directory });
  }
  const given = optionsOf(options, 'options of lease()', [...keys, ...STORE_KEYS]);
  const {
    maxClockSkew = MAX_CLOCK_SKEW_MS,
    callTimeout = CALL_TIMEOUT_MS,
    address,
    ttl = usualTtl,
    waitForSlot,
    ...others
  } = given;
  if (address !== undefined && !(typeof address === 'string' && ADDRESS.test(address))) {
    throw configError(
      `address must be a host and a port, such as '10.0.0.7:8080'; it is ${describe(address)}`,
    );
  }
  const leasing = {
    address,
    ...readTimes(ttl, waitForSlot === undefined ? 0 : waitForSlot),
    maxClockSkew: wholeNumber('maxClockSkew', maxClockSkew, 0, MOST_CLOCK_SKEW_MS),
    callTimeout: wholeNumber('callTimeout', callTimeout, 1, MAX_WAIT_MS),
  };
  const isClaim =
    given.workerId !== undefined || (isOfEnvironment && environmentOf('workerId') !== undefined);
  // By default a claim waits until the lease of its killed predecessor has expired.
  if (isClaim && waitForSlot === undefined) leasing.wait = leasing.ttl + leasing.callTimeout;
  // This lease replaces the one that the environment names.
  return ownOf({ ...readOptions(others, { isLeased: true, isClaim }), leasing });
}

module.exports = {
  ALL_KEYS,
  DIRECTORY_LIMITS,
  LIMIT_RANGES,
  OPTION_KEYS,
  readLeaseOptions,
  readOptions,
};
