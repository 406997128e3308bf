'use strict';
// Reads the properties of objects that applications pass. Needs no Node API.

/** @import { Own, Properties, Show, ToError } from '../types.js' */

/** An object with a longer prototype chain is a proxy whose chain has no end. */
const MOST_OF_CHAIN = 100;

/**
 * An object and its prototypes, except Object.prototype.
 * @param {object} object
 */
function chainOf(object) {
  const chain = [];
  for (let one = object; one !== null && one !== Object.prototype; ) {
    if (chain.push(one) > MOST_OF_CHAIN) throw new RangeError('its prototypes have no end');
    one = Object.getPrototypeOf(one);
  }
  return chain;
}

/**
 * The properties that an object has: own ones, and inherited ones such as getters. Ignores a polluted Object.prototype.
 * @template {object} T
 * @template {string} K
 * @param {T} object
 * @param {readonly K[]} keys
 * @returns {Properties<T, K>}
 */
function readAll(object, keys) {
  /** @type {{ [name: string]: unknown }} */
  const properties = { __proto__: null };
  for (const key of keys) {
    /** @param {object} one */
    const hasKey = (one) => Object.hasOwn(one, key);
    if (hasKey(Object.prototype) && !chainOf(object).some(hasKey)) continue;
    const value = /** @type {{ [name: string]: unknown }} */ (object)[key];
    // `in` alone is not enough: a proxy may return true, or false, for all properties.
    if (value !== undefined || key in object) properties[key] = value;
  }
  return /** @type {Properties<T, K>} */ (properties);
}

/**
 * A property of an application's object; undefined if only a polluted Object.prototype has it.
 * @template {object} T
 * @template {string} K
 * @param {T} object
 * @param {K} name
 * @returns {Properties<T, K>[K]}
 */
const propertyOf = (object, name) => readAll(object, [name])[name];

/**
 * The name of a property that is not in `known`: an own one, or an inherited one that may be an option, such as a
 * default value or a getter. Methods of classes do not count.
 * @param {object} object
 * @param {readonly string[]} known
 */
function unknownIn(object, known) {
  const own = Object.keys(object).find((name) => !known.includes(name));
  if (own !== undefined) return own;
  /** @param {object} one */
  const namesIn = (one) =>
    Object.getOwnPropertyNames(one).filter((name) => {
      // Object.prototype of another realm has properties, too, such as the getter of __proto__.
      if (known.includes(name) || Object.hasOwn(Object.prototype, name)) return false;
      const { enumerable, value } = ownOf(Object.getOwnPropertyDescriptor(one, name));
      return value === undefined || (enumerable && typeof value !== 'function');
    });
  return chainOf(object).slice(1).flatMap(namesIn)[0];
}

/**
 * A copy without a prototype, so that a polluted Object.prototype adds nothing. For the package's own objects that may
 * lack a property that code reads: native ones, settings, and the rest of a destructuring.
 * @template {object | null | undefined} T
 * @param {T} object
 * @returns {Own<T>}
 */
const ownOf = (object) => /** @type {Own<T>} */ ({ __proto__: null, ...object });

/** The default options: empty. @type {Readonly<Record<string, undefined>>} */
const NONE = Object.freeze(ownOf({}));

/**
 * A copy of an application's object. Reads each property once.
 * @template {string} K
 * @param {object} object
 * @param {readonly K[]} keys
 * @param {readonly string[]} ignored keys that the object may have, which are not copied
 * @param {string} what
 * @param {ToError} toError
 * @param {Show} showName returns an unknown key as text
 */
function copyOf(object, keys, ignored, what, toError, showName) {
  let copy;
  let unknown;
  try {
    unknown = unknownIn(object, [...keys, ...ignored]);
    copy = readAll(object, keys);
  } catch {
    throw toError(`${what} cannot be read`);
  }
  if (unknown === undefined) return copy;
  // Suggests no name: names.js would be a fifth of a bundle for browsers.
  throw toError(`${what} has no ${showName(unknown)}. It knows ${keys.join(', ')}`);
}

module.exports = { NONE, copyOf, ownOf, propertyOf, readAll, unknownIn };
