'use strict';
// The causes of errors. What the application's own code threw stays as it is. Of a client's error there is a copy of
// its texts: its other properties may have a secret that nobody has told us, such as the password of a client that
// the application has opened.

const { types } = require('node:util');

const { readAll } = require('../ids/properties.js');
const { knowsSecrets, redactForeign, redactFrames, showsNone } = require('./secrets.js');

/** How far a cause is searched: values, and characters of texts. */
const MOST_VALUES = 2000;
const MOST_SEARCHED = 2e6;

/** Errors of clients. A set, since an error may be frozen. */
const ofClients = new WeakSet();

/** Notes that a client threw this. It stays as it is for those who read its code and text, up to its copy as a cause. */
function noteClient(failure) {
  if (Object(failure) === failure) ofClients.add(failure);
  return failure;
}

/** The values that a value leads to. Runs no code of the application. */
function* valuesIn(value) {
  for (const key of Reflect.ownKeys(value)) {
    yield Object.getOwnPropertyDescriptor(value, key)?.value;
  }
  if (types.isMap(value)) yield* Map.prototype.entries.call(value);
  if (types.isSet(value)) yield* Set.prototype.values.call(value);
  if (types.isNativeError(value)) yield value.stack;
}

/**
 * Whether a value, or one that it leads to, is a client's error or shows a secret. What is too large to search may show
 * any.
 */
function showsSecret(value) {
  const found = new Set([value]);
  let length = 0;
  for (const one of found) {
    if (ofClients.has(one)) return true;
    if (typeof one === 'string') {
      length += one.length;
      if (length > MOST_SEARCHED) return knowsSecrets();
      if (!showsNone(one)) return true;
    }
    if (Object(one) !== one || types.isProxy(one) || ArrayBuffer.isView(one)) continue;
    if (Array.isArray(one) && one.length > MOST_VALUES) return knowsSecrets();
    for (const part of valuesIn(one)) {
      if (found.add(part).size > MOST_VALUES) return knowsSecrets();
    }
  }
  return false;
}

/** The lines of a stack that name functions and files. */
function framesOf({ stack }, message) {
  if (typeof stack !== 'string') return '';
  // What comes before is the message.
  const start = stack.indexOf('\n    at ', message.length);
  if (start < 0) return '';
  return redactFrames(stack.slice(start));
}

const MOST_CAUSES = 3;
const MOST_ERRORS = 8;

/**
 * A copy of a client's error: its texts without secrets. Its other properties may have any: ioredis notes the command
 * that failed, with its password.
 */
function copyError(error, depth = 0) {
  if (typeof error === 'string') return redactForeign(error);
  if (Object(error) !== error) return error;
  try {
    const read = readAll(error, ['name', 'code', 'errno', 'cause', 'errors']);
    const { name = 'Error', code, errno, cause, errors } = read;
    const message = String(error.message ?? '');
    const copy = new Error(redactForeign(message));
    const set = (key, value) =>
      Object.defineProperty(copy, key, { __proto__: null, value, configurable: true });
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

/** A cause: what the application's own code threw; of a client's error, and of what shows a secret, a copy. */
function redactCause(cause) {
  try {
    return showsSecret(cause) ? copyError(cause) : cause;
  } catch {
    return new Error('the cause cannot be read');
  }
}

module.exports = { copyError, noteClient, redactCause };
