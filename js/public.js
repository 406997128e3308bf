'use strict';
// The exports of `snowdrift/public`: IDs as texts for strangers. Encoding and decoding need a key. Needs no addon, and
// of Node only node:crypto.

/**
 * The options of publicIds() that were given: of the application, so each is checked where it is read.
 * @typedef {{ [name in 'kind' | 'key' | 'keys' | 'prefix']?: unknown }} Given
 */

const { errorsOf } = require('./ids/error.js');
const { NONE, copyOf } = require('./ids/properties.js');
const { show } = require('./ids/shown.js');
const { idFault, idOf } = require('./ids/text.js');
const { BlockCipher, words } = require('./public/block.js');
const { hasKey, showNoKey } = require('./public/hidden.js');
const { readKey, readKeys } = require('./public/key.js');
const { TEXT_LENGTH, createSpeller, readText } = require('./public/text.js');

const OPTIONS = /** @type {const} */ (['kind', 'key', 'keys', 'prefix']);

const configError = errorsOf('ERR_SNOWFLAKE_CONFIG');
const invalidId = errorsOf('ERR_SNOWFLAKE_INVALID_ID');

/**
 * The conversions of IDs, by the option `as`.
 * @type {Map<unknown, (id: bigint) => bigint | string>}
 */
const FORMS = new Map(Object.entries({ bigint: BigInt, string: String }));

/**
 * Reads options.
 * @template {string} K
 * @param {unknown} options
 * @param {readonly K[]} names
 * @param {string} what
 */
function optionsOf(options, names, what) {
  if (typeof options !== 'object' || options === null) {
    throw configError(`the options of ${what} must be an object; they are of another type`);
  }
  return copyOf(options, names, [], what, configError, showNoKey);
}

/** @param {Given} given */
function keysOf(given) {
  const hasKeys = 'keys' in given;
  if (hasKeys && 'key' in given) {
    throw configError('key and keys are both given: leave out one of them');
  }
  return hasKeys ? readKeys(given.keys) : [readKey(given.key, 'key')];
}

/**
 * Reads a kind. Its tag is computed from its UTF-8 bytes, so each kind needs exactly one spelling.
 * @param {unknown} kind
 */
function readKind(kind) {
  if (typeof kind !== 'string' || kind === '') {
    throw configError(
      `kind must be a text that names what has these IDs, such as 'order'; it is ${showNoKey(kind)}`,
    );
  }
  // The prefix would show the key in every public ID.
  if (hasKey(kind)) {
    throw configError('kind has a key in it: pass the name of what has these IDs');
  }
  // normalize() takes quadratic time in a row of combining marks. UAX #15 calls rows of up to 30 safe.
  if (/\p{Cs}|\p{M}{31}/u.test(kind)) {
    throw configError(
      'kind is no text: it has half a surrogate pair, or more than 30 combining marks in a row',
    );
  }
  if (kind.normalize() !== kind) {
    throw configError('kind is not in the form NFC of Unicode: pass kind.normalize()');
  }
  return kind;
}

/**
 * @param {Given} given
 * @param {string} kind
 */
function readPrefix(given, kind) {
  if (!('prefix' in given)) {
    if (/^[\w-]+$/.test(kind)) return `${kind}_`;
    throw configError(
      `a prefix has letters, digits, _ and - only; kind is ${showNoKey(kind)}: pass another prefix, such as 'order_', or prefix: false`,
    );
  }
  const { prefix } = given;
  if (prefix === false) return '';
  if (typeof prefix === 'string' && /^[\w-]*[_-]$/.test(prefix) && !hasKey(prefix)) return prefix;
  throw configError(
    `prefix must be letters, digits, _ and -, and end with _ or -, such as 'order_', or be false; it is ${showNoKey(prefix)}`,
  );
}

/**
 * Reads the kind and the prefix, and makes the ciphers. Overwrites the keys.
 * @param {Given} given
 * @param {Buffer[]} keys
 */
function readNames(given, keys) {
  try {
    const kind = readKind(given.kind);
    const prefix = readPrefix(given, kind);
    return { kind, prefix, ciphers: keys.map((key) => new BlockCipher(key, kind)) };
  } finally {
    for (const key of keys) key.fill(0);
  }
}

/** @param {unknown} options */
function publicIds(options) {
  const given = optionsOf(options, OPTIONS, 'publicIds()');
  // Keys first, so that errors hide them: applications often pass a key as kind, which errors show.
  const keys = keysOf(given);
  const { kind, prefix, ciphers } = readNames(given, keys);
  const [encryptor] = ciphers;
  const spell = createSpeller(prefix);
  const length = prefix.length + TEXT_LENGTH;

  /** @param {unknown} id */
  function encode(id) {
    const read = idOf(id);
    if (read === undefined) throw invalidId(idFault(id, undefined, showNoKey));
    encryptor.encrypt(read);
    return spell(words);
  }

  /**
   * Whether a value has the form of a public ID of this kind. If so, its block is in `words`.
   * @param {unknown} value
   * @returns {value is string}
   */
  const isSpelt = (value) =>
    typeof value === 'string' &&
    value.length === length &&
    value.startsWith(prefix) &&
    readText(value, prefix.length, words);

  /**
   * The ID of a text; undefined for anything else.
   * @param {unknown} text
   */
  function find(text) {
    if (!isSpelt(text)) return undefined;
    for (const cipher of ciphers) {
      const id = cipher.decrypt();
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /**
   * The message for a value that find() does not accept.
   * @param {unknown} text
   */
  function faultOf(text) {
    const form = `${prefix === '' ? '' : `${showNoKey(prefix)} and `}${TEXT_LENGTH} characters of 0-9 and a-z without i, l, o and u`;
    if (idOf(text) !== undefined) {
      return `a public ID must be ${form}; it is the ID ${showNoKey(text)} itself`;
    }
    if (!isSpelt(text)) return `a public ID must be ${form}; it is ${showNoKey(text)}`;
    // The text has the length of a public ID, so it shows no key.
    return `${show(text)} is no public ID of this kind and key: it is forged, misspelt, or of another kind or key`;
  }

  /** @param {unknown} text */
  function decode(text) {
    const id = find(text);
    if (id === undefined) throw invalidId(faultOf(text));
    return id;
  }

  const decodeString = (/** @type {unknown} */ text) => String(decode(text));
  const is = (/** @type {unknown} */ value) => find(value) !== undefined;

  /** @param {unknown} [options] */
  function schema(options = NONE) {
    const { as = 'bigint' } = optionsOf(options, ['as'], 'schema()');
    const toForm = FORMS.get(as);
    if (toForm === undefined)
      throw configError(`as must be 'bigint' or 'string'; it is ${showNoKey(as)}`);
    const parse = (/** @type {unknown} */ value) => toForm(decode(value));
    const validate = (/** @type {unknown} */ value) => {
      const id = find(value);
      return id === undefined ? { issues: [{ message: faultOf(value) }] } : { value: toForm(id) };
    };
    const standard = Object.freeze({ version: 1, vendor: 'snowdrift', validate });
    return Object.freeze({ '~standard': standard, is, parse });
  }

  return Object.freeze({ kind, prefix, encode, decode, decodeString, is, schema });
}

/** @satisfies {Record<keyof typeof import('./public.js'), unknown>} */
module.exports = { publicIds };
