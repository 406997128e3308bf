'use strict';
// Keys of public IDs: 32 random bytes, as base64 or hex. No error shows a key.

const { createHash, randomBytes } = require('node:crypto');

const { errorsOf } = require('../ids/error.js');

const KEY_LENGTH = 32;

/** Canonical base64: two bits of the last character are 0, so that other languages read the same bytes. */
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
const HEX = /^[0-9a-f]{64}$/i;

const REMEDY = 'npx snowdrift public key makes one';

const keyError = errorsOf('ERR_SNOWFLAKE_CONFIG');

/**
 * The fewest different bytes of a key. 32 random bytes have about 30 different ones; 3 of 10^14 random keys have fewer
 * than this many.
 */
const FEWEST_DIFFERENT = 17;

const different = (/** @type {Iterable<number>} */ numbers) => new Set(numbers).size;

/** SHA-256 of the keys that the pages and test vectors print. */
const PUBLISHED = [
  '2f2e6181aa0f12c63f65d268da756012e84015306d83303b7c59255b0d79fae8',
  '5f0d6e8f840e40fcc24aec178cb7e0e1d9c02813b8552dbdf6568aab0d08abca',
];

/** The fewest bytes of text, padding included, that make a key a text. 3 of 10^7 random keys have this many. */
const FEWEST_OF_TEXT = 29;

/**
 * A character of a text in UTF-8, or a NUL, as in UTF-16 and in padding. Excludes the replacement character of invalid
 * UTF-8.
 */
const OF_TEXT = /[^\p{Cc}\ufffd]|[\t\n\r\0]/gu;

/**
 * The number of a key's bytes that are text or padding. Padding is a row of equal bytes at the end.
 * @param {Buffer} key
 */
function countText(key) {
  let end = key.length - 1;
  while (end > 0 && key[end - 1] === key[key.length - 1]) end--;
  if (end === key.length - 1) end++;
  const text = key.toString('utf8', 0, end);
  return Buffer.byteLength((text.match(OF_TEXT) ?? []).join('')) + key.length - end;
}

/**
 * The reason that a key can be guessed; undefined if none was found.
 * @param {Buffer} key
 */
function weakness(key) {
  const steps = Array.from(key, (byte, at) => (byte - key[at - 1]) & 255).slice(1);
  if (different(key) < FEWEST_DIFFERENT || different(steps) < FEWEST_DIFFERENT) {
    return 'weak: its bytes form a pattern';
  }
  if (countText(key) >= FEWEST_OF_TEXT) return 'weak: its bytes are a text';
  if (PUBLISHED.includes(createHash('sha256').update(key).digest('hex'))) {
    return "published: snowdrift's pages and tests print it";
  }
  return undefined;
}

/**
 * The message for a value that is no key.
 * @param {unknown} value
 */
function faultOf(value) {
  if (value === undefined || value === '') {
    return `is ${value === '' ? 'empty' : value}: check that the variable it comes from is set`;
  }
  const form = 'must be 32 random bytes as base64 (44 characters) or hex (64 digits)';
  if (typeof value !== 'string') return `${form}; it is of another type`;
  const isUrlSafe = /^[\w-]{43}=?$/.test(value);
  const hint = isUrlSafe ? ': it needs + instead of -, / instead of _, and = at its end' : '';
  return `${form}; it is a text of ${value.length} characters${hint}`;
}

/**
 * Whether a value has the form of a key.
 * @param {unknown} value
 * @returns {value is string}
 */
const isKey = (value) => typeof value === 'string' && (HEX.test(value) || BASE64.test(value));

/**
 * The bytes of a key. The caller must overwrite them after use.
 * @param {unknown} value
 * @param {string} name the value's name in errors
 */
function readKey(value, name) {
  if (!isKey(value)) {
    throw keyError(`${name} ${faultOf(value)}. ${REMEDY}`);
  }
  // Own memory: Buffer.from() shares its memory with other buffers.
  const key = Buffer.alloc(KEY_LENGTH);
  key.write(value, HEX.test(value) ? 'hex' : 'base64');
  const fault = weakness(key);
  if (fault !== undefined) throw keyError(`${name} is ${fault}. ${REMEDY}`);
  return key;
}

/**
 * Reads an application's array, whose proxies and getters may throw.
 * @template T
 * @param {() => T} read
 */
function guarded(read) {
  try {
    return read();
  } catch {
    throw keyError('keys cannot be read');
  }
}

/**
 * @param {unknown} given as applications pass them
 * @param {(at: number) => string} [nameOf] a key's name in errors, by its index
 */
function readKeys(given, nameOf = (at) => `keys[${at}]`) {
  const values = guarded(() => (Array.isArray(given) ? given : undefined));
  if (values === undefined) {
    throw keyError('keys must be an array of keys: the first encodes, all decode');
  }
  // A proxy may return any length.
  const count = guarded(() => values.length);
  if (!Number.isSafeInteger(count) || count < 1) {
    throw keyError(`keys is empty: pass at least one key. ${REMEDY}`);
  }
  const keys = [];
  for (let at = 0; at < count; at++) {
    const value = guarded(() => values[at]);
    const key = readKey(value, nameOf(at));
    const first = keys.findIndex((other) => other.equals(key));
    if (first >= 0)
      throw keyError(`${nameOf(at)} is the same key as ${nameOf(first)}: leave it out`);
    keys.push(key);
  }
  return keys;
}

/** A new key, as base64. */
function createKey() {
  for (;;) {
    const key = randomBytes(KEY_LENGTH);
    if (weakness(key) === undefined) return key.toString('base64');
  }
}

module.exports = { createKey, readKey, readKeys };
