'use strict';
// A machine that was restored from a snapshot: its original may run on with the same slot. So it issues nothing more from that,
// and leaves it alone.

const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');

const { memory } = require('../../js/stores/memory.js');
const { faulty } = require('../support/lease/faulty.js');
const { createDirectory } = require('../support/own-directory.js');
const { CachedSnowFlake, SnowFlake, refuses, until } = require('../support/support.js');

const EXPIRED = 'ERR_SNOWFLAKE_LEASE_EXPIRED';

process.env.SNOWDRIFT_SHARED = createDirectory();
const open = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((flake) => flake.close()));
});

async function lease(stored, options, Class = SnowFlake) {
  const store = memory({ stored });
  const flake = await Class.lease(store, { datacenterId: 1, ttl: 600_000, ...options });
  open.push(flake);
  return flake;
}

/** The line of a slot. */
const lineOf = (stored, { workerId }) => faulty({ stored }).slot(workerId);

for (const scope of ['host', 'process']) {
  test(`afterRestore() ends the slot and takes another (scope '${scope}')`, async () => {
    const stored = new Map();
    const flake = await lease(stored, { scope });
    const { slot, owner } = flake.lease;
    flake.nextId();
    const line = lineOf(stored, slot);
    flake.afterRestore();
    const { message } = refuses(() => flake.nextId(), EXPIRED);
    assert.match(message, /restored from/);
    await until(() => flake.lease.state === 'held' && flake.lease.owner !== owner);
    assert.notEqual(flake.workerId, slot.workerId);
    assert.equal(flake.parse(flake.nextId()).workerId, flake.workerId);
    assert.deepEqual(lineOf(stored, slot), line, 'the original keeps its slot');
  });
}

test('IDs that were made ahead are dropped', async () => {
  const stored = new Map();
  const options = { maxAge: 600_000, clockBack: 'wait' };
  const cached = await lease(stored, options, CachedSnowFlake);
  const { workerId } = cached;
  cached.nextId();
  assert.ok(cached.stats().ring.left > 0);
  cached.afterRestore();
  refuses(() => cached.nextId(), EXPIRED);
  await until(() => cached.lease.state === 'held' && cached.workerId !== workerId);
  assert.notEqual(cached.parse(await cached.nextIdAsync()).workerId, workerId);
});

test('a worker ID that is assigned then issues at once', async () => {
  const free = [5, 6];
  let isAway = false;
  const assign = async () => {
    if (isAway) throw new Error('away');
    return free.shift();
  };
  const flake = await SnowFlake.lease({ name: 'zoo', assign }, { datacenterId: 1 });
  open.push(flake);
  isAway = true;
  flake.afterRestore();
  await until(() => flake.lease.failure !== undefined);
  assert.match(flake.lease.failure, /zoo failed to assign a worker ID: Error: away/);
  isAway = false;
  await until(() => flake.lease.state === 'held');
  assert.equal(flake.parse(flake.nextId()).workerId, 6);
});

test('afterRestore() is refused without a lease from a store', () => {
  const flake = new SnowFlake({ datacenterId: 1, workerId: 3 });
  const { message } = refuses(() => flake.afterRestore(), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /needs a lease from a store/);
  flake.close();
  flake.afterRestore();
});
