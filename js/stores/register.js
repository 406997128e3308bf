'use strict';
// What all registers share: a call ends with its signal, a write that was sent twice is recognized, and a record
// of another format is an error that names its key. store.d.ts says what a register must do.

const { describe } = require('../messages/errors.js');
const { formatConflict, ofClient } = require('./failures.js');
const { ownOf } = require('../ids/properties.js');
const { untilAborted } = require('../runtime/time.js');

/** A record as one value of a store. The token comes first, so that a store can compare it alone. */
const encode = ({ token, text }) => `${token} ${text}`;

/** A record of a stored value; undefined if there is none. One of another format has no token, but a fault. */
function decode(name, key, stored) {
  if (stored === undefined || stored === null) return undefined;
  const [, token = '', text] = /^([0-9a-f]{16}) (.*)$/s.exec(stored) ?? [];
  if (token !== '') return { token, text };
  const fault = formatConflict(name, `the key ${describe(key)} holds ${describe(stored)}`);
  return { token, fault };
}

/** A record that was read. A fault is thrown, or noted where the caller goes on without that record. */
function sound(record, key, noteFault) {
  const { fault } = ownOf(record);
  if (fault === undefined) return record;
  if (noteFault === undefined) throw fault;
  noteFault(key, fault);
  return undefined;
}

/**
 * A Register of an adapter's functions. They take the signal itself as their last argument, and may ignore it.
 * @param notesErrors what they throw is the application's, but for the errors that they note as a client's
 * @param rest `name`, `mayForget`, `bucketSize` and `close` of the register
 */
function createRegister(adapter) {
  const { read, write, list, now, notesErrors, describeRun, show, namespaces, schemas, ...rest } =
    ownOf(adapter);
  const bounded = (call) => {
    const noted = notesErrors ? call : ofClient(call);
    return async (...values) => {
      const { signal } = values.pop();
      return untilAborted(signal, () => noted(...values, signal));
    };
  };
  const [readAny, listAny] = [read, list].map(bounded);
  return {
    ...rest,
    async read(key, options) {
      const { record, ...rest } = await readAny(key, options);
      return { ...rest, record: sound(record, key, ownOf(options).noteFault) };
    },
    async list(prefix, options) {
      const { records, ...rest } = await listAny(prefix, options);
      const all = [...records].filter(([key, record]) =>
        sound(record, key, ownOf(options).noteFault),
      );
      return { ...rest, records: new Map(all) };
    },
    now: bounded(now),
    ...(describeRun && { describeRun: bounded(describeRun) }),
    ...(show && { show: bounded(show) }),
    // For commands: the names of the store's namespaces, as far as it tells.
    ...(namespaces && { namespaces: bounded(namespaces) }),
    ...(schemas && { schemas: bounded(schemas) }),
    write: bounded(async (key, record, before, signal) => {
      const reply = await write(key, record, before, signal);
      const found = sound(ownOf(reply).found, key);
      if (found?.token !== record.token || found.text !== record.text) return reply;
      return { isWritten: true, now: reply.now };
    }),
  };
}

module.exports = { createRegister, decode, encode };
