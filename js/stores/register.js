'use strict';
// What all registers share: a call ends with its signal, a write that was sent twice is recognized, and a record
// of another format is an error that names its key. store.d.ts says what a register must do.

const { describe } = require('../errors.js');
const { formatConflict, ofClient } = require('./failures.js');
const { untilAborted } = require('../time.js');

/** A record as one value of a store. The token comes first, so that a store can compare it alone. */
const encode = ({ token, text }) => `${token} ${text}`;

/** The record of a stored value; undefined if there is none. */
function decode(name, key, stored) {
  if (stored === undefined || stored === null) return undefined;
  const parts = /^([0-9a-f]{16}) (.*)$/s.exec(stored);
  if (parts === null) {
    throw formatConflict(name, `the key ${describe(key)} holds ${describe(stored)}`);
  }
  return { token: parts[1], text: parts[2] };
}

/**
 * A Register of an adapter's functions. They take the signal itself as their last argument, and may ignore it.
 * @param notesErrors what they throw is the application's, but for the errors that they note as a client's
 * @param rest `name`, `mayForget` and `close` of the register
 */
function createRegister({ read, write, list, now, describeRun, show, notesErrors, ...rest }) {
  const bounded = (call) => {
    const noted = notesErrors ? call : ofClient(call);
    return async (...values) => {
      const { signal } = values.pop();
      return untilAborted(signal, () => noted(...values, signal));
    };
  };
  return {
    ...rest,
    read: bounded(read),
    list: bounded(list),
    now: bounded(now),
    ...(describeRun && { describeRun: bounded(describeRun) }),
    ...(show && { show: bounded(show) }),
    write: bounded(async (key, record, before, signal) => {
      const reply = await write(key, record, before, signal);
      const { found } = reply;
      if (found?.token !== record.token || found.text !== record.text) return reply;
      return { isWritten: true, now: reply.now };
    }),
  };
}

module.exports = { createRegister, decode, encode };
