'use strict';
// The causes of errors. An error of the application's own code stays as it is. An error of a client is replaced by a
// copy of its texts: its other properties may have a secret that snowdrift does not know, such as the password of a
// client that the application opened.

const { types } = require('node:util');

const { ownOf, readAll } = require('../ids/properties.js');
const { knowsSecrets, redactForeign, redactFrames, showsNone } = require('./secrets.js');

/** @import { Failure } from '../types.js' */

/** The limits of the search in a cause: values, and characters of texts. */
const MOST_VALUES = 2000;
const MOST_SEARCHED = 2e6;

/**
 * @param {unknown} value
 * @returns {value is object}
 */
const isObject = (value) => Object(value) === value;

/** The errors of clients. A set, since an error may be frozen. */
const ofClients = new WeakSet();

/**
 * Notes that a client threw this error. The error itself stays unchanged, for code that reads its code and text.
 * @template T
 * @param {T} failure
 */
function noteClient(failure) {
  if (isObject(failure)) ofClients.add(failure);
  return failure;
}

/**
 * The values that a value contains. Runs no code of the application.
 * @param {object} value
 * @returns {Generator<unknown, void, undefined>}
 */
function* valuesIn(value) {
  for (const key of Reflect.ownKeys(value)) {
    yield Object.getOwnPropertyDescriptor(value, key)?.value;
  }
  if (types.isMap(value)) yield* Map.prototype.entries.call(value);
  if (types.isSet(value)) yield* Set.prototype.values.call(value);
  if (types.isNativeError(value)) yield value.stack;
}

/**
 * Whether a value, or one that it contains, is a client's error or shows a secret. A value too large to search counts
 * as one that does.
 * @param {unknown} value
 */
function showsSecret(value) {
  const found = new Set([value]);
  let length = 0;
  for (const one of found) {
    if (isObject(one) && ofClients.has(one)) return true;
    if (typeof one === 'string') {
      length += one.length;
      if (length > MOST_SEARCHED) return knowsSecrets();
      if (!showsNone(one)) return true;
    }
    if (!isObject(one) || types.isProxy(one) || ArrayBuffer.isView(one)) continue;
    if (Array.isArray(one) && one.length > MOST_VALUES) return knowsSecrets();
    for (const part of valuesIn(one)) {
      if (found.add(part).size > MOST_VALUES) return knowsSecrets();
    }
  }
  return false;
}

/**
 * The frames of a stack, without the message.
 * @param {{ stack?: unknown }} error
 * @param {string} message
 */
function framesOf({ stack }, message) {
  if (typeof stack !== 'string') return '';
  // The message comes before the frames.
  const start = stack.indexOf('\n    at ', message.length);
  if (start < 0) return '';
  return redactFrames(stack.slice(start));
}

const MOST_CAUSES = 3;
const MOST_ERRORS = 8;

/**
 * A copy of a client's error, with its texts without secrets. It lacks the other properties, which may show secrets:
 * ioredis adds the failed command, with its password.
 * @param {unknown} error
 * @param {number} [depth]
 * @returns {unknown}
 */
function copyError(error, depth = 0) {
  if (typeof error === 'string') return redactForeign(error);
  if (!isObject(error)) return error;
  try {
    const read = readAll(error, ['name', 'code', 'errno', 'cause', 'errors']);
    const { name = 'Error', code, errno, cause, errors } = read;
    const message = String(/** @type {Failure} */ (error).message ?? '');
    const copy = /** @type {Error & { [name: string]: unknown }} */ (
      new Error(redactForeign(message))
    );
    /** @type {(key: string, value: unknown) => void} */
    const set = (key, value) =>
      Object.defineProperty(copy, key, ownOf({ value, configurable: true }));
    set('name', redactForeign(String(name)));
    set('stack', `${copy.name}: ${copy.message}${framesOf(error, message)}`);
    if (typeof code === 'string') copy.code = redactForeign(code);
    for (const [key, value] of Object.entries({ code, errno })) {
      if (typeof value === 'number') copy[key] = value;
    }
    if (depth === MOST_CAUSES) return copy;
    if (cause !== undefined) set('cause', copyError(cause, depth + 1));
    if (Array.isArray(errors)) {
      set(
        'errors',
        errors.slice(0, MOST_ERRORS).map((each) => copyError(each, depth + 1)),
      );
    }
    return copy;
  } catch {
    return new Error('the cause cannot be read');
  }
}

/**
 * A cause without secrets: a copy of a client's error or of a value that shows a secret; any other value itself.
 * @param {unknown} cause
 */
function redactCause(cause) {
  try {
    return showsSecret(cause) ? copyError(cause) : cause;
  } catch {
    return new Error('the cause cannot be read');
  }
}

module.exports = { copyError, noteClient, redactCause };
