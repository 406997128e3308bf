'use strict';
// The records of a directory, as a register for commands. Leases read and write them in Rust, where each call to the disk has a
// time limit.

const { stat } = require('node:fs/promises');

const { configError, faultError, unwrap } = require('../messages/errors.js');
const { fileOf } = require('../messages/faults.js');
const native = require('../runtime/native.js');
const { unixNow } = require('../runtime/time.js');
const { createRegister } = require('./register.js');

/** @import { FileRecord } from './types.d.ts' */

/**
 * Refuses to create files as root in the directory of another user, who could not read them.
 * @param {string} path
 */
async function checkUser(path) {
  if (process.getuid?.() !== 0) return;
  const { uid } = await stat(path);
  if (uid === 0) return;
  throw configError(
    `${path} belongs to user ${uid}: run this command as that user, who is to read its files`,
  );
}

/** @param {string} path of a directory that exists */
function directory(path) {
  /**
   * A file that nobody can use is a record with a `failure`.
   * @param {string} key
   * @returns {Promise<{ record: FileRecord | undefined }>}
   */
  async function read(key) {
    const record = unwrap(await native.lookAtRecord(path, key)) ?? undefined;
    if (record === undefined || !('unusable' in record)) return { record };
    return { record: { failure: faultError(record.unusable) } };
  }

  return createRegister({
    name: `file://${path}`,
    // A file for each worker ID.
    bucketSize: 1,
    isDirectory: true,
    placeOf: (key) => fileOf(path, key),
    now: async () => unixNow(),
    read,

    async write(key, { token, text }, before) {
      if (before === undefined) await checkUser(path);
      const isWritten = unwrap(await native.replaceRecord(path, key, token, text, before));
      return isWritten ? { isWritten } : { isWritten, found: (await read(key)).record };
    },

    /** The keys of the buckets that it has. */
    buckets: async () => unwrap(await native.bucketFiles(path)),
  });
}

module.exports = { directory };
