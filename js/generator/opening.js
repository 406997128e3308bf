'use strict';
// Opens a generator from settings, either synchronously or without blocking the thread.

const { openChannel, openChannelLater } = require('../runtime/channel.js');
const { checkGiven, variable } = require('../messages/checks.js');
const { configError, describe, lacksPart } = require('../messages/errors.js');
const { propertyOf } = require('../ids/properties.js');

/** @import { Authority, Channel, Lease, OpenSettings, OwnSettings, StoreSettings } from '../types.js' */
/** @import { LeaseStore } from '../stores/store.js' */
/** @typedef {(directory?: unknown, isOfEnvironment?: boolean, usualTtl?: unknown) => OwnSettings | StoreSettings} ReadSettings */
/** @import { OnRejected } from './draw.js' */
/** @import { Instance } from './generator.js' */
/** @typedef {{ onRejectedPut: unknown, onRejectedTake: OnRejected }} Rejected */

// In the package these are in another file, which is in memory already.
const directories = () => require('../lease/directory-lease.js');
const siblings = () => require('../runtime/siblings.js');
const urls = () => require('../stores/url.js');
const warnings = () => require('../messages/warnings.js');

// This is in a file that is read when leases are asked for.
const loadLeases = () => require('../lease/open.js');

/** The code of leases. Loads on first use, since it takes as long as the rest of the package. */
function leases() {
  try {
    return loadLeases();
  } catch (cause) {
    throw lacksPart('leases', cause);
  }
}

/** @typedef {Pick<InstanceType<typeof Opened>, 'settings' | 'channel' | 'lease' | 'onCreated'>} Opening */

/** An open generator, passed to a constructor in place of options. Applications cannot create one. */
class Opened {
  #isOpened = true;
  // Own properties, since Object.prototype may be polluted.
  /** @type {((instance: Instance) => void) | undefined} */
  onCreated;
  /** @type {Rejected | undefined} */
  rejected;
  /** @type {undefined} */
  // biome-ignore lint/suspicious/noThenProperty: a promise that resolves to this object reads it, and must find none
  then;
  channel;
  settings;
  lease;

  /**
   * Not `instanceof`, which runs code of a proxy.
   * @param {unknown} value
   * @returns {value is Opened}
   */
  static is(value) {
    return value !== null && typeof value === 'object' && #isOpened in value;
  }

  /**
   * @param {Channel} channel
   * @param {OpenSettings} settings
   * @param {Lease} [lease]
   */
  constructor(channel, settings, lease) {
    this.channel = channel;
    this.settings = settings;
    this.lease = lease;
  }
}

/**
 * @param {OwnSettings} settings the result of `readOptions`
 * @param {{ isCommon: boolean }} [options] whether all callers in this process that ask for any worker ID share one
 */
function openNow(settings, { isCommon } = { isCommon: false }) {
  const authority = authorityOf(settings, isCommon);
  const channel = openChannel(settings, authority) ?? openAlone(settings, authority);
  return createOpened(channel, settings);
}

/**
 * Opens in the process's own memory, since the host has no directory for pages. Refuses if the process may have
 * siblings.
 * @param {OwnSettings} settings
 * @param {Authority} authority
 */
function openAlone(settings, authority) {
  siblings().checkAlone(settings);
  const channel = openChannel({ __proto__: null, ...settings, scope: 'process' }, authority);
  return /** @type {Channel} */ (channel);
}

/** @param {OwnSettings} settings */
async function openLater(settings) {
  const channel = await openChannelLater(settings, authorityOf(settings, false));
  // None only where nothing is leased.
  return createOpened(/** @type {Channel} */ (channel), settings);
}

/**
 * @param {OwnSettings} settings
 * @param {boolean} isCommon
 * @returns {Authority}
 */
function authorityOf({ clock, leasing }, isCommon) {
  if (clock !== undefined) return { ownClock: true };
  if (leasing === undefined) return {};
  return { isLeased: true, leasing: { __proto__: null, ...leasing, isCommon } };
}

/**
 * Reads properties of an application's store, which may throw.
 * @template T
 * @param {() => T} read
 */
function readingStore(read) {
  try {
    return read();
  } catch (cause) {
    throw configError(`the store of lease() cannot be read: ${describe(cause)}`, { cause });
  }
}

/**
 * The functions that a register lacks; undefined for a URL or a value that is no object.
 * @param {unknown} store
 * @returns {string[] | undefined}
 */
function missingFunctions(store) {
  if (store === null || typeof store !== 'object' || store instanceof URL) return undefined;
  // Assigners need no other functions: they assign worker IDs, and record nothing.
  /** @param {string} name */
  const isAssigner = (name) => typeof propertyOf(store, name) === 'function';
  if (['assign', 'assignRow'].some(isAssigner)) return [];
  const calls = ['read', 'write', 'now'];
  return calls.filter((name) => typeof propertyOf(store, name) !== 'function');
}

/**
 * The ttl of leases from a store, unless their options have one; undefined for the usual one.
 * @param {LeaseStore | URL} store
 */
const usualTtlOf = (store) =>
  store instanceof URL ? urls().ttlOf(store) : readingStore(() => propertyOf(store, 'ttl'));

/**
 * Checks the store that SnowFlake.lease() received. Returns a Register or a server's URL; undefined for a directory.
 * @param {unknown} store
 */
function readStore(store) {
  if (store === undefined) {
    throw configError(
      "lease() needs a store, such as 'file:///var/lib/app/ids' or postgres(pool), or one in the environment variable SNOWDRIFT_LEASE",
    );
  }
  checkGiven('the store of lease()', store, 'leave it out to use SNOWDRIFT_LEASE');
  const missing = readingStore(() => missingFunctions(store));
  if (missing?.length === 0) return /** @type {LeaseStore} */ (store);
  if (missing !== undefined) {
    throw configError(
      `the store of lease() must be a URL, or a LeaseStore such as postgres(pool); it lacks the functions ${missing.join(', ')}: ${describe(store)}`,
    );
  }
  const url = urls().serverUrl('the store of lease()', store);
  // The only objects left here are URLs.
  const isDirectory =
    typeof store === 'object' || (typeof store === 'string' && /^file:/i.test(store));
  if (url !== undefined || isDirectory) return url;
  throw configError(
    `the store of lease() must be a URL, such as 'postgres://db/app' or 'file:///var/lib/app/ids', or a LeaseStore; it is ${describe(store)}`,
  );
}

/**
 * Opens a lease from a directory, a server or the environment's store, and creates an instance on it.
 * @template T
 * @param {unknown} given
 * @param {ReadSettings} read returns the settings for a directory or, if that is undefined, for a server or a Register
 * @param {(opened: Opened) => T} create returns the instance for an Opened. If it throws, the lease is released
 */
async function openLease(given, read, create) {
  const opened = await leaseFrom(given, read);
  try {
    return create(opened);
  } catch (failure) {
    await opened.lease?.release();
    opened.channel.close();
    throw failure;
  }
}

/**
 * @param {unknown} given
 * @param {ReadSettings} read
 */
async function leaseFrom(given, read) {
  const named = given === undefined ? variable('SNOWDRIFT_LEASE') : given;
  const store = readStore(named);
  if (store === undefined) return await openLater(/** @type {OwnSettings} */ (read(named)));
  const settings = /** @type {StoreSettings & OpenSettings} */ (
    read(undefined, given === undefined, usualTtlOf(store))
  );
  const lease = await leases().takeLease(store, settings);
  return new Opened(/** @type {Channel} */ (lease.channel), settings, lease);
}

/**
 * @param {Channel} channel
 * @param {OwnSettings} before
 */
function createOpened(channel, before) {
  try {
    return openedOf(channel, before);
  } catch (failure) {
    channel.close();
    throw failure;
  }
}

/**
 * Warns of unusable slots that native code skipped, and of second users.
 * @param {Channel} channel
 * @param {OwnSettings} before
 */
function openedOf(channel, before) {
  for (const fault of channel.warnings ?? []) {
    if (fault.kind === 'second-user') warnings().warnOfSecondUser(fault);
    else warnings().warnOfUnusable(fault);
  }
  const settings = { __proto__: null, ...before, workerId: channel.workerId };
  if (settings.leasing === undefined) return new Opened(channel, settings);
  const { DirectoryLease } = directories();
  return new Opened(channel, settings, new DirectoryLease(channel, settings));
}

module.exports = { Opened, openLease, openNow };
