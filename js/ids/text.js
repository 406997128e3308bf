'use strict';
// IDs as applications pass them: bigints, decimal strings, numbers, and 13 characters of base32, which sort as the IDs
// do. Needs no addon and no Node API.

const { HALF, HIGH, LARGEST_ID, LOW, halves, join, whole } = require('./halves.js');
const { MOST_BITS } = require('./presets.js');

/** @import { Show } from '../types.js' */

/** The most digits of an ID. */
const MOST_DIGITS = 19;
/** A number holds this many digits exactly. */
const EXACT_DIGITS = 15;
const ZERO = 0x30;

/** The most bits of an exact number. */
const NUMBER_BITS = 53;

/**
 * An ID as a bigint of 0 to 2^63 - 1; undefined for anything else.
 * @param {unknown} id
 * @param {number} [bits] the width of the layout, if known. A number is an ID only if the layout has at most 53 bits
 */
function idOf(id, bits = MOST_BITS) {
  let read = id;
  if (typeof id === 'string') read = readDigits(id);
  else if (bits <= NUMBER_BITS && Number.isSafeInteger(id))
    read = BigInt(/** @type {number} */ (id));
  return typeof read === 'bigint' && read >= 0n && read <= LARGEST_ID ? read : undefined;
}

/**
 * The message for a value that idOf() does not accept.
 * @param {unknown} id
 * @param {number | undefined} bits
 * @param {Show} show returns a value as text
 */
function idFault(id, bits = MOST_BITS, show) {
  const what = 'an ID must be a bigint or a string of decimal digits without leading zeros';
  const isNumber = bits <= NUMBER_BITS;
  if (!isNumber && Number.isInteger(id)) {
    return `${what}; it is the number ${id}, which may be rounded: pass the string or the bigint that it comes from`;
  }
  const orNumber = isNumber ? `, or a number up to ${Number.MAX_SAFE_INTEGER}` : '';
  const isBase32 = readBase32(id) !== undefined;
  const remedy = isBase32 ? ', which is base32: pass fromBase32() of it, from snowdrift/id' : '';
  return `${what}, from 0 to ${LARGEST_ID}${orNumber}; it is ${show(id)}${remedy}`;
}

/**
 * The number of up to 19 digits without leading zeros, below 2^64; undefined for any other string.
 * @param {string} text
 */
function readDigits(text) {
  const { length } = text;
  const hasLeadingZero = length > 1 && text.charCodeAt(0) === ZERO;
  if (length === 0 || length > MOST_DIGITS || hasLeadingZero) return undefined;
  let upper = 0;
  let lower = 0;
  let scale = 1;
  for (let at = 0; at < length; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit >>> 0 > 9) return undefined;
    if (at < EXACT_DIGITS) {
      upper = upper * 10 + digit;
    } else {
      lower = lower * 10 + digit;
      scale *= 10;
    }
  }
  // Computes upper * scale + lower by 32-bit halves, so that every step is exact.
  const upperHigh = Math.floor(upper / HALF);
  const low = (upper - upperHigh * HALF) * scale + lower;
  const lowHigh = Math.floor(low / HALF);
  return join(low, upperHigh * scale + lowHigh);
}

/** Crockford's alphabet: no I, L, O and U. The characters rise in code, so texts sort as their IDs do. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** One character of 3 bits, then 12 characters of 5 bits. */
const BASE32_LENGTH = 13;

/**
 * The text of 10 bits.
 * @type {(bits: number) => string}
 */
const pairOf = (bits) => ALPHABET[(bits >>> 5) & 31] + ALPHABET[bits & 31];

/**
 * The first 11 characters of an ID in base32.
 * @param {number} low
 * @param {number} high
 */
function base32Head(low, high) {
  return (
    ALPHABET[high >>> 28] +
    pairOf(high >>> 18) +
    pairOf(high >>> 8) +
    pairOf((high << 2) | (low >>> 30)) +
    pairOf(low >>> 20) +
    pairOf(low >>> 10)
  );
}

/**
 * An ID of 0 to 2^63 - 1 in base32.
 * @param {bigint} id
 */
function writeBase32(id) {
  whole[0] = id;
  return base32Head(halves[LOW], halves[HIGH]) + pairOf(halves[LOW]);
}

/**
 * The 5 bits of each character code; -1 for other characters. Made when it is needed: it takes a tenth of a ms.
 * @type {Int8Array | undefined}
 */
let values;
function createValues() {
  const made = new Int8Array(128).fill(-1);
  for (let n = 0; n < 32; n++) made[ALPHABET.charCodeAt(n)] = n;
  return made;
}

/**
 * The ID of a text in base32; undefined for anything else.
 * @param {unknown} text
 */
function readBase32(text) {
  if (typeof text !== 'string' || text.length !== BASE32_LENGTH) return undefined;
  values ??= createValues();
  let low = 0;
  let high = 0;
  let all = 0;
  for (let at = 0; at < BASE32_LENGTH; at++) {
    const value = values[text.charCodeAt(at)] ?? -1;
    all |= value;
    high = (high << 5) | (low >>> 27);
    low = (low << 5) | value;
  }
  if (all < 0 || text > '8') return undefined;
  return join(low, high);
}

module.exports = { NUMBER_BITS, base32Head, idFault, idOf, pairOf, readBase32, writeBase32 };
