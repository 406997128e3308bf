'use strict';
// A fault of this package in the Rust core of a lease: the process goes on, every call settles, and a lease that was taken goes on.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('../support/own-directory.js');
const native = require('../../js/runtime/native.js');
const { memory } = require('../../js/stores/memory.js');
const { faulty } = require('../support/lease/faulty.js');
const { leasesInTime } = require('../support/lease/lease-time.js');

const { lease: leased, time } = leasesInTime({ datacenterId: 1, scope: 'process' });

test('a driver that fails ends no process, and renews once it works again', async (t) => {
  const { step } = native.LeaseDriver.prototype;
  const uncaught = [];
  const note = (failure) => uncaught.push(failure);
  process.on('unhandledRejection', note);
  t.after(() => {
    process.off('unhandledRejection', note);
    native.LeaseDriver.prototype.step = step;
  });
  const flake = await leased(memory(), { ttl: 3000 });
  let calls = 0;
  // From a timer, and once a call's reply is there: an exception would end this process.
  native.LeaseDriver.prototype.step = function (...values) {
    if (calls++ % 2 === 1) throw new Error('Rust panicked');
    return step.call(this, ...values);
  };
  await time.until(() => calls > 20 || uncaught.length > 0);
  assert.deepEqual(uncaught, []);
  assert.match(flake.lease.failure, /Rust panicked/);
  native.LeaseDriver.prototype.step = step;
  const { renewals } = flake.lease;
  await time.until(() => flake.lease.renewals > renewals);
  assert.equal(flake.lease.state, 'held');
});

test('lease() rejects where Rust takes a slot and cannot draw from it, and frees the slot', async (t) => {
  const { open } = native;
  t.after(() => {
    native.open = open;
  });
  native.open = () => {
    throw new Error('Rust panicked');
  };
  const store = faulty();
  await assert.rejects(leased(store), /Rust panicked/);
  assert.deepEqual([store.count('take'), store.count('release')], [1, 1]);
  assert.ok(time.passed < 1000);
});
