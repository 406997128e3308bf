'use strict';
// What applications pass in, checked. Nothing is coerced, defaulted silently or masked: what is not
// exactly what it should be is an error that says what to do.

const {
  argumentError,
  clockError,
  configError,
  granted,
  invalidId,
  shown,
} = require('./errors.js');
const native = require('./native.js');

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
const CLOCK_BACK = ['counter', 'wait', 'throw'];
const SEQUENCE_START = ['zero', 'random'];

const OPTION_KEYS = [
  'datacenterId',
  'workerId',
  'layout',
  'epoch',
  'clockBack',
  'maxWait',
  'maxAhead',
  'sequenceStart',
  'clock',
];

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
  const read = {};
  try {
    // Not an array, a Map, a Date, a boxed number, a buffer: their properties say nothing here.
    isObject = Object.prototype.toString.call(object) === '[object Object]';
    unknown = Object.keys(object).find((key) => !keys.includes(key));
    for (const key of keys) read[key] = object[key];
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
  return value;
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
    read = propertiesOf(layout, 'layout', LAYOUT_KEYS, configError);
    for (const key of LAYOUT_KEYS.slice(0, 5)) wholeNumber(key, read[key], 0, 63);
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
        'Give each process its own, for example with cluster.fork({ datacenterId: 1, workerId: 3 }), ' +
        `or pass ${name} to the constructor or SnowFlake.configure()`,
    );
  }
  return Number(held);
}

/** All that a generator is opened with. */
function readOptions(options = {}) {
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
  return {
    layout,
    datacenterId: nodeField('datacenterId', given.datacenterId, layout.datacenterBits),
    workerId: nodeField('workerId', given.workerId, layout.workerBits),
    clockBack,
    maxWait,
    maxAhead,
    sequenceStart,
    clock: given.clock,
  };
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
  layouts,
  readClock,
  readCount,
  readFields,
  readId,
  readLayout,
  readOptions,
  unixMs,
};
