'use strict';
// A lease of the addon that holds a slot of a store in memory, for tests that open channels themselves.

const assert = require('node:assert/strict');

const native = require('../../../js/runtime/native.js');

/** Answers the calls of leases: an empty store, whose `records` are by key. */
function createStore(records = new Map()) {
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

/**
 * A lease of a store that nobody else has.
 * @param request as js/runtime/channel.js makes it: its worker ID is the one that is claimed
 * @param settings those of the driver that differ
 * @returns the lease, and a function that has it take a step and make the calls that follow: it returns what is next
 */
function openLease(request, settings, { answer = createStore(), now = Date.now } = {}) {
  const lease = native.openLease(
    { ...request, workerId: undefined, isLeased: true },
    {
      ...{ store: 'a store', ttl: 60_000, maxClockSkew: 10_000, maxAhead: request.maxAhead ?? 0 },
      ...{ wait: 0, callTimeout: 5000, host: 'here', started: 0, mayForget: false, size: 32 },
      ...{ claim: request.workerId, ...settings },
    },
    0,
    now(),
  );
  const run = (kind, mono = 0) => {
    const reports = [];
    let step = lease.step({ kind }, mono, now());
    for (;;) {
      reports.push(...step.reports);
      if (step.next.kind !== 'call') return { reports, next: step.next };
      step = lease.step({ ...answer(step.next), now: now() }, mono, now());
    }
  };
  return { lease, run };
}

/** By lease: releases its slot. */
const releases = new WeakMap();

/**
 * Takes a slot.
 * @returns the lease, for the request of a channel
 */
function holdSlot(request) {
  const { lease, run } = openLease(request);
  const { reports } = run('time');
  assert.equal(reports[0].kind, 'open', JSON.stringify(reports));
  releases.set(lease, () => run('close'));
  return lease;
}

/** Releases the slot of a lease. */
const releaseSlot = (lease) => releases.get(lease)();

module.exports = { createStore, holdSlot, openLease, releaseSlot };
