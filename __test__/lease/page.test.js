'use strict';
// The page of a leased slot, as js/lease/lease.js uses it: what is confirmed late counts for no page that has ended, and
// for no next one.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('../support/own-directory.js');
const native = require('../../js/runtime/native.js');
const { createStore } = require('../support/lease/held.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { requestOf } = require('../support/request.js');
const { SnowFlake, layouts } = require('../support/support.js');
const { memory } = require('../../js/stores/memory.js');

const skip = process.platform !== 'linux' && 'tried on Linux';

const layout = { ...layouts.node, workerBits: 0 };
const host = { scope: 'host', shared: process.env.SNOWDRIFT_SHARED };
const SETTINGS = {
  ...{
    store: 'a store',
    ttl: 60_000,
    maxClockSkew: 10_000,
    maxAhead: 0,
    patience: 0,
    host: 'here',
    started: 0,
  },
  ...{ mayForget: false },
};

const WRITTEN = { isWritten: true, records: [], called: 0 };

/** Two leases that share a page, and their store. */
function shared() {
  const records = new Map();
  const answer = createStore(records);
  const open = () =>
    native.openLease(requestOf(layout, { ...host, workerId: undefined, search: true }), SETTINGS);
  const run = (lease, first) => {
    let command = first;
    while (command.kind === 'call') {
      command = lease.reply({ ...answer(command), now: Date.now(), called: 0 }, 0);
    }
    return command;
  };
  const leases = [open(), open()];
  for (const lease of leases) assert.equal(run(lease, lease.go(0)).kind, 'held');
  assert.equal(leases[0].state().owner, leases[1].state().owner);
  return { leases, records, run };
}

test('a machine that fails ends no process, and renews once it works again', async (t) => {
  const time = new LeaseTime();
  const { due } = native.LeaseMachine.prototype;
  t.after(() => {
    native.LeaseMachine.prototype.due = due;
    time.end();
  });
  const options = { datacenterId: 1, scope: 'process', ttl: 3000 };
  const flake = await time.run(SnowFlake.lease(memory(), options));
  t.after(() => flake.close());
  let calls = 0;
  // In a check, and as the next one is scheduled: from a timer, an exception would end this process.
  native.LeaseMachine.prototype.due = () => {
    if (calls++ % 2 === 0) return 0;
    throw new Error('Rust panicked');
  };
  await time.until(() => calls > 6);
  const { renewals } = flake.lease;
  native.LeaseMachine.prototype.due = () => 0;
  await time.until(() => flake.lease.renewals > renewals);
});

test('a page that has ended stays ended, whatever is confirmed', { skip }, () => {
  const { leases, records, run } = shared();
  const [late, other] = leases;
  const channel = native.open(requestOf(layout, { ...host, workerId: 0, lease: late }));
  assert.ok(channel.tryRefill(channel.memory) > 0);
  const write = late.go(1);
  assert.equal(write.call, 'write');
  // It is written, and lost before the reply comes.
  records.clear();
  assert.equal(run(other, other.go(1)).lost, 'missing');
  assert.equal(late.state().ended, 'missing');
  assert.equal(late.reply(WRITTEN, 1).lost, 'missing');
  assert.equal(channel.tryRefill(channel.memory), 0);
  // Also once there is another one.
  for (const lease of leases) assert.equal(run(lease, lease.go(2)).kind, 'held');
  assert.equal(channel.tryRefill(channel.memory), 0);
  channel.close();
  for (const lease of leases) run(lease, lease.close(3));
});

test('a confirmation that comes late is not taken for one of the next page', { skip }, () => {
  const { leases, records, run } = shared();
  const [late, other] = leases;
  late.go(1);
  records.clear();
  assert.equal(run(other, other.go(1)).lost, 'missing');
  assert.equal(late.reply(WRITTEN, 1).lost, 'missing');
  assert.equal(run(late, late.go(2)).kind, 'held');
  const { owner, ceiling, renewals } = late.state();
  assert.equal(renewals, 0);
  // Once more, when no call is under way.
  assert.equal(late.reply(WRITTEN, 3).kind, 'wait');
  assert.deepEqual(late.state().owner, owner);
  assert.deepEqual([late.state().ceiling, late.state().renewals], [ceiling, 0]);
  for (const lease of leases) run(lease, lease.close(3));
});
