'use strict';
// Reads the properties of objects that applications pass. Needs no Node API.

const { show } = require('./shown.js');

/** Those that are present: own, or inherited, such as getters. Those of a polluted Object.prototype are not. */
function readAll(object, keys) {
  const properties = { __proto__: null };
  for (const key of keys) {
    if (Object.hasOwn(Object.prototype, key) && !Object.hasOwn(object, key)) continue;
    const value = object[key];
    // Not by `in` alone: a proxy may answer it for all properties or for none.
    if (value !== undefined || key in object) properties[key] = value;
  }
  return properties;
}

/** A property of an application's object; undefined where only a polluted Object.prototype has it. */
const propertyOf = (object, name) => readAll(object, [name])[name];

/**
 * A copy without a prototype, which no polluted Object.prototype adds to. For our own objects that lack some of the properties
 * that are read of them: native ones, settings, and the rest of a destructuring.
 */
const ownOf = (object) => ({ __proto__: null, ...object });

/** Default options: none. */
const NONE = Object.freeze({ __proto__: null });

/**
 * A copy of an application's object, each property read once.
 * @param ignored further keys that it may have
 * @param showName shows the name of any other
 */
function copyOf(object, keys, ignored, what, toError, showName = show) {
  let copy;
  let unknown;
  try {
    unknown = Object.keys(object).find((key) => !keys.includes(key) && !ignored.includes(key));
    copy = readAll(object, keys);
  } catch {
    throw toError(`${what} cannot be read`);
  }
  if (unknown === undefined) return copy;
  // Without the name that is meant: names.js would be a fifth of a bundle for browsers.
  throw toError(`${what} has no ${showName(unknown)}. It knows ${keys.join(', ')}`);
}

module.exports = { NONE, copyOf, ownOf, propertyOf, readAll };
