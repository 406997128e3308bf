'use strict';
// The page of a leased slot, as js/lease/lease.js uses it: what is confirmed late counts for no page that has ended, and
// for no next one.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('../support/own-directory.js');
const native = require('../../js/runtime/native.js');
const { createStore, openLease } = require('../support/lease/held.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { requestOf } = require('../support/request.js');
const { SnowFlake, layouts } = require('../support/support.js');
const { memory } = require('../../js/stores/memory.js');

const skip = process.platform !== 'linux' && 'tried on Linux';

const layout = { ...layouts.node, workerBits: 0 };
const REQUEST = { scope: 'host', shared: process.env.SNOWDRIFT_SHARED, workerId: 0 };
const TTL = 60_000;
/** Moments of renewals, by the monotonic clock: of the first, and of the second one by either process. */
const [FIRST, SECOND, LATER] = [TTL * 0.4, TTL * 0.8, TTL * 0.9];

/** Two leases that share a page, and the records of their store. The first one is about to renew it. */
function shared() {
  const records = new Map();
  const answer = createStore(records);
  const own = requestOf(layout, REQUEST);
  const open = () => openLease(own, { ttl: TTL }, { answer });
  const [late, other] = [open(), open()];
  for (const { run } of [late, other]) assert.equal(run('time').reports[0].kind, 'open');
  assert.equal(late.lease.state().owner, other.lease.state().owner);
  // A renewal proves to the second one that it has the page's own store.
  for (const { run } of [late, other]) run('time', FIRST);
  assert.equal(late.lease.state().renewals, 1);
  const step = (input, mono) => late.lease.step(input, mono, Date.now());
  assert.equal(step({ kind: 'time' }, SECOND).next.call, 'write');
  return { late, other, records, step };
}

const lossesOf = ({ reports }) => reports.flatMap(({ lost }) => lost ?? []);

test('a driver that fails ends no process, and renews once it works again', async (t) => {
  const time = new LeaseTime();
  const { step } = native.LeaseDriver.prototype;
  const uncaught = [];
  const note = (failure) => uncaught.push(failure);
  process.on('unhandledRejection', note);
  t.after(() => {
    process.off('unhandledRejection', note);
    native.LeaseDriver.prototype.step = step;
    time.end();
  });
  const options = { datacenterId: 1, scope: 'process', ttl: 3000 };
  const flake = await time.run(SnowFlake.lease(memory(), options));
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
  // A broken one might never close, and keep this process alive meanwhile.
  await time.run(flake.close());
});

test('a page that has ended stays ended, whatever is confirmed', { skip }, () => {
  const { late, other, records, step } = shared();
  const channel = native.open(requestOf(layout, { ...REQUEST, lease: late.lease }));
  assert.ok(channel.tryRefill(channel.memory) > 0);
  // It is written, and lost before the reply comes.
  records.clear();
  assert.deepEqual(lossesOf(other.run('time', LATER)), ['reverted']);
  assert.equal(late.lease.state().ended, 'reverted');
  const { reports } = step({ kind: 'written', now: Date.now() }, LATER);
  assert.deepEqual(lossesOf({ reports }), ['reverted']);
  assert.equal(channel.tryRefill(channel.memory), 0);
  // Also once there is another one.
  late.run('failed', LATER);
  late.run('time', LATER + TTL);
  assert.equal(late.lease.state().ended, undefined);
  assert.equal(channel.tryRefill(channel.memory), 0);
  channel.close();
  for (const { run } of [late, other]) run('close', LATER + TTL);
});

test('a confirmation that comes late is not taken for one of the next page', { skip }, () => {
  const { late, other, records, step } = shared();
  records.clear();
  other.run('time', LATER);
  const { reports } = step({ kind: 'written', now: Date.now() }, LATER);
  assert.deepEqual(lossesOf({ reports }), ['reverted']);
  late.run('failed', LATER);
  assert.equal(late.run('time', LATER + TTL).next.kind, 'wait');
  const { owner, ceiling, renewals } = late.lease.state();
  // Once more, when no call is under way.
  assert.equal(step({ kind: 'written', now: Date.now() }, LATER + TTL).next.kind, 'wait');
  const after = late.lease.state();
  assert.deepEqual([after.owner, after.ceiling, after.renewals], [owner, ceiling, renewals]);
  for (const { run } of [late, other]) run('close', LATER + TTL);
});
