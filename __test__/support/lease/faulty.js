'use strict';
// An engine in memory, with faults put between.

const { memory } = require('../../../js/stores/memory.js');

/** A store whose calls can be made to fail, to hang, or to arrive late, and whose `records` to be lost. */
function faulty(options) {
  const records = { slots: new Map() };
  const inner = memory({ records, ...options });
  const store = { name: 'faulty:', calls: [], fault: undefined, records, slots: inner.slots };
  for (const name of ['now', 'open', 'raise', 'acquire', 'renew', 'release']) {
    store[name] = async (request) => {
      store.calls.push({ name, ...request });
      await store.fault?.(name, request);
      return inner[name](request);
    };
  }
  return store;
}

module.exports = { faulty };
