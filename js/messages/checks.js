'use strict';
// Checks values from applications. Nothing is coerced, masked or silently replaced by a default: a wrong value is an
// error with a remedy.

const { isAbsolute } = require('node:path');
const { fileURLToPath } = require('node:url');

const { environmentNames, environmentOf } = require('../runtime/environment.js');
const { configError, describe, fromCaller } = require('./errors.js');
const { isSameName, suggestedName, noSuchName } = require('../ids/names.js');
const { propertyOf, readAll, unknownIn } = require('../ids/properties.js');

const warnings = () => require('./warnings.js');

/** @import { Properties, ToError } from '../types.js' */

/**
 * The properties of an untrusted object that are in `keys`. Reads each once. An exception of a getter or a proxy trap
 * becomes a cause.
 * @template {string} K
 * @param {unknown} object
 * @param {string} what
 * @param {readonly K[]} keys
 * @param {ToError} toError returns the error for a message
 * @returns {Properties<object, K>}
 */
function propertiesOf(object, what, keys, toError) {
  if (object === null || typeof object !== 'object') throw notAnObject(object, what, toError);
  let unknown;
  let isObject;
  let properties;
  try {
    // Excludes arrays, Maps, Dates, boxed numbers and buffers, whose properties are no options.
    isObject = Object.prototype.toString.call(object) === '[object Object]';
    if (isObject) {
      unknown = unknownIn(object, keys);
      properties = readAll(object, keys);
    }
  } catch (cause) {
    throw toError(`${what} cannot be read: ${describe(cause)}`, { cause });
  }
  if (!isObject) throw notAnObject(object, what, toError);
  if (unknown !== undefined) {
    throw toError(noSuchName(what, unknown, keys, describe));
  }
  return /** @type {Properties<object, K>} */ (properties);
}

/**
 * The type of a member of a value; 'undefined' if it cannot be read, as of a proxy that throws.
 * @param {unknown} value
 * @param {string} name
 */
function memberType(value, name) {
  try {
    return typeof propertyOf(Object(value), name);
  } catch {
    return 'undefined';
  }
}

/**
 * @param {unknown} object
 * @param {string} what
 * @param {ToError} toError
 */
function notAnObject(object, what, toError) {
  return fromCaller(toError(`${what} must be an object; it is ${describe(object)}`), notAnObject);
}

/**
 * Options that decide which IDs are generated, or that protect something. If such an option is present, it must have a
 * value, so that an unset variable does not turn off protection.
 */
const GIVEN = [
  ...['lease', 'state', 'from', 'scope', 'layout', 'epoch', 'namespace', 'schema', 'user'],
  ...['password', 'tls', 'server', 'token', 'ca', 'kubernetesNamespace', 'flake', 'nextIdString'],
];

/**
 * Reads options by propertiesOf(). Refuses empty values of options in GIVEN.
 * @template {string} K
 * @param {unknown} options
 * @param {string} what
 * @param {readonly K[]} keys
 */
function optionsOf(options, what, keys) {
  const given = propertiesOf(options, what, keys, configError);
  const values = /** @type {{ [name: string]: unknown }} */ (given);
  for (const name of GIVEN) if (name in given) checkGiven(name, values[name], `leave ${name} out`);
  return given;
}

/**
 * Refuses a value that is given, but undefined, null or empty.
 * @param {string} name
 * @param {unknown} value
 * @param {string} remedy what to do if that is intended
 */
function checkGiven(name, value, remedy) {
  if (value !== undefined && value !== null && value !== '') return;
  throw configError(
    `${name} is ${describe(value)}: check that the variable it comes from is set, or ${remedy}`,
  );
}

const VARIABLES = ['SNOWDRIFT_LEASE', 'SNOWDRIFT_STATE', 'SNOWDRIFT_SHARED', 'SNOWDRIFT_TOKEN'];

/**
 * The variables whose misspellings were searched for. Once per thread, since listing the environment takes as long as
 * opening a generator.
 */
const looked = new Set();

/**
 * A variable of the environment that snowdrift reads; undefined if it is not set.
 * @param {string} name
 * @returns {string | undefined}
 */
function variable(name) {
  const text = environmentOf(name);
  // Node turns these values into texts when they are assigned to a variable.
  if (text !== undefined && ['', 'undefined', 'null'].includes(text)) {
    const what = text === '' ? 'empty' : describe(text);
    throw configError(`the environment variable ${name} is ${what}: give it a value, or unset it`);
  }
  if (text === undefined && !looked.has(name)) {
    checkMisspelt(name);
    looked.add(name);
  }
  checkStray(`the environment variable ${name}`, text);
  return text;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: V8 takes 0.2 ms to parse a regular expression with \p{}
const CONTROL = /[\0-\x1f\x7f-\x9f\u2028\u2029]/u;
const QUOTES = new Set('\'"`\u2018\u2019\u201c\u201d');
/** @type {{ [control: string]: string }} */
const NAMES = { '\r': 'a carriage return', '\n': 'a line feed', '\t': 'a tab' };

/**
 * Refuses stray characters in a path, a URL or a secret, such as the carriage return of a file from Windows, or quotes
 * that no shell removed: they would name another directory. Takes linear time. The message does not show the text.
 * @param {string} name
 * @param {unknown} text
 */
function checkStray(name, text) {
  if (typeof text !== 'string' || text === '') return;
  const control = CONTROL.exec(text)?.[0];
  const code = control?.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  const found = [
    control !== undefined && `${NAMES[control] ?? 'a control character'} (U+${code})`,
    control === undefined && text.trim() !== text && 'white space around it',
    (QUOTES.has(text[0]) || QUOTES.has(text.slice(-1))) && 'quotes around it',
  ].filter(Boolean);
  if (found.length === 0) return;
  throw configError(`${name} has ${found.join(' and ')}: write it without`);
}

/**
 * Refuses a variable whose name differs only in case, separators or a plural. Warns of one with a similar name, which
 * may be the application's own, such as SNOWDRIFT_STAGE.
 * @param {string} name
 */
function checkMisspelt(name) {
  const others = environmentNames().filter(
    (one) => /^snowdrift/i.test(one) && !VARIABLES.includes(one),
  );
  const misspelt = others.find((one) => isSameName(one, name) || isSameName(one, `${name}S`));
  if (misspelt !== undefined) {
    throw configError(
      `the environment variable ${misspelt} is not read: rename it to ${name}, or unset it`,
    );
  }
  const near = others.find((one) => suggestedName(one, VARIABLES) === name);
  if (near !== undefined) warnings().warnOfVariable(near, name);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} min
 * @param {number} max
 * @param {ToError} [toError]
 * @returns {number}
 */
function wholeNumber(name, value, min, max, toError = configError) {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    const type = typeof value === 'string' ? 'the string ' : '';
    throw toError(
      `${name} must be a whole number from ${min} to ${max}; it is ${type}${describe(value)}`,
    );
  }
  // Turns -0 into 0.
  return value + 0;
}

/**
 * A worker or datacenter ID of at most this many bits.
 * @param {string} name
 * @param {unknown} value
 * @param {number} bits
 */
function fieldNumber(name, value, bits) {
  if (bits === 0 && value !== 0) {
    throw configError(
      `${name} must be 0, since the layout has no bits for it; it is ${describe(value)}`,
    );
  }
  return wholeNumber(name, value, 0, 2 ** bits - 1);
}

/**
 * @template {string} T
 * @param {string} name
 * @param {unknown} value
 * @param {readonly T[]} choices
 */
function choice(name, value, choices) {
  if (!(/** @type {readonly unknown[]} */ (choices).includes(value))) {
    const list = choices.map((one) => `'${one}'`).join(', ');
    throw configError(`${name} must be one of ${list}; it is ${describe(value)}`);
  }
  return /** @type {T} */ (value);
}

/**
 * The Unix ms of a Date or a number. Drops fractions of a ms.
 * @param {string} name
 * @param {unknown} time
 * @param {ToError} toError
 */
function unixMs(name, time, toError) {
  let ms = time;
  if (typeof time === 'object' && time !== null) {
    try {
      // Date's own method refuses an imitation of a Date, ignores a replaced getTime, and accepts a Date of another
      // realm (vm, test runners).
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

/** The longest path of any system: that of Windows. */
const LONGEST_PATH = 32_767;

const EXAMPLE = 'file:///var/lib/app/ids';

/**
 * Refuses misleading file: URLs: a parser reads file:ids as /ids, and ignores options.
 * @param {string} name
 * @param {unknown} place a URL or a text. Other values pass
 */
function checkFileUrl(name, place) {
  const text = place instanceof URL ? place.href : String(place);
  const [, rest] = /^file:(.*)$/is.exec(text.slice(0, LONGEST_PATH)) ?? [];
  if (rest === undefined) return;
  const [path] = rest.split(/[?#]/, 1);
  if (!/^[/\\]/.test(path)) {
    throw configError(
      `${name} must be a file: URL with an absolute path, such as '${EXAMPLE}'; it is ${describe(text)}`,
    );
  }
  if (path.length < rest.length) {
    throw configError(
      `${name} has options or a fragment, which a directory cannot have; it is ${describe(text)}: leave out what begins with '?' or '#', give each namespace a directory of its own, and write '?' and '#' in its path as %3F and %23`,
    );
  }
}

/**
 * Whether a value is a URL. A proxy may throw when it is asked.
 * @param {unknown} value
 * @returns {value is URL}
 */
function isUrl(value) {
  try {
    return value instanceof URL;
  } catch {
    return false;
  }
}

/**
 * The path of a directory, from a path or a file: URL.
 * @param {string} name
 * @param {unknown} place
 * @param {{ urlOnly: boolean }} options
 */
function directoryOf(name, place, { urlOnly }) {
  checkStray(name, place);
  let path = urlOnly ? undefined : place;
  if (isUrl(place) || (typeof place === 'string' && /^file:/i.test(place))) {
    checkFileUrl(name, place);
    try {
      path = fileURLToPath(place);
    } catch {
      // Without the cause, which would show the URL.
      throw configError(
        `${name} must be a file: URL with an absolute path and three slashes, such as '${EXAMPLE}'; it is ${describe(place)}`,
      );
    }
  }
  // A relative path is another directory for a process that starts elsewhere. Relative are also URLs of other schemes and
  // connection strings, which would become names of directories.
  if (
    typeof path !== 'string' ||
    path.length > LONGEST_PATH ||
    path.includes('\0') ||
    !isAbsolute(path)
  ) {
    const [wanted, remedy] = urlOnly
      ? [
          `a URL such as '${EXAMPLE}'`,
          ". A server's URL, such as 'postgres://db/app', is for await SnowFlake.lease(url), and SnowFlake.use() makes that the default instance",
        ]
      : ["the absolute path of a directory, such as '/var/lib/app/ids'", ''];
    throw configError(`${name} must be ${wanted}; it is ${describe(place)}${remedy}`);
  }
  // A URL may have percent-encoded stray characters.
  checkStray(name, path);
  return path;
}

/** The directory of SNOWDRIFT_SHARED, which is one for all processes of a host, wherever they start. */
function sharedDirectory() {
  const place = variable('SNOWDRIFT_SHARED');
  const name = 'the environment variable SNOWDRIFT_SHARED';
  return place === undefined ? undefined : directoryOf(name, place, { urlOnly: false });
}

/**
 * The number of a text of digits without leading zeros; NaN for any other text.
 * @param {string | undefined} text
 */
function numberIn(text) {
  return /^(0|[1-9][0-9]*)$/.test(String(text)) ? Number(text) : Number.NaN;
}

module.exports = {
  checkFileUrl,
  checkGiven,
  checkStray,
  choice,
  directoryOf,
  fieldNumber,
  memberType,
  numberIn,
  optionsOf,
  propertiesOf,
  sharedDirectory,
  unixMs,
  variable,
  wholeNumber,
};
