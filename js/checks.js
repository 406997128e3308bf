'use strict';
// Checks of values from applications. Nothing is coerced, defaulted silently or masked: a value that is not
// exactly right is an error with its remedy.

const { fileURLToPath } = require('node:url');

const { configError, describe } = require('./errors.js');

/**
 * The named properties of an untrusted object, each read once. An exception of its getters or proxy traps
 * becomes a cause.
 * @param toError returns the error for a message
 * @param read reads the properties; the default reads all of them by name
 */
function propertiesOf(object, what, keys, toError, read = readAll) {
  if (object === null || typeof object !== 'object') throw notAnObject(object, what, toError);
  let unknown;
  let isObject;
  let properties;
  try {
    // Not an array, a Map, a Date, a boxed number or a buffer: their properties mean nothing here.
    isObject = Object.prototype.toString.call(object) === '[object Object]';
    for (const key of Object.keys(object)) {
      if (!keys.includes(key)) {
        unknown = key;
        break;
      }
    }
    properties = read(object, keys);
  } catch (cause) {
    throw toError(`${what} cannot be read: ${describe(cause)}`, { cause });
  }
  if (!isObject) throw notAnObject(object, what, toError);
  if (unknown !== undefined) {
    throw toError(`${what} has no ${describe(unknown)}. It knows ${keys.join(', ')}`);
  }
  return properties;
}

function notAnObject(object, what, toError) {
  return toError(`${what} must be an object; it is ${describe(object)}`);
}

function readAll(object, keys) {
  const properties = { __proto__: null };
  // A property of a polluted Object.prototype is no option.
  const isOption = (key) => !Object.hasOwn(Object.prototype, key) || Object.hasOwn(object, key);
  for (const key of keys) properties[key] = isOption(key) ? object[key] : undefined;
  return properties;
}

function wholeNumber(name, value, min, max, toError = configError) {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw toError(`${name} must be a whole number from ${min} to ${max}; it is ${describe(value)}`);
  }
  // -0 is 0.
  return value + 0;
}

function choice(name, value, choices) {
  if (!choices.includes(value)) {
    const list = choices.map((one) => `'${one}'`).join(', ');
    throw configError(`${name} must be one of ${list}; it is ${describe(value)}`);
  }
  return value;
}

/** Unix ms of a Date or a number of ms. A fraction of a ms is dropped. */
function unixMs(name, time, toError) {
  let ms = time;
  if (typeof time === 'object' && time !== null) {
    try {
      // The method of Date itself: it refuses an object that only looks like a Date, and ignores a replaced
      // getTime. A Date of another realm (vm, test runners) passes.
      ms = Date.prototype.getTime.call(time);
    } catch {
      ms = undefined;
    }
  }
  if (typeof ms !== 'number' || !(Math.abs(ms) <= 8.64e15)) {
    throw toError(`${name} must be a valid Date or a number of Unix ms; it is ${describe(time)}`);
  }
  return Math.floor(ms);
}

/** Of any system: that of Windows. */
const LONGEST_PATH = 32_767;

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
    throw configError(
      `${name} must be a file: URL with an absolute path; it is ${describe(place)}`,
    );
  }
  // A URL of another scheme is no path, and may contain a password.
  const isPath = typeof path === 'string' && path.length <= LONGEST_PATH && !path.includes('\0');
  if (!isPath || path === '' || /^[a-z][a-z0-9+.-]+:\/\//i.test(path)) {
    const server =
      typeof place === 'string' && /^[./]/.test(place)
        ? ''
        : '; servers need time to answer: await SnowFlake.lease(url), and SnowFlake.use() makes that the default instance';
    const wanted = urlOnly
      ? `a file: URL, such as 'file:///var/lib/app/ids'${server}`
      : "the path of a directory, such as '/var/lib/app/ids'";
    throw configError(`${name} must be ${wanted}; it is ${describe(place)}`);
  }
  return path;
}

/** The number in a text of plain digits, without leading zeros. NaN for any other text. */
function numberIn(text) {
  return /^(0|[1-9][0-9]*)$/.test(text) ? Number(text) : Number.NaN;
}

module.exports = { choice, directoryOf, numberIn, propertiesOf, readAll, unixMs, wholeNumber };
