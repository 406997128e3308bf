'use strict';
// A register in this process's memory, for tests and as an example. No function awaits before it has changed the
// map, so each is one atomic step.

const { unixNow } = require('../runtime/time.js');
const { readOptions } = require('./options.js');
const { createRegister, decode, encode } = require('./register.js');

/** @type {typeof import('./memory.d.ts').memory} */
function memory(options) {
  const {
    namespace,
    now = unixNow,
    stored = new Map(),
  } = readOptions(options, ['namespace', 'now', 'stored']);
  const name = `memory:${namespace}`;
  /** @param {string} key */
  const recordOf = (key) => decode(name, key, stored.get(`${namespace}/${key}`));

  return createRegister({
    name,
    notesErrors: true,
    now: async () => now(),
    read: async (key) => ({ record: recordOf(key), now: now() }),

    async write(key, record, before) {
      const found = recordOf(key);
      if (found?.token !== before) return { isWritten: false, found, now: now() };
      stored.set(`${namespace}/${key}`, encode(record));
      return { isWritten: true, now: now() };
    },

    async namespaces() {
      const keys = [...stored.keys()].map((key) => key.split('/'));
      return keys.filter(([, ...key]) => key.join() === 'namespace').map(([of]) => of);
    },
  });
}

/** @satisfies {typeof import('./memory.js')} */
module.exports = { memory };
