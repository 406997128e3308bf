'use strict';
// Opens a generator from settings: at once, or without blocking the thread.

const { isAbsolute } = require('node:path');
const { pathToFileURL } = require('node:url');

const { openChannel, openChannelLater } = require('../runtime/channel.js');
const { checkGiven, schemeRemedy, variable } = require('../messages/checks.js');
const { configError, describe } = require('../messages/errors.js');
const { propertyOf } = require('../ids/properties.js');
const { NativeLease } = require('../lease/native-lease.js');
const { serverUrl } = require('../stores/url.js');
const { checkAlone } = require('../runtime/siblings.js');
const { isRoot } = require('../runtime/user.js');
const { warnOfSecondUser, warnOfUnusable } = require('../messages/warnings.js');

/** Of one that an error shows as a URL. */
const LONGEST_PATH = 4096;

/** Loads on first use, since it takes as long as the rest of the package; for root now, who may drop the right to read it. */
const leases = () => require('../lease/open.js');
if (isRoot) leases();

/** An open generator, passed to a constructor in place of options. Applications cannot make one. */
class Opened {
  #isOpened = true;
  // Own properties: somebody may have put others on Object.prototype.
  onCreated;
  rejected;
  // biome-ignore lint/suspicious/noThenProperty: a promise that resolves to this asks for it, and is to find none
  then;
  channel;
  settings;
  lease;

  /** Not `instanceof`, which runs the code of a proxy. */
  static is(value) {
    return value !== null && typeof value === 'object' && #isOpened in value;
  }

  constructor(channel, settings, lease) {
    this.channel = channel;
    this.settings = settings;
    this.lease = lease;
  }
}

/**
 * @param settings the result of `readOptions`
 * @param common whether all callers in this process that request any worker ID get the same one
 */
function openNow(settings, { common } = { common: false }) {
  const basis = basisOf(settings, common);
  const channel = openChannel(settings, basis) ?? openAlone(settings, basis);
  return createOpened(channel, settings);
}

/** Opens in the process's own memory, since the host has no place for pages, if the process may be alone. */
function openAlone(settings, basis) {
  checkAlone(settings);
  return openChannel({ __proto__: null, ...settings, scope: 'process' }, basis);
}

async function openLater(settings) {
  return createOpened(await openChannelLater(settings, basisOf(settings, false)), settings);
}

function basisOf({ clock, recording }, common) {
  if (clock !== undefined) return { ownClock: true };
  if (recording === undefined) return {};
  return { recording: { __proto__: null, ...recording, common } };
}

/** The functions missing from a register; undefined for a URL or a value that is no object. */
function findMissingCalls(place) {
  try {
    if (place === null || typeof place !== 'object' || place instanceof URL) return undefined;
    // These assign worker IDs, and record nothing.
    const isAssigner = (name) => typeof propertyOf(place, name) === 'function';
    if (['assign', 'assignRow'].some(isAssigner)) return [];
    const calls = ['read', 'write', 'list', 'now'];
    return calls.filter((name) => typeof propertyOf(place, name) !== 'function');
  } catch (cause) {
    throw configError(`the store of SnowFlake.lease() cannot be read: ${describe(cause)}`, {
      cause,
    });
  }
}

/** Checks what SnowFlake.lease() was given. Returns a Register or a server's URL; undefined for files. */
function readStore(place) {
  if (place === undefined) {
    throw configError(
      "SnowFlake.lease() needs a store, such as 'file:///var/lib/app/ids' or postgres(pool), or one in the environment variable SNOWDRIFT_LEASE",
    );
  }
  checkGiven('the store of SnowFlake.lease()', place, 'leave it out to use SNOWDRIFT_LEASE');
  const missing = findMissingCalls(place);
  if (missing?.length === 0) return place;
  if (missing !== undefined) {
    throw configError(
      `the store of SnowFlake.lease() must be a URL, or a LeaseStore such as postgres(pool); it lacks the functions ${missing.join(', ')}: ${describe(place)}`,
    );
  }
  const url = serverUrl('the store of SnowFlake.lease()', place);
  // An object is a URL here.
  const isDirectory =
    typeof place === 'object' || (typeof place === 'string' && /^file:/i.test(place));
  if (url !== undefined || isDirectory) return url;
  const isPath = typeof place === 'string' && place.length < LONGEST_PATH && isAbsolute(place);
  const remedy =
    schemeRemedy(place) ||
    (isPath ? `. Write ${describe(pathToFileURL(place).href)} for that directory` : '');
  throw configError(
    `the store of SnowFlake.lease() must be a URL, such as 'postgres://db/app' or 'file:///var/lib/app/ids', or a LeaseStore; it is ${describe(place)}${remedy}`,
  );
}

/**
 * Opens a lease from a directory, a server, or the store in the environment, and an instance on it.
 * @param read returns settings: for a directory, or for a server or a Register if it is undefined
 * @param create returns the instance for an Opened. Where it throws, the lease is released
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

async function leaseFrom(given, read) {
  const place = given === undefined ? variable('SNOWDRIFT_LEASE') : given;
  const store = readStore(place);
  if (store === undefined) return await openLater(read(place));
  const settings = read(undefined, given === undefined);
  const lease = await leases().takeLease(store, settings);
  return new Opened(lease.channel, settings, lease);
}

function createOpened(channel, before) {
  try {
    return openedOf(channel, before);
  } catch (failure) {
    channel.close();
    throw failure;
  }
}

/** Warns of slots that native code skipped, and of second users. */
function openedOf(channel, before) {
  for (const fault of channel.warnings ?? []) {
    if (fault.kind === 'second-user') warnOfSecondUser(fault);
    else warnOfUnusable(fault);
  }
  const settings = { __proto__: null, ...before, workerId: channel.workerId };
  if (settings.recording === undefined) return new Opened(channel, settings);
  return new Opened(channel, settings, new NativeLease(channel));
}

module.exports = { Opened, openLease, openNow };
