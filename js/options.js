'use strict';
// What applications pass in, checked. Nothing is coerced, defaulted silently or masked: what is not
// exactly what it should be is an error that says what to do.

const { fileURLToPath } = require('node:url');

const {
  argumentError,
  clockError,
  configError,
  granted,
  invalidId,
  shown,
} = require('./errors.js');
const native = require('./native.js');
const { unixNow } = require('./time.js');

const LAYOUT_KEYS = [
  'timestampBits',
  'datacenterBits',
  'workerBits',
  'clockBackBits',
  'sequenceBits',
  'tickMs',
  'epoch',
];

/** Choices and bounds of the options that are not about the node. ms. */
const MAX_WAIT_MS = 60_000;
const MAX_AHEAD_MS = 3_600_000;
const DEFAULT_MAX_WAIT_MS = 10;
const TTL_MS = { min: 1000, max: 3_600_000, usual: 10_000 };
const ENGINE_TTL_MS = 30_000;
const MAX_WAIT_FOR_SLOT_MS = 3_600_000;
/** Twitter Snowflake's bound (its SnowflakeServer refuses to start beyond it). */
const MAX_CLOCK_SKEW_MS = 10_000;
const CALL_TIMEOUT_MS = 5000;
const CLOCK_BACK = ['counter', 'wait', 'throw'];
const SEQUENCE_START = ['zero', 'random'];
const SCOPES = ['auto', 'host', 'process'];

const OPTION_KEYS = [
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
];

/** What only SnowFlake.lease() with an engine knows. */
const ENGINE_KEYS = ['maxClockSkew', 'callTimeout', 'thread'];

/** The most IDs of one batch: 8 MB, and a quarter of a second on the default layout. */
const MAX_COUNT = 1_000_000;

const LARGEST_ID = 2n ** 63n - 1n;

const layouts = Object.freeze(
  Object.fromEntries(native.presets().map(({ name, layout }) => [name, Object.freeze(layout)])),
);

/**
 * The named properties of an object that is not trusted, each read once. An exception of its
 * getters or proxy traps becomes a cause.
 */
function propertiesOf(object, what, keys, fault) {
  const notAnObject = `${what} must be an object; it is ${shown(object)}`;
  if (object === null || typeof object !== 'object') throw fault(notAnObject);
  let unknown;
  let isObject;
  const read = { __proto__: null };
  try {
    // Not an array, a Map, a Date, a boxed number, a buffer: their properties say nothing here.
    isObject = Object.prototype.toString.call(object) === '[object Object]';
    unknown = Object.keys(object).find((key) => !keys.includes(key));
    // What somebody has put on Object.prototype is no option.
    const isOption = (key) => !Object.hasOwn(Object.prototype, key) || Object.hasOwn(object, key);
    for (const key of keys) read[key] = isOption(key) ? object[key] : undefined;
  } catch (cause) {
    throw fault(`${what} cannot be read: ${shown(cause)}`, { cause });
  }
  if (!isObject) throw fault(notAnObject);
  if (unknown !== undefined) {
    throw fault(`${what} has no '${unknown}'. It knows ${keys.join(', ')}`);
  }
  return read;
}

function wholeNumber(name, value, min, max, fault = configError) {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw fault(`${name} must be a whole number from ${min} to ${max}; it is ${shown(value)}`);
  }
  // -0 is 0.
  return value + 0;
}

function choice(name, value, choices) {
  if (!choices.includes(value)) {
    const list = choices.map((one) => `'${one}'`).join(', ');
    throw configError(`${name} must be one of ${list}; it is ${shown(value)}`);
  }
  return value;
}

/** Unix ms of a Date or a number of ms. A fraction of a ms is dropped. */
function unixMs(name, time, fault) {
  let ms = time;
  if (typeof time === 'object' && time !== null) {
    try {
      // Of Date itself: an object that only looks like one is refused, and so is one whose getTime
      // was replaced. A Date of another realm (vm, test runners) is one.
      ms = Date.prototype.getTime.call(time);
    } catch {
      ms = undefined;
    }
  }
  if (typeof ms !== 'number' || !(Math.abs(ms) <= 8.64e15)) {
    throw fault(`${name} must be a valid Date or a number of Unix ms; it is ${shown(time)}`);
  }
  return Math.floor(ms);
}

/** A layout by name or as an object, frozen. */
function readLayout(layout, epoch) {
  let read;
  if (typeof layout === 'string') {
    if (!Object.hasOwn(layouts, layout)) {
      const names = Object.keys(layouts).join("', '");
      throw configError(`layout must be '${names}' or an object; it is ${shown(layout)}`);
    }
    read = { ...layouts[layout] };
  } else {
    read = { ...propertiesOf(layout, 'layout', LAYOUT_KEYS, configError) };
    for (const key of LAYOUT_KEYS.slice(0, 5)) read[key] = wholeNumber(key, read[key], 0, 63);
    wholeNumber('tickMs', read.tickMs, 1, 86_400_000);
    read.epoch = unixMs('epoch of the layout', read.epoch, configError);
  }
  if (epoch !== undefined) read.epoch = unixMs('epoch', epoch, configError);
  granted(native.checkLayout(read));
  return Object.freeze(read);
}

/** datacenterId or workerId: from the options, else from the environment of the calling thread. */
function nodeField(name, option, bits) {
  const max = 2 ** bits - 1;
  if (option !== undefined) return wholeNumber(name, option, 0, max);
  if (bits === 0) return 0;
  const held = process.env[name];
  const found = held === undefined ? 'is not set' : `holds ${shown(held)}`;
  // Plain digits without leading zeros: the environment has nothing to be lenient about.
  if (held === undefined || !/^(0|[1-9][0-9]{0,15})$/.test(held) || Number(held) > max) {
    throw configError(
      `the environment variable ${name} ${found}; it must be a whole decimal number from 0 to ${max}. ` +
        'Set it before the process starts, for example datacenterId=1 workerId=3 node server.js or ' +
        `cluster.fork({ datacenterId: 1, workerId: 3 }), or pass ${name} to the constructor or SnowFlake.configure()`,
    );
  }
  return Number(held);
}

/** The path of a directory: from a path, or from a file: URL. */
function directoryOf(name, place, { urlOnly }) {
  let path = place;
  try {
    if (place instanceof URL || (typeof place === 'string' && place.startsWith('file:'))) {
      path = fileURLToPath(place);
    } else if (urlOnly) {
      path = undefined;
    }
  } catch {
    // Its cause would show the URL.
    throw configError(`${name} must be a file: URL with an absolute path; it is ${shown(place)}`);
  }
  // A URL of another scheme is no path, and may hold a password.
  const isUrl = typeof path === 'string' && /^[a-z][a-z0-9+.-]+:\/\//i.test(path);
  if (typeof path !== 'string' || path === '' || path.includes('\0') || isUrl) {
    const wanted = urlOnly
      ? "a file: URL, such as 'file:///var/lib/app/ids'; engines need time to answer: await SnowFlake.lease(url)"
      : "the path of a directory, such as '/var/lib/app/ids'";
    throw configError(`${name} must be ${wanted}; it is ${shown(place)}`);
  }
  return path;
}

/** Where the node is recorded, if it is: by the options, else by the environment. */
function readRecording(given) {
  const { SNOWDRIFT_STATE, SNOWDRIFT_LEASE } = process.env;
  let { state, lease } = given;
  let names = { state: 'state', lease: 'lease' };
  // A clock of its own is for tests, and so has a state of its own.
  if (state === undefined && lease === undefined && given.clock === undefined) {
    state = SNOWDRIFT_STATE;
    lease = SNOWDRIFT_LEASE;
    names = {
      state: 'the environment variable SNOWDRIFT_STATE',
      lease: 'the environment variable SNOWDRIFT_LEASE',
    };
  }
  if (state === undefined && lease === undefined) {
    for (const name of ['ttl', 'waitForSlot']) {
      if (given[name] !== undefined) throw configError(`${name} needs state or lease`);
    }
    return undefined;
  }
  if (state !== undefined && lease !== undefined) {
    throw configError(
      `${names.state} and ${names.lease} are both given: state is for the workerId you name, lease takes any free one. Give one of them`,
    );
  }
  if (given.clock !== undefined) {
    throw configError(
      'an instance with a clock of its own is not recorded: leave out state, lease',
    );
  }
  if (lease !== undefined && given.workerId !== undefined) {
    throw configError(
      `${names.lease} takes any free workerId: leave out workerId, or use state instead of lease`,
    );
  }
  const otherwise = (name, usual) => (given[name] === undefined ? usual : given[name]);
  return {
    anyWorker: lease !== undefined,
    directory:
      lease === undefined
        ? directoryOf(names.state, state, { urlOnly: false })
        : directoryOf(names.lease, lease, { urlOnly: true }),
    ttl: wholeNumber('ttl', otherwise('ttl', TTL_MS.usual), TTL_MS.min, TTL_MS.max),
    wait: wholeNumber('waitForSlot', otherwise('waitForSlot', 0), 0, MAX_WAIT_FOR_SLOT_MS),
    ...holderOf(),
  };
}

/** All that a generator is opened with. */
function readOptions(options = {}, { isLeased } = { isLeased: false }) {
  const given = propertiesOf(options, 'options', OPTION_KEYS, configError);
  const layout = readLayout(given.layout === undefined ? 'node' : given.layout, given.epoch);
  const inForce = (name, otherwise) => (given[name] === undefined ? otherwise : given[name]);
  const clockBack = choice(
    'clockBack',
    inForce('clockBack', layout.clockBackBits > 0 ? 'counter' : 'wait'),
    CLOCK_BACK,
  );
  if (clockBack === 'counter' && layout.clockBackBits === 0) {
    throw configError(
      "clockBack 'counter' needs a layout with clockBackBits; use 'wait' or 'throw', or another layout",
    );
  }
  const maxWait = wholeNumber('maxWait', inForce('maxWait', DEFAULT_MAX_WAIT_MS), 0, MAX_WAIT_MS);
  const maxAhead = wholeNumber('maxAhead', inForce('maxAhead', 0), 0, MAX_AHEAD_MS);
  const sequenceStart = choice('sequenceStart', inForce('sequenceStart', 'zero'), SEQUENCE_START);
  if (given.clock !== undefined && typeof given.clock !== 'function') {
    throw configError(
      `clock must be a function that returns Unix ms, such as Date.now; it is ${shown(given.clock)}`,
    );
  }
  const recording = isLeased ? undefined : readRecording(given);
  const scope = choice('scope', inForce('scope', 'auto'), SCOPES);
  if (scope === 'host' && given.clock !== undefined) {
    throw configError(
      "an instance with a clock of its own shares no sequence: leave out scope 'host' or clock",
    );
  }
  return {
    layout,
    datacenterId: nodeField('datacenterId', given.datacenterId, layout.datacenterBits),
    workerId:
      isLeased || recording?.anyWorker
        ? undefined
        : nodeField('workerId', given.workerId, layout.workerBits),
    clockBack,
    maxWait,
    maxAhead,
    sequenceStart,
    scope,
    shared: process.env.SNOWDRIFT_SHARED || undefined,
    clock: given.clock,
    recording,
  };
}

/** Who asks for a slot. */
function holderOf() {
  // Here, since loading it takes half a ms and not everyone records.
  const { hostname } = require('node:os');
  return { host: hostname(), started: Math.round(unixNow() - process.uptime() * 1000) };
}

/** The options of SnowFlake.lease() with a file store, which takes any worker ID. */
function readLeaseOptions(lease, options = {}) {
  return readOptions({ ...propertiesOf(options, LEASE_OPTIONS, leaseKeys(), configError), lease });
}

/** The options of SnowFlake.lease() with an engine. */
function readEngineOptions(options = {}) {
  const { maxClockSkew, callTimeout, thread, ttl, waitForSlot, ...given } = propertiesOf(
    options,
    LEASE_OPTIONS,
    [...leaseKeys(), ...ENGINE_KEYS],
    configError,
  );
  if (thread !== undefined && typeof thread !== 'boolean') {
    throw configError(`thread must be true or false; it is ${shown(thread)}`);
  }
  const number = (name, value, usual, min, max) =>
    wholeNumber(name, value === undefined ? usual : value, min, max);
  const leasing = {
    ttl: number('ttl', ttl, ENGINE_TTL_MS, TTL_MS.min, TTL_MS.max),
    wait: number('waitForSlot', waitForSlot, 0, 0, MAX_WAIT_FOR_SLOT_MS),
    maxClockSkew: number('maxClockSkew', maxClockSkew, MAX_CLOCK_SKEW_MS, 0, 86_400_000),
    inThread: thread === true,
    callTimeout: number('callTimeout', callTimeout, CALL_TIMEOUT_MS, 1, MAX_WAIT_MS),
    ...holderOf(),
  };
  // A lease of its own takes the place of what the environment says of one.
  const { recording, ...settings } = readOptions(given, { isLeased: true });
  return { ...settings, leasing };
}

const LEASE_OPTIONS = 'options of SnowFlake.lease()';

function leaseKeys() {
  return OPTION_KEYS.filter((key) => !['workerId', 'state', 'lease', 'clock'].includes(key));
}

function readCount(count) {
  return wholeNumber('count', count, 0, MAX_COUNT, argumentError);
}

/** An ID as a BigInt of 0 to 2^63 - 1. */
function readId(id) {
  if (typeof id === 'number') {
    throw invalidId(
      `an ID must be a bigint or a decimal string; a number such as ${id} holds no more than 53 bits, so it may be another ID already`,
    );
  }
  let read = id;
  // The length is checked first: a BigInt of a long string takes long to make.
  if (typeof id === 'string' && /^(0|[1-9][0-9]{0,18})$/.test(id)) read = BigInt(id);
  if (typeof read !== 'bigint' || read < 0n || read > LARGEST_ID) {
    throw invalidId(
      `an ID must be a bigint or a string of decimal digits, from 0 to ${LARGEST_ID}; it is ${shown(id)}`,
    );
  }
  return read;
}

/** Fields to compose an ID of; those left out come from `otherwise`. */
function readFields(fields, otherwise, layout) {
  // `id` and `date` are in what parse() returns, so that it can be passed back; they say nothing new.
  const keys = ['timestamp', 'datacenterId', 'workerId', 'clockBack', 'sequence', 'id', 'date'];
  const given = propertiesOf(fields, 'fields', keys, argumentError);
  const field = (name, bits) =>
    given[name] === undefined
      ? otherwise[name]
      : wholeNumber(name, given[name], 0, 2 ** bits - 1, argumentError);
  return {
    timestamp:
      given.timestamp === undefined
        ? otherwise.timestamp
        : unixMs('timestamp', given.timestamp, argumentError),
    datacenterId: field('datacenterId', layout.datacenterBits),
    workerId: field('workerId', layout.workerBits),
    clockBack: field('clockBack', layout.clockBackBits),
    sequence: field('sequence', layout.sequenceBits),
  };
}

/** What an application's clock shows, whole Unix ms. */
function readClock(clock) {
  let now;
  try {
    now = clock();
  } catch (cause) {
    throw clockError(`the clock option threw ${shown(cause)}`, { cause });
  }
  return unixMs('what the clock option returns', now, clockError);
}

module.exports = {
  ENGINE_KEYS,
  OPTION_KEYS,
  choice,
  directoryOf,
  layouts,
  propertiesOf,
  readClock,
  readCount,
  readFields,
  readEngineOptions,
  readId,
  readLayout,
  readLeaseOptions,
  readOptions,
  unixMs,
  wholeNumber,
};
