'use strict';
// From settings to a generator: at once, or without holding the thread.

const { configError, granted, shown } = require('./errors.js');
const { leaseTeller } = require('./events.js');
const native = require('./native.js');

/** Opened generators, by the object that is passed to a constructor for them. */
const prepared = new WeakMap();

/** An object to pass to a constructor, that applications cannot make. */
function prepare(opened) {
  const options = {};
  prepared.set(options, opened);
  return options;
}

/** What was prepared, if anything. */
function openedFor(options) {
  return prepared.get(options);
}

/**
 * @param settings what `readOptions` answered
 * @param common whether all of this process who want any worker ID get the same one
 */
function openNow(settings, { common } = { common: false }) {
  return opened(settings, native.open(request(settings, common)));
}

async function openLater(settings) {
  return opened(settings, await native.openLater(request(settings, false)));
}

/** What an object lacks to be a LeaseStore; undefined for what is a URL or no object. */
function missingCalls(place) {
  try {
    if (place === null || typeof place !== 'object' || place instanceof URL) return undefined;
    return ['open', 'raise', 'acquire', 'renew', 'release', 'now'].filter(
      (name) => typeof place[name] !== 'function',
    );
  } catch (cause) {
    throw configError(`the store of SnowFlake.lease() cannot be read: ${shown(cause)}`, { cause });
  }
}

/** The LeaseStore or the engine's URL that SnowFlake.lease() was given; undefined for files. */
function engineOf(place) {
  if (place === undefined) {
    throw configError(
      "SnowFlake.lease() needs a store, such as 'file:///var/lib/app/ids' or postgres(pool), or one in the environment variable SNOWDRIFT_LEASE",
    );
  }
  const missing = missingCalls(place);
  if (missing?.length === 0) return place;
  if (missing !== undefined) {
    throw configError(`a LeaseStore has ${missing.join(', ')}; this is ${shown(place)}`);
  }
  let url;
  try {
    url = new URL(place);
  } catch {
    if (typeof place !== 'string' || !/^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(place))
      return undefined;
    throw configError(
      `the store of SnowFlake.lease() is not a valid URL: ${shown(place)}. Percent-encode special characters of user and password, as encodeURIComponent() does`,
    );
  }
  const { isEngine, unknownEngine } = require('./lease/connect.js');
  if (isEngine(url)) return url;
  if (url.protocol !== 'file:') throw unknownEngine(place);
  return undefined;
}

/**
 * From where SnowFlake.lease() is told: a directory, an engine, or what the environment says.
 * @param ofFiles, ofEngine read the settings for either
 */
async function openLease(store, ofFiles, ofEngine) {
  const place = store === undefined ? process.env.SNOWDRIFT_LEASE : store;
  const engine = engineOf(place);
  return engine === undefined
    ? await openLater(ofFiles(place))
    : await openLeased(engine, ofEngine());
}

/** From an engine: a LeaseStore, or the URL of one. */
async function openLeased(engine, settings) {
  const lease = await takeLease(engine, settings);
  return { channel: lease.channel, settings, lease };
}

async function takeLease(engine, settings) {
  if (settings.leasing.inThread) {
    if (!(engine instanceof URL)) {
      throw configError(
        'thread: true needs the URL of an engine, since a client cannot be passed to a thread',
      );
    }
    const { ThreadLease } = require('./lease/thread.js');
    return ThreadLease.take(engine.href, settings, leaseTeller());
  }
  const { EngineLease } = require('./lease/lease.js');
  if (!(engine instanceof URL)) return EngineLease.take(engine, settings, leaseTeller());
  const { connect } = require('./lease/connect.js');
  const store = await connect(engine);
  try {
    return await EngineLease.take(store, settings, leaseTeller());
  } catch (failure) {
    await store.close?.();
    throw failure;
  }
}

function request({ clock, recording, ...settings }, common) {
  // Without a prototype: what somebody has put on Object.prototype is no option.
  return {
    __proto__: null,
    ...settings,
    ownClock: clock !== undefined,
    recording: recording && { __proto__: null, ...recording, common },
  };
}

function opened(settings, answer) {
  const channel = granted(answer);
  for (const why of channel.passedOver) {
    process.emitWarning(`A slot was passed over: ${why}.`, {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_SLOT_UNUSABLE',
    });
  }
  for (const why of channel.secondUsers) {
    process.emitWarning(`${why}.`, { type: 'SnowFlakeWarning', code: 'SNOWFLAKE_SECOND_USER' });
  }
  return { channel, settings: { ...settings, workerId: channel.workerId } };
}

module.exports = { openLease, openNow, openedFor, prepare };
