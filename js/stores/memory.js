'use strict';
// A register in this process's memory, for tests and as an example. No function awaits before it has changed the
// map, so each is one atomic step.

const { randomUUID } = require('node:crypto');

const { unixNow } = require('../runtime/time.js');
const { readOptions } = require('./options.js');
const { createRegister, decode, encode } = require('./register.js');

/** By the values of a store: its run. */
const runs = new WeakMap();

function runOf(stored) {
  if (!runs.has(stored)) runs.set(stored, randomUUID());
  return runs.get(stored);
}

/**
 * @param options `namespace`; `now`, the store's clock in Unix ms; `stored`, the values by namespace and key. Registers with the
 *   same `stored` act as one store
 */
function memory(options) {
  const {
    namespace,
    now = unixNow,
    stored = new Map(),
  } = readOptions(options, ['namespace', 'now', 'stored']);
  const name = `memory:${namespace}`;
  const root = `${namespace}/`;
  const recordOf = (key) => decode(name, key, stored.get(root + key));

  return createRegister({
    name,
    notesErrors: true,
    now: async () => now(),
    describeRun: async () => runOf(stored),
    read: async (key) => ({ record: recordOf(key), now: now() }),

    async write(key, record, before) {
      const found = recordOf(key);
      if (found?.token !== before) return { isWritten: false, found, now: now() };
      stored.set(root + key, encode(record));
      return { isWritten: true, now: now() };
    },

    namespaces: async () => {
      const keys = [...stored.keys()].map((key) => key.split('/'));
      return keys.filter(([, ...key]) => key.join() === 'namespace').map(([of]) => of);
    },

    async list(prefix) {
      const keys = [...stored.keys()].filter((each) => each.startsWith(root + prefix));
      const records = keys
        .map((each) => each.slice(root.length))
        .map((key) => [key, recordOf(key)]);
      return { records: new Map(records), now: now() };
    },
  });
}

module.exports = { memory };
