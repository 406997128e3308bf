'use strict';
// Reads the properties of objects that applications pass. Needs no Node API.

const { show } = require('./shown.js');

/** An object that inherits from more is a proxy without an end. */
const MOST_OF_CHAIN = 100;

/** An object and all that it inherits from, but for Object.prototype. */
function chainOf(object) {
  const chain = [];
  for (let one = object; one !== null && one !== Object.prototype; ) {
    if (chain.push(one) > MOST_OF_CHAIN) throw new RangeError('its prototypes have no end');
    one = Object.getPrototypeOf(one);
  }
  return chain;
}

/** Those that are present: own, or inherited, such as getters. Those of a polluted Object.prototype are not. */
function readAll(object, keys) {
  const properties = { __proto__: null };
  const has = (key) => chainOf(object).some((one) => Object.hasOwn(one, key));
  for (const key of keys) {
    if (Object.hasOwn(Object.prototype, key) && !has(key)) continue;
    const value = object[key];
    // Not by `in` alone: a proxy may answer it for all properties or for none.
    if (value !== undefined || key in object) properties[key] = value;
  }
  return properties;
}

/** A property of an application's object; undefined where only a polluted Object.prototype has it. */
const propertyOf = (object, name) => readAll(object, [name])[name];

/**
 * The name of a property that is none of `known`: an own one, or one that is inherited as options are, from an object with
 * defaults or as a getter. A method of a class is none.
 */
function unknownIn(object, known) {
  const own = Object.keys(object).find((name) => !known.includes(name));
  if (own !== undefined || Object.getPrototypeOf(object) === Object.prototype) return own;
  for (const one of chainOf(object).slice(1)) {
    const name = Object.getOwnPropertyNames(one).find((each) => {
      // Object.prototype of another realm has a getter, too: that of __proto__.
      if (known.includes(each) || Object.hasOwn(Object.prototype, each)) return false;
      const { enumerable, value } = ownOf(Object.getOwnPropertyDescriptor(one, each));
      return value === undefined || (enumerable && typeof value !== 'function');
    });
    if (name !== undefined) return name;
  }
  return undefined;
}

/**
 * A copy without a prototype, so that a polluted Object.prototype adds nothing. For our own objects that may lack a property
 * that code reads: native ones, settings, and the rest of a destructuring.
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
    unknown = unknownIn(object, [...keys, ...ignored]);
    copy = readAll(object, keys);
  } catch {
    throw toError(`${what} cannot be read`);
  }
  if (unknown === undefined) return copy;
  // Without the name that is meant: names.js would be a fifth of a bundle for browsers.
  throw toError(`${what} has no ${showName(unknown)}. It knows ${keys.join(', ')}`);
}

module.exports = { NONE, copyOf, ownOf, propertyOf, readAll, unknownIn };
