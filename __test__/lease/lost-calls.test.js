'use strict';
// Calls that are lost or late: no ID waits for them, and no living host loses its slot. Time passes when a test says so.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { amount } = require('../support/amount.js');
const { faulty } = require('../support/lease/faulty.js');
const { leasesInTime } = require('../support/lease/lease-time.js');
const { createDirectory } = require('../support/own-directory.js');
const { seeded } = require('../support/support.js');

process.env.SNOWDRIFT_SHARED = createDirectory();
const { lease, open, time } = leasesInTime({ datacenterId: 1, scope: 'process' });

/** Has time pass. Returns how many ms some lease had no IDs. */
async function without(ms, flakes) {
  let expired = 0;
  for (let passed = 0; passed < ms; passed += 10) {
    await time.advance(10);
    expired +=
      10 * flakes.filter(({ lease }) => lease.state !== 'held' && lease.state !== 'failing').length;
  }
  return expired;
}

const never = () => new Promise(() => {});

for (const ttl of [1000, 2000, 3000]) {
  for (const [what, isLost] of [
    ['the reply to a write', ({ does }) => does === 'renew'],
    ['a read', ({ name, of }) => name === 'read' && of === 'bucket'],
  ]) {
    test(`${what} that is lost stops no IDs: a ttl of ${ttl} ms below callTimeout`, async () => {
      const store = faulty({ now: time.now });
      const options = { ttl, maxClockSkew: 500, callTimeout: 5000 };
      // Two of a record: so one reads before it renews.
      const both = [await lease(store, options), await lease(store, options)];
      assert.equal(await without(2 * ttl, both), 0);
      const owners = both.map(({ lease }) => lease.owner);
      for (let n = 0; n < 5; n++) {
        let isOver = false;
        store.late = (call) => {
          if (isOver || !isLost(call)) return undefined;
          isOver = true;
          return never();
        };
        assert.equal(await without(2 * ttl, both), 0);
        assert.ok(isOver);
      }
      assert.deepEqual(
        both.map(({ lease }) => lease.owner),
        owners,
      );
    });
  }
}

test('where 15% of the calls are lost, and others take up to 600 ms, living hosts keep their slots, and issue', async (t) => {
  for (let seed = 1; seed <= amount(2, 20); seed++) {
    const random = seeded(seed);
    const store = faulty({ now: time.now });
    const slow = async () => {
      await time.sleep(random() * 300);
      // Before it takes effect, or after.
      if (random() < 0.075) await never();
    };
    const flakes = [];
    for (let n = 0; n < 6; n++) flakes.push(await lease(store, { ttl: 30_000 }));
    const owners = flakes.map(({ lease }) => lease.owner);
    Object.assign(store, { fault: slow, late: slow });
    assert.equal(await without(60_000, flakes), 0, `seed ${seed}`);
    assert.deepEqual(
      flakes.map(({ lease }) => lease.owner),
      owners,
      `seed ${seed}`,
    );
    const [renewals, calls] = [store.count('renew'), store.calls.length];
    t.diagnostic(`seed ${seed}: ${calls} calls, ${renewals} renewals`);
    assert.ok(renewals >= 6 * 5);
    Object.assign(store, { fault: undefined, late: undefined });
    await time.run(Promise.all(open.splice(0).map((flake) => flake.close())));
  }
});
