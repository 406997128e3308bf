'use strict';
// The store's clock is wrong for a while, or the machine was suspended: no living host loses its slot, and IDs go on.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { storm } = require('../support/amount.js');
const { faulty } = require('../support/lease/faulty.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { inRounds } = require('../support/lease/rounds.js');
const { Sharer } = require('../support/lease/sharer.js');
const { missing, underShiftedClock } = require('../support/machine.js');
const { createDirectory } = require('../support/own-directory.js');
const { SnowFlake, countDuplicates, layouts, until } = require('../support/support.js');

process.env.SNOWDRIFT_SHARED = createDirectory();
/** One more worker ID than hosts that hold one. */
const layout = { ...layouts.node, workerBits: 2 };
const HOLDERS = 3;
const JUMPS = 6;

const CLOCKS = [
  ['20 s ahead for 6 s', 20_000, 6000, { ttl: 3000 }],
  ['20 s ahead for 6 s, by a longer ttl', 20_000, 6000, { ttl: 15_000 }],
  ['1.5 s ahead, by a ttl of 2 s', 1500, 10_000, { ttl: 2000 }],
  ['20 s behind for 6 s', -20_000, 6000, { ttl: 3000 }],
  ['an hour ahead', 3_600_000, 10_000, { ttl: 3000 }],
];

for (const [what, ahead, ms, options] of CLOCKS) {
  test(`the store's clock is ${what}: its holders renew, and keep their slots`, async (t) => {
    const time = new LeaseTime();
    t.after(() => time.end());
    let off = 0;
    const store = faulty({ now: () => time.now() + off });
    const all = { datacenterId: 1, layout, scope: 'process', ...options };
    const holders = [];
    for (let n = 0; n < HOLDERS; n++) holders.push(await time.run(SnowFlake.lease(store, all)));
    t.after(() => Promise.all(holders.map((flake) => flake.close())));
    // By a clock that is behind by more than maxClockSkew they wait, since their ceilings may not be ahead of it.
    const stateOf = ({ state }) => (ahead < 0 && state === 'expired' ? 'held' : state);
    const told = () => holders.map(({ lease }) => [lease.owner, lease.lost, stateOf(lease)]);
    const before = told();
    await time.advance(all.ttl / 4);
    const renewals = store.count('renew');
    off = ahead;
    await time.advance(ms);
    assert.deepEqual(told(), before);
    off = 0;
    for (let passed = 0; passed < 2 * all.ttl; passed += 100) {
      await time.advance(100);
      assert.deepEqual(told(), before);
    }
    assert.ok(store.count('renew') > renewals + HOLDERS);
  });

  // Of one process, no lease takes what another one has. In real time a busy machine may make a holder late.
  test(`the store's clock is ${what}: who waits for a slot gets none of a living host`, {
    skip: storm,
  }, async (t) => {
    await inRounds('a holder has lost its slot', async () => {
      let off = 0;
      const store = faulty({ now: () => Date.now() + off });
      const hosts = await Promise.all(
        Array.from({ length: HOLDERS + 1 }, () =>
          Sharer.start(store, { env: { SNOWDRIFT_SHARED: createDirectory() } }),
        ),
      );
      t.after(() => Promise.all(hosts.map((host) => host.kill())));
      const all = { datacenterId: 1, layout, ...options };
      for (const host of hosts) await host.lease(all);
      // It has lost its slot to a host that is not here, and waits for one of the others'. Unlike one that starts, it is not
      // refused for its clock.
      const [hungry, ...holders] = hosts;
      store.steal((await hungry.report()).slot.workerId, { ttl: 36_000_000 });
      await until(async () => (await hungry.report()).state === 'lost');
      const told = async () => {
        const leases = await Promise.all(holders.map((host) => host.report()));
        return leases.map(({ owner, lost }) => `${owner} ${lost}`).join();
      };
      const before = await told();
      // Until their next renewals, the holders' lines have expired by that clock: some jumps, so that a search falls into that time.
      for (let jumps = 1; jumps <= JUMPS; jumps++) {
        off = ahead * (ahead > all.ttl ? jumps : 1);
        await sleep(ms / JUMPS);
      }
      off = 0;
      await sleep(all.ttl);
      const isKept = (await told()) === before;
      const drawn = await Promise.all(hosts.map((host) => host.draw(100)));
      assert.equal(countDuplicates(drawn.flat()), 0);
      await Promise.all(hosts.map((host) => host.kill()));
      return isKept;
    });
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
    while (performance.now() < start + 60_000) {
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
