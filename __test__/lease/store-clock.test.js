'use strict';
// The store's clock is wrong for a while, or the machine was suspended: no living host loses its slot, and IDs go on.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, test } = require('node:test');

const { faulty } = require('../support/lease/faulty.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { missing, underShiftedClock } = require('../support/machine.js');
const { createDirectory } = require('../support/own-directory.js');
const { SnowFlake, layouts } = require('../support/support.js');

process.env.SNOWDRIFT_SHARED = createDirectory();
/** One more worker ID than hosts that hold one. */
const layout = { ...layouts.node, workerBits: 2 };
const HOLDERS = 3;
let time;

beforeEach(() => {
  time = new LeaseTime();
});
afterEach(() => time.end());

for (const [what, ahead, ms, options] of [
  ['20 s ahead for 6 s', 20_000, 6000, { ttl: 30_000 }],
  ['20 s ahead for 6 s, by a short ttl', 20_000, 6000, { ttl: 3000, maxClockSkew: 1000 }],
  ['1.5 s ahead, by a ttl of 2 s', 1500, 30_000, { ttl: 2000 }],
  ['20 s behind for 6 s', -20_000, 6000, { ttl: 3000 }],
  ['an hour ahead, and it stays so', 3_600_000, 60_000, { ttl: 30_000 }],
]) {
  test(`the store's clock is ${what}: who waits for a slot gets none of a living host`, async (t) => {
    let off = 0;
    const store = faulty({ now: () => time.now() + off });
    const open = [];
    t.after(() => time.run(Promise.all(open.map((flake) => flake.close()))));
    const all = { datacenterId: 1, layout, scope: 'process', callTimeout: 1000, ...options };
    const lease = async () => {
      open.push(await time.run(SnowFlake.lease(store, all)));
      return open.at(-1);
    };
    const holders = [];
    for (let n = 0; n < HOLDERS; n++) holders.push(await lease());
    // It has lost its slot to a host that is not here, and waits for one of the others'. Unlike one that starts, it is not
    // refused for its clock.
    const hungry = await lease();
    store.steal(hungry.workerId, { ttl: 36_000_000, now: time.now() });
    await time.until(() => hungry.lease.state === 'lost');
    const owners = () => holders.map(({ lease }) => [lease.owner, lease.lost]);
    const before = owners();
    await time.advance(all.ttl / 4);
    off = ahead;
    await time.advance(ms);
    assert.ok(store.count('renew') > 0);
    off = 0;
    await time.advance(2 * all.ttl);
    assert.deepEqual(owners(), before);
    assert.deepEqual(
      holders.map(({ lease }) => lease.state),
      Array(HOLDERS).fill('held'),
    );
    assert.equal(hungry.lease.state, 'lost');
  });
}

test('a machine that was suspended for an hour issues at once, by a store whose replies have no time', {
  skip: missing(),
}, async () => {
  const { took, lost, calls, workerIds } = await underShiftedClock(`
    const { memory } = require('${require.resolve('../../js/stores/memory.js')}');
    const inner = memory();
    const calls = [];
    const timeless = (call) => async (...values) => {
      calls.push(call);
      const { now, ...reply } = await inner[call](...values);
      return reply;
    };
    const store = { ...inner, read: timeless('read'), write: timeless('write'), now: async (...values) => (calls.push('now'), inner.now(...values)) };
    // No timer of it is due within this test.
    const flake = await SnowFlake.lease(store, { datacenterId: 1, ttl: 3_600_000, maxClockSkew: 1000 });
    const ids = [flake.nextId()];
    calls.length = 0;
    // Its monotonic clock stood still meanwhile. The store's, which is this machine's here, did not.
    shift(2 * 3_600_000);
    const start = performance.now();
    for (;;) {
      try {
        ids.push(flake.nextId());
        break;
      } catch (refusal) {
        if (refusal.code !== 'ERR_SNOWFLAKE_LEASE_EXPIRED') throw refusal;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    const took = performance.now() - start;
    const { lost } = flake.lease;
    await flake.close();
    return { took, lost, calls, workerIds: ids.map((id) => flake.parse(id).workerId) };
  `);
  assert.ok(took < 60_000, `${took} ms; a renewal by its timer is due after 20 minutes`);
  assert.equal(lost, undefined);
  assert.equal(workerIds[0], workerIds[1]);
  assert.ok(calls.length <= 6, `${calls}`);
});
