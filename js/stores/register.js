'use strict';
// What all registers share: a call ends with its signal, a write that was sent twice is recognized, and a record
// of another format is an error that names its key. store.d.ts says what a register must do.

const { describe } = require('../messages/errors.js');
const { formatConflict, ofClient } = require('./failures.js');
const { ownOf } = require('../ids/properties.js');
const { untilAborted } = require('../runtime/limits.js');

/** @import { Adapter, CallOptions, FileRecord, LeaseRecord, Register } from './types.d.ts' */

/**
 * A record as one value of a store. The token comes first, so that a store can compare it alone.
 * @param {LeaseRecord} record
 */
const encode = ({ token, text }) => `${token} ${text}`;

/**
 * The record of a stored value; undefined if there is none.
 * @param {string} name of the store
 * @param {string} key
 * @param {string | null | undefined} stored
 */
function decode(name, key, stored) {
  if (stored === undefined || stored === null) return undefined;
  const [, token, text] = /^([0-9a-f]{16}) (.*)$/s.exec(stored) ?? [];
  if (token !== undefined) return { token, text };
  throw formatConflict(name, `the key ${describe(key)} holds ${describe(stored)}`);
}

/**
 * A register of an adapter's functions. They may ignore the signal.
 * @template {LeaseRecord | FileRecord} [Found=LeaseRecord]
 * @param {Adapter<Found>} adapter
 * @returns {Register<Found>}
 */
function createRegister(adapter) {
  const { notesErrors, now, read, write: put, ...others } = ownOf(adapter);
  const { show, namespaces, schemas, buckets, ...traits } = ownOf(others);

  /**
   * @template {unknown[]} Values
   * @template Reply
   * @param {(...values: [...Values, AbortSignal]) => Promise<Reply>} call
   * @returns {(...values: [...Values, CallOptions]) => Promise<Reply>}
   */
  function bounded(call) {
    const noted = notesErrors ? call : ofClient(call);
    return async (...given) => {
      const { signal } = /** @type {CallOptions} */ (given.pop());
      const values = /** @type {Values} */ (/** @type {unknown} */ (given));
      return untilAborted(signal, () => noted(...values, signal));
    };
  }

  /** @type {typeof put} */
  async function write(key, record, before, signal) {
    const reply = await put(key, record, before, signal);
    const { found } = ownOf(reply);
    if (found?.token !== record.token || found.text !== record.text) return reply;
    return { isWritten: true, now: reply.now };
  }

  return {
    ...traits,
    now: bounded(now),
    read: bounded(read),
    write: bounded(write),
    ...(show && { show: bounded(show) }),
    ...(namespaces && { namespaces: bounded(namespaces) }),
    ...(schemas && { schemas: bounded(schemas) }),
    ...(buckets && { buckets: bounded(buckets) }),
  };
}

module.exports = { createRegister, decode, encode };
