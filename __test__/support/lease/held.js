'use strict';
// A lease of the addon that holds a slot of a store in memory, for tests that open channels themselves.

const assert = require('node:assert/strict');

const native = require('../../../js/runtime/native.js');

/** Answers the calls of leases: an empty store, whose `records` are by key. */
function createStore(records = new Map()) {
  const found = (key) => (records.has(key) ? [['', ...records.get(key)]] : []);
  return ({ call, key, prefix, token, text, before }) => {
    switch (call) {
      case 'now':
        return { records: [] };
      case 'describeRun':
        return { run: 'the run of the server', records: [] };
      case 'read':
        return { records: found(key) };
      case 'list': {
        const listed = [...records].filter(([each]) => each.startsWith(prefix));
        return { records: listed.map(([each, record]) => [each, ...record]) };
      }
      default: {
        if (records.get(key)?.[0] !== before) return { isWritten: false, records: found(key) };
        records.set(key, [token, text]);
        return { isWritten: true, records: [] };
      }
    }
  };
}

/** By lease: releases its slot. */
const releases = new WeakMap();

/**
 * Takes a slot.
 * @param request as js/runtime/channel.js makes it: its worker ID is the one that is claimed
 * @returns the lease, for the request of a channel
 */
function holdSlot(request) {
  const lease = native.openLease(
    { ...request, workerId: undefined, isLeased: true },
    {
      ...{ store: 'a store', ttl: 60_000, maxClockSkew: 10_000, maxAhead: request.maxAhead },
      ...{ patience: 0, host: 'here', started: 0, mayForget: false, claim: request.workerId },
    },
  );
  const answer = createStore();
  const perform = (first) => {
    let command = first;
    while (command.kind === 'call') {
      command = lease.reply({ ...answer(command), now: Date.now(), called: 0 }, 0);
    }
    return command;
  };
  const command = perform(lease.go(0));
  assert.equal(command.kind, 'held', JSON.stringify(command));
  releases.set(lease, () => perform(lease.close(0)));
  return lease;
}

/** Releases the slot of a lease. */
const releaseSlot = (lease) => releases.get(lease)();

module.exports = { createStore, holdSlot, releaseSlot };
