'use strict';
// Checks the arguments of calls.

const { types } = require('node:util');

const { propertiesOf, unixMs, wholeNumber } = require('../messages/checks.js');
const { argumentError, clockError, describe, invalidId } = require('../messages/errors.js');
const { ownOf } = require('../ids/properties.js');
const { idFault, idOf } = require('../ids/text.js');
const { TypedArray } = require('../runtime/originals.js');

/** @import { Channel, Layout } from '../types.js' */

/** `id` and `date` are allowed, but ignored, so that applications can pass the result of parse(). */
const FIELD_KEYS = ['timestamp', 'datacenterId', 'workerId', 'clockBack', 'sequence', 'id', 'date'];

/** The most IDs of one batch. They take 8 MB and, on the default layout, a quarter of a second. */
const MAX_COUNT = 1_000_000;

/** @param {unknown} count */
function readCount(count) {
  return wholeNumber('count', count, 0, MAX_COUNT, argumentError);
}

/** @param {string} name */
const getterOf = (name) => {
  const { get } = ownOf(Object.getOwnPropertyDescriptor(TypedArray, name));
  return /** @type {(this: BigUint64Array) => unknown} */ (get);
};
const [getLength, getBuffer] = [getterOf('length'), getterOf('buffer')];
const { keys: keysOf, set: setAll } = TypedArray;

/**
 * The length of a typed array, even if it has an own property of that name.
 * @param {BigUint64Array} array
 * @returns {number}
 */
function lengthOf(array) {
  return /** @type {number} */ (getLength.call(array));
}

/**
 * Whether a value is an array to fill with IDs. Throws if the array cannot be filled.
 * @param {unknown} array
 * @returns {array is BigUint64Array}
 */
function isTarget(array) {
  if (!types.isBigUint64Array(array)) return false;
  if (types.isSharedArrayBuffer(getBuffer.call(array))) {
    throw argumentError(
      'nextIds() cannot fill an array on a SharedArrayBuffer, since other threads would see it half filled: fill another BigUint64Array, and copy it',
    );
  }
  const length = lengthOf(array);
  if (length === 0) checkAttached(array);
  if (length > MAX_COUNT) {
    throw argumentError(
      `nextIds() fills at most ${MAX_COUNT} IDs; the array has room for ${length}: pass a subarray()`,
    );
  }
  return true;
}

/**
 * Checks an array of length 0: its buffer may be detached, or shrunk below the array's end.
 * @param {BigUint64Array} array
 */
function checkAttached(array) {
  try {
    // This method throws for such an array.
    keysOf.call(array);
  } catch (cause) {
    throw argumentError(
      'nextIds() cannot fill this BigUint64Array: its buffer was transferred, or shrunk below its end. Pass a new one',
      { cause },
    );
  }
}

/**
 * Copies IDs to an array. A callback of the application may have detached it meanwhile: then gives the IDs back.
 * @param {BigUint64Array} array
 * @param {BigUint64Array} ids
 * @param {Channel} channel
 */
function copyIds(array, ids, channel) {
  try {
    setAll.call(array, ids);
  } catch (cause) {
    channel.takeBack(ids);
    throw argumentError(
      'nextIds() cannot fill this BigUint64Array: a callback detached or shrank it meanwhile. Pass one that nothing else changes',
      { cause },
    );
  }
}

/**
 * An ID as a BigInt of 0 to 2^63 - 1.
 * @param {unknown} id
 * @param {number} [bits] the width of its layout, if numbers may be IDs
 */
function readId(id, bits) {
  const read = idOf(id, bits);
  if (read === undefined) throw invalidId(idFault(id, bits, describe));
  return read;
}

/**
 * An ID as a number. Only an ID that the application returned can be too large.
 * @param {bigint} id
 */
function exactNumber(id) {
  if (id <= Number.MAX_SAFE_INTEGER) return Number(id);
  throw invalidId(
    `onRejectedTake returned ${id} to nextIdNumber(): a number holds IDs up to ${Number.MAX_SAFE_INTEGER} exactly`,
  );
}

/**
 * The time of floorId(), in Unix ms.
 * @param {unknown} time
 */
function readTime(time) {
  return unixMs('time', time, argumentError);
}

/**
 * The fields of compose(). The defaults are the layout's epoch, the instance's datacenter and worker ID, and zero.
 * @param {unknown} given
 * @param {{ layout: Layout, datacenterId: number, workerId: number }} flake
 */
function readFields(given, flake) {
  const { layout } = flake;
  const fields = propertiesOf(given, 'fields', FIELD_KEYS, argumentError);
  const { timestamp } = fields;
  /**
   * @param {'datacenterId' | 'workerId' | 'clockBack' | 'sequence'} name
   * @param {keyof Layout} bits
   * @param {number} otherwise
   */
  const read = (name, bits, otherwise) =>
    fields[name] === undefined
      ? otherwise
      : wholeNumber(name, fields[name], 0, 2 ** layout[bits] - 1, argumentError);
  return {
    timestamp:
      timestamp === undefined ? layout.epoch : unixMs('timestamp', timestamp, argumentError),
    datacenterId: read('datacenterId', 'datacenterBits', flake.datacenterId),
    workerId: read('workerId', 'workerBits', flake.workerId),
    clockBack: read('clockBack', 'clockBackBits', 0),
    sequence: read('sequence', 'sequenceBits', 0),
  };
}

/**
 * The time of an application's clock, in whole Unix ms.
 * @param {() => unknown} clock
 */
function readClock(clock) {
  let now;
  try {
    now = clock();
  } catch (cause) {
    throw clockError(`the clock option threw ${describe(cause)}`, { cause });
  }
  return unixMs('the result of the clock option', now, clockError);
}

module.exports = {
  copyIds,
  exactNumber,
  isTarget,
  lengthOf,
  readClock,
  readCount,
  readFields,
  readId,
  readTime,
};
