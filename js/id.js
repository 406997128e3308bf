'use strict';
// The exports of `snowdrift/id`: decode, encode and compare IDs in any JavaScript, without the addon and without Node.
// Generates no IDs.

/**
 * @import { Layout } from './types.js'
 * @typedef {InstanceType<typeof Codec>} LayoutCodec
 */

const { Codec } = require('./ids/codec.js');
const { argumentError, configError, invalidId } = require('./ids/error.js');
const {
  DATE_LIMIT,
  LAYOUT_KEYS,
  faultOf,
  layoutText,
  layouts,
  numberFault,
} = require('./ids/presets.js');
const { copyOf } = require('./ids/properties.js');
const { show } = require('./ids/shown.js');
const { idFault, idOf, readBase32, writeBase32 } = require('./ids/text.js');

/**
 * The codecs of named layouts.
 * @type {Map<unknown, LayoutCodec>}
 */
const codecs = new Map(Object.entries(layouts).map(([name, layout]) => [name, new Codec(layout)]));
/** The codec of the layout that was last passed as an object. */
let lastCodec = new Codec(layouts.node);

/** @param {unknown} [layout] */
function codecOf(layout = 'node') {
  const named = codecs.get(layout);
  if (named !== undefined) return named;
  if (typeof layout !== 'object' || layout === null) {
    throw configError(layoutText(layout, show));
  }
  const copy = copyOf(layout, LAYOUT_KEYS, [], 'layout', configError, show);
  if (LAYOUT_KEYS.every((key) => copy[key] === lastCodec.layout[key])) return lastCodec;
  const fault = faultOf(copy, show);
  if (fault !== undefined) throw configError(fault);
  lastCodec = new Codec(/** @type {Layout} */ (copy));
  return lastCodec;
}

/**
 * @param {unknown} id
 * @param {number} [bits]
 */
function readId(id, bits) {
  const read = idOf(id, bits);
  if (read === undefined) throw invalidId(idFault(id, bits, show));
  return read;
}

/** @param {unknown} time */
function readTime(time) {
  let ms = time;
  try {
    // Accepts a Date of any realm.
    if (typeof time === 'object') ms = Date.prototype.getTime.call(/** @type {Date} */ (time));
  } catch {}
  if (typeof ms === 'number' && Math.abs(ms) <= DATE_LIMIT) return Math.floor(ms);
  throw argumentError(`the time must be a valid Date or a number of Unix ms; it is ${show(time)}`);
}

/** The fields of an ID below the timestamp. */
const FIELDS = /** @type {const} */ (['datacenterId', 'workerId', 'clockBack', 'sequence']);

const FIELD_KEYS = /** @type {const} */ (['timestamp', ...FIELDS]);
/** Further properties of a ParsedId, which are ignored. */
const DERIVED_KEYS = ['id', 'date'];

/**
 * @param {LayoutCodec} codec
 * @param {number} time
 * @param {(name: typeof FIELDS[number], max: number) => number} pick returns the value of a field, given its name and its
 *   largest value
 */
function encode(codec, time, pick) {
  const values = FIELDS.map((name) => pick(name, codec[name].most));
  return codec.encode(time, .../** @type {[number, number, number, number]} */ (values));
}

/**
 * @param {unknown} id
 * @param {unknown} [layout]
 */
function parse(id, layout) {
  const codec = codecOf(layout);
  return codec.decode(readId(id, codec.bits));
}

/**
 * @param {unknown} fields
 * @param {unknown} [layout]
 */
function compose(fields, layout) {
  const codec = codecOf(layout);
  if (typeof fields !== 'object' || fields === null) {
    throw argumentError(`fields must be an object; it is ${show(fields)}`);
  }
  const given = copyOf(fields, FIELD_KEYS, DERIVED_KEYS, 'fields', argumentError, show);
  const { timestamp = codec.layout.epoch } = given;
  return encode(codec, readTime(timestamp), (name, max) => {
    const { [name]: value = 0 } = /** @type {{ [key in typeof name]?: number }} */ (given);
    const fault = numberFault(name, value, 0, max, show);
    if (fault !== undefined) throw argumentError(fault);
    return value;
  });
}

/**
 * @param {unknown} time
 * @param {unknown} [layout]
 */
function floorId(time, layout) {
  return encode(codecOf(layout), readTime(time), () => 0);
}

/**
 * @param {unknown} time
 * @param {unknown} [layout]
 */
function ceilingId(time, layout) {
  return encode(codecOf(layout), readTime(time), (_, max) => max);
}

/**
 * @param {unknown} from
 * @param {unknown} until
 * @param {unknown} [layout]
 */
function idRange(from, until, layout) {
  const { tickMs, epoch } = codecOf(layout).layout;
  const first = floorId(from, layout);
  const start = readTime(from);
  const end = readTime(until);
  if (end < start) {
    throw argumentError(
      `a range cannot end before it starts; it starts at ${start} and ends at ${end} (Unix ms)`,
    );
  }
  // The range ends within the layout's first tick, so it is empty.
  if (end - tickMs < epoch) return { first, last: first - 1n };
  try {
    return { first, last: ceilingId(end - tickMs, layout) };
  } catch {
    throw argumentError(`a range must end within this layout's time; it ends at ${end} (Unix ms)`);
  }
}

/**
 * @param {unknown} value
 * @param {unknown} [layout]
 */
function isId(value, layout) {
  if (layout === undefined) return idOf(value) !== undefined;
  const codec = codecOf(layout);
  const id = idOf(value, codec.bits);
  if (id === undefined) return false;
  try {
    codec.decode(id);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {unknown} value
 * @returns {value is string}
 */
function isBase32(value) {
  return readBase32(value) !== undefined;
}

/** @param {unknown} id */
function toBase32(id) {
  return writeBase32(readId(id));
}

/** @param {unknown} text */
function fromBase32(text) {
  const id = readBase32(text);
  if (id !== undefined) return id;
  throw invalidId(
    `an ID in base32 must be 13 characters of 0-9 and A-Z without I, L, O and U, and start with 0 to 7; it is ${show(text)}`,
  );
}

/**
 * An ID in any form.
 * @param {unknown} id
 */
function anyId(id) {
  const read = readBase32(id);
  if (read === undefined) return readId(id);
  if (!isId(id)) return read;
  throw invalidId(
    `'${id}' is one ID in decimal and another in base32: pass BigInt('${id}') or fromBase32('${id}')`,
  );
}

/**
 * @param {unknown} one
 * @param {unknown} other
 */
function compareIds(one, other) {
  const a = anyId(one);
  const b = anyId(other);
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** @satisfies {typeof import('./id.js')} */
module.exports = {
  ceilingId,
  compareIds,
  compose,
  floorId,
  fromBase32,
  idRange,
  isBase32,
  isId,
  layouts,
  parse,
  toBase32,
};
