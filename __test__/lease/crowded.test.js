'use strict';
// More leases than worker IDs: those that wait read now and then, and write nothing. Time passes when a test says so.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { faulty } = require('../support/lease/faulty.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { createDirectory } = require('../support/own-directory.js');
const { SnowFlake } = require('../support/support.js');

process.env.SNOWDRIFT_SHARED = createDirectory();
const SLOTS = 32;
const LEASES = 38;

test('of more leases than worker IDs those that wait write nothing, and get what is freed', async (t) => {
  const time = new LeaseTime();
  const held = [];
  t.after(async () => {
    await time.run(Promise.all(held.map((flake) => flake.close())));
    time.end();
  });
  const store = faulty({ now: time.now });
  const options = { datacenterId: 1, scope: 'process', ttl: 30_000, waitForSlot: 600_000 };
  for (let n = 0; n < LEASES; n++) {
    SnowFlake.lease(store, options).then((flake) => held.push(flake));
  }
  await time.until(() => held.length === SLOTS);
  const countOf = (name) => store.calls.filter((call) => call.name === name).length;
  const taken = countOf('write');
  await time.advance(62_000);
  const writes = countOf('write') - taken;
  t.diagnostic(
    `${taken} writes until all slots are held, then ${writes} in 62 s, and ${countOf('read')} reads`,
  );
  assert.equal(held.length, SLOTS);
  // All begin at one instant in one record: most writes find that another was first.
  assert.ok(taken < 10 * LEASES, `${taken} writes until all slots are held`);
  // Seven renewals of each slot, some of which find that another was first.
  assert.ok(writes < 10 * SLOTS, `${writes} writes in 62 s`);
  await time.run(Promise.all(held.slice(0, LEASES - SLOTS).map((flake) => flake.close())));
  await time.until(() => held.length === LEASES);
});
