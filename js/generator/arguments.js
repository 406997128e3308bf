'use strict';
// Checks the arguments of calls.

const { types } = require('node:util');

const { propertiesOf, unixMs, wholeNumber } = require('../messages/checks.js');
const { argumentError, clockError, describe, invalidId } = require('../messages/errors.js');
const { readAll } = require('../ids/properties.js');
const { idFault, idOf } = require('../ids/text.js');

/** `id` and `date` are allowed, but ignored, so that applications can pass the result of parse(). */
const FIELD_KEYS = ['timestamp', 'datacenterId', 'workerId', 'clockBack', 'sequence', 'id', 'date'];

/** The most IDs of one batch. They take 8 MB and, on the default layout, a quarter of a second. */
const MAX_COUNT = 1_000_000;

function readCount(count) {
  return wholeNumber('count', count, 0, MAX_COUNT, argumentError);
}

const TypedArray = Object.getPrototypeOf(BigUint64Array);
const getterOf = (name) => Object.getOwnPropertyDescriptor(TypedArray.prototype, name).get;
const [getLength, getBuffer] = [getterOf('length'), getterOf('buffer')];
const { keys: keysOf, set: setAll } = TypedArray.prototype;

/** The length of a typed array, even if it has an own property of that name. */
function lengthOf(array) {
  return getLength.call(array);
}

/** Whether a value is an array to fill with IDs. Throws if the array cannot be filled. */
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

/** Checks an array of length 0: its buffer may be detached, or shrunk below the array's end. */
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

/** Copies IDs to an array. A callback of the application may have detached it meanwhile: then gives the IDs back. */
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

/** Whether a value looks like a public ID with a prefix. */
const looksPublic = (id) =>
  typeof id === 'string' && /^[_-][0-7][\da-hjkmnp-tv-z]{25}$/.test(id.slice(-27));

/** An ID as a BigInt of 0 to 2^63 - 1. @param bits the width of its layout, if numbers may be IDs */
function readId(id, bits) {
  const read = idOf(id, bits);
  if (read === undefined) {
    const hint = looksPublic(id)
      ? ', which looks like a public ID: pass its ID, by decodeString() of snowdrift/public'
      : '';
    throw invalidId(idFault(id, bits, describe) + hint);
  }
  return read;
}

/** An ID as a number. Only an ID that the application returned can be too large. */
function exactNumber(id) {
  if (id <= Number.MAX_SAFE_INTEGER) return Number(id);
  throw invalidId(
    `onRejectedTake returned ${id} to nextIdNumber(): a number holds IDs up to ${Number.MAX_SAFE_INTEGER} exactly`,
  );
}

/** The fields of compose(). The defaults are the layout's epoch, the instance's datacenter and worker ID, and zero. */
function readFields(given, flake) {
  const { layout } = flake;
  const fields = propertiesOf(given, 'fields', FIELD_KEYS, argumentError, readEach);
  const { timestamp } = fields;
  return {
    timestamp:
      timestamp === undefined ? layout.epoch : unixMs('timestamp', timestamp, argumentError),
    datacenterId: readField(
      'datacenterId',
      fields.datacenterId,
      layout.datacenterBits,
      flake.datacenterId,
    ),
    workerId: readField('workerId', fields.workerId, layout.workerBits, flake.workerId),
    clockBack: readField('clockBack', fields.clockBack, layout.clockBackBits, 0),
    sequence: readField('sequence', fields.sequence, layout.sequenceBits, 0),
  };
}

/** Like readAll(), but in a tenth of the time, since the names are constants. */
function readEach(fields, keys) {
  const all = Object.prototype;
  const isPolluted =
    'timestamp' in all ||
    'datacenterId' in all ||
    'workerId' in all ||
    'clockBack' in all ||
    'sequence' in all;
  if (isPolluted) return readAll(fields, keys);
  const { timestamp, datacenterId, workerId, clockBack, sequence } = fields;
  return { timestamp, datacenterId, workerId, clockBack, sequence };
}

/** The largest number of each width, in a table: `**` takes half as long as all of compose(). */
const LARGEST = Array.from({ length: 64 }, (_, bits) => 2 ** bits - 1);

function readField(name, value, bits, otherwise) {
  if (value === undefined) return otherwise;
  return wholeNumber(name, value, 0, LARGEST[bits], argumentError);
}

/** The time of an application's clock, in whole Unix ms. */
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
};
