'use strict';
// The queue of nextIdAsync(): what a waiting call waits for.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { createQueue } = require('../../js/generator/waiting.js');

/** The result of one call. Its first tries find the channel closed. */
function callOf({ state, triesInVain }) {
  let tries = 0;
  const lease = { report: () => ({ state }), wantRenewal() {} };
  const drawing = {
    tryDraw: () => (tries++ < triesInVain ? { kind: 'closed' } : undefined),
    take: () => 7n,
    refuse({ kind }) {
      throw new Error(kind);
    },
    getReporter: () => ({ noteWaits() {}, report() {} }),
  };
  const queue = createQueue({ maxWait: 1000, clockBack: 'counter' }, lease, drawing);
  return new Promise((resolve, reject) => queue.add(resolve, reject));
}

test('a call waits while a lease that lost its slot has no other yet', async () => {
  assert.equal(await callOf({ state: 'lost', triesInVain: 3 }), 7n);
});

test('a call to a closed instance is refused at once', async () => {
  await assert.rejects(callOf({ state: 'released', triesInVain: 3 }), { message: 'closed' });
});
