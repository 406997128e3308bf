'use strict';
// What all registers share: a call ends with its signal, a write that was sent twice is recognized, and a record
// of another format is an error that names its key. store.d.ts says what a register must do.

const { describe } = require('../messages/errors.js');
const { formatConflict, ofClient } = require('./failures.js');
const { ownOf } = require('../ids/properties.js');
const { untilAborted } = require('../runtime/time.js');

/** A record as one value of a store. The token comes first, so that a store can compare it alone. */
const encode = ({ token, text }) => `${token} ${text}`;

/** The record of a stored value; undefined if there is none. */
function decode(name, key, stored) {
  if (stored === undefined || stored === null) return undefined;
  const [, token, text] = /^([0-9a-f]{16}) (.*)$/s.exec(stored) ?? [];
  if (token !== undefined) return { token, text };
  throw formatConflict(name, `the key ${describe(key)} holds ${describe(stored)}`);
}

const CALLS = ['read', 'write', 'now', 'show', 'namespaces', 'schemas', 'buckets'];

/**
 * A Register of an adapter's functions. They take the signal itself as their last argument, and may ignore it.
 * @param notesErrors what they throw is the application's, but for the errors that they note as a client's
 * @param adapter besides `read`, `write` and `now`, what else it has of a register
 */
function createRegister({ notesErrors, ...adapter }) {
  const own = ownOf(adapter);
  async function write(key, record, ...rest) {
    const reply = await own.write(key, record, ...rest);
    const { found } = ownOf(reply);
    if (found?.token !== record.token || found.text !== record.text) return reply;
    return { isWritten: true, now: reply.now };
  }
  const calls = Object.entries({ ...own, write }).filter(([name]) => CALLS.includes(name));
  const bounded = calls.map(([name, call]) => {
    const noted = notesErrors ? call : ofClient(call);
    return [
      name,
      async (...values) => {
        const { signal } = values.pop();
        return untilAborted(signal, () => noted(...values, signal));
      },
    ];
  });
  return { ...adapter, ...Object.fromEntries(bounded) };
}

module.exports = { createRegister, decode, encode };
