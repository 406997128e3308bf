'use strict';
// A lease of the addon that holds a slot of a store in memory, for tests that open channels themselves.

const assert = require('node:assert/strict');

const native = require('../../../js/runtime/native.js');

/** Answers the calls of leases: an empty store. */
function createStore() {
  const records = new Map();
  const found = (key) => {
    const [token, text] = records.get(key) ?? [];
    return { kind: 'found', token, text };
  };
  return ({ call, key, token, text, before }) => {
    if (call === 'now') return { kind: 'found' };
    if (call === 'read' || records.get(key)?.[0] !== before) return found(key);
    records.set(key, [token, text]);
    return { kind: 'written' };
  };
}

/** By lease: releases its slot. */
const releases = new WeakMap();

/**
 * Takes a slot of a store that nobody else has.
 * @param request as js/runtime/channel.js makes it: its worker ID is the one that is claimed
 * @returns the lease, for the request of a channel
 */
function holdSlot(request) {
  const answer = createStore();
  const lease = native.openLease(
    { ...request, workerId: undefined, isLeased: true },
    {
      ...{ store: 'a store', ttl: 60_000, maxClockSkew: 10_000, maxAhead: request.maxAhead ?? 0 },
      ...{ wait: 0, callTimeout: 5000, host: 'here', started: 0, mayForget: false, size: 32 },
      ...{ claim: request.workerId },
    },
    0,
    Date.now(),
  );
  /** Has it take a step, and makes the calls that follow. Returns what it reports. */
  const run = (kind) => {
    const reports = [];
    let step = lease.step({ kind }, 0, Date.now());
    for (;;) {
      reports.push(...step.reports);
      if (step.next.kind !== 'call') return reports;
      step = lease.step({ ...answer(step.next), now: Date.now() }, 0, Date.now());
    }
  };
  const reports = run('time');
  assert.equal(reports[0].kind, 'open', JSON.stringify(reports));
  releases.set(lease, () => run('close'));
  return lease;
}

/** Releases the slot of a lease. */
const releaseSlot = (lease) => releases.get(lease)();

module.exports = { holdSlot, releaseSlot };
