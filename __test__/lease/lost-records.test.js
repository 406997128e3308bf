'use strict';
// One record of a namespace is lost or cannot be read, and what was never held: on a register in memory whose holders draw
// all the time.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');
const { faulty } = require('../support/lease/faulty.js');
const { newToken } = require('../support/lease/records.js');
const { Sharer } = require('../support/lease/sharer.js');
const { SnowFlake, countDuplicates, layouts, rejects, until } = require('../support/support.js');

const SHORT = { datacenterId: 1, ttl: 1000, maxClockSkew: 200, callTimeout: 60_000 };
const open = [];

beforeEach(() => {
  process.env.SNOWDRIFT_SHARED = createDirectory();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((flake) => flake.close()));
});

async function lease(store, options) {
  const flake = await SnowFlake.lease(store, { ...SHORT, scope: 'process', ...options });
  open.push(flake);
  return flake;
}

/** Draws from all that are open in each turn, so that two of one node do so in one ms. Returns the IDs, and what stops it. */
function drawAll() {
  const ids = [];
  const timer = setInterval(() => {
    for (const flake of open) {
      try {
        ids.push(flake.nextId());
      } catch {}
    }
  }, 1);
  return { ids, stop: () => clearInterval(timer) };
}

for (const [what, keys] of [
  ['its bucket', ['1/0']],
  ['its bucket twice', ['1/0', '1/0']],
  ['the namespace, later its bucket', ['namespace', '1/0']],
  ['its bucket, later the namespace', ['1/0', 'namespace']],
]) {
  test(`a store loses ${what}: nothing repeats, though a living holder's worker ID is claimed`, async (t) => {
    const store = faulty();
    const { ids, stop } = drawAll();
    t.after(stop);
    const first = await lease(store);
    const drawsOn = (flake) => {
      const { timestamp } = flake.parse(
        ids.findLast((id) => flake.parse(id).workerId === flake.workerId) ?? 0n,
      );
      return timestamp > Date.now() - 100;
    };
    await until(() => drawsOn(first));
    for (const key of keys) {
      const { owner, slot } = first.lease;
      store.loseOne(key);
      // It comes before the holder has noticed. Its bucket's line is absent: so a claim takes it. In a new namespace the line is
      // there, but the first one that takes any line of the bucket ends its holder.
      process.env.SNOWDRIFT_SHARED = createDirectory();
      const claimed = key === 'namespace' ? {} : { workerId: slot.workerId };
      const claim = await lease(store, { scope: 'host', waitForSlot: 600_000, ...claimed });
      if (key !== 'namespace') assert.equal(claim.workerId, slot.workerId);
      assert.ok(claim.lease.floor > 0, 'above all that was issued');
      await until(() => first.lease.owner !== owner && first.lease.state === 'held');
      await until(() => [first, claim].every(drawsOn));
      open.splice(open.indexOf(claim), 1);
      await claim.close();
    }
    assert.ok(ids.length > 100);
    assert.equal(countDuplicates(ids), 0);
  });
}

test('a bucket that cannot be read is named, and keeps nobody from the others', async () => {
  const store = faulty();
  // Two buckets.
  const layout = { ...layouts.node, datacenterBits: 2, workerBits: 6 };
  const both = [
    await lease(store, { layout, workerId: 3 }),
    await lease(store, { layout, workerId: 40 }),
  ];
  const [inDamaged, other] = both;
  const { owner } = other.lease;
  store.stored.set('default/1/0', `${newToken()} snowdrift2 bucket of a newer version`);
  const claim = lease(store, { layout, workerId: 4 });
  const { message } = await rejects(claim, 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /records of another format: line 1 of the key 1\/0/);
  for (let n = 0; n < 4; n++) {
    const free = await lease(store, { layout });
    assert.ok(free.workerId >= 32);
    assert.equal(typeof free.nextId(), 'bigint');
  }
  // Its holder knows no more what the store says of it. Its claim is refused by name.
  await until(() => inDamaged.lease.state === 'lost');
  await until(() => /the key 1\/0/.test(inDamaged.lease.failure));
  const { renewals } = other.lease;
  await until(() => other.lease.renewals > renewals);
  assert.deepEqual([other.lease.owner, other.lease.lost], [owner, undefined]);
});

test('a line that cannot be read ends its own holder alone', async () => {
  const store = faulty();
  const [damaged, other] = [await lease(store), await lease(store)];
  const [{ owner, slot }, kept] = [damaged.lease, other.lease];
  const line = new RegExp(`^${slot.workerId} .*$`, 'm');
  const text = store.stored.get('default/1/0');
  const nonsense = `${slot.workerId} of a newer version`;
  store.stored.set('default/1/0', text.replace(/^\S+/, newToken()).replace(line, nonsense));
  await until(() => damaged.lease.owner !== owner && damaged.lease.state === 'held');
  assert.notEqual(damaged.workerId, slot.workerId);
  assert.deepEqual([other.lease.owner, other.lease.lost], [kept.owner, undefined]);
  assert.equal(store.stored.get('default/1/0').match(line)[0], nonsense, 'it stays');
});

test('of two first claims of one worker ID one is refused at once, and has it when the other has closed', {
  skip: process.platform !== 'linux' && 'tried on Linux',
}, async (t) => {
  const store = faulty();
  let takes = 0;
  let go;
  const both = new Promise((resolve) => {
    go = resolve;
  });
  // Both have seen that the line is absent.
  store.fault = ({ does }) => {
    if (does !== 'take') return undefined;
    if (++takes === 2) go();
    return both;
  };
  const hosts = await Promise.all(
    [0, 1].map(() => Sharer.start(store, { env: { SNOWDRIFT_SHARED: createDirectory() } })),
  );
  t.after(() => Promise.all(hosts.map((host) => host.kill())));
  // A horizon that no test waits for.
  const claim = { datacenterId: 1, workerId: 3, ttl: 3_600_000, callTimeout: 60_000 };
  const outcomes = await Promise.allSettled(
    hosts.map((host) => host.lease({ ...claim, waitForSlot: 0 })),
  );
  const [won, lost] = outcomes[0].status === 'fulfilled' ? hosts : hosts.toReversed();
  const [refusal] = outcomes.filter(({ status }) => status === 'rejected');
  assert.equal(refusal.reason.code, 'ERR_SNOWFLAKE_IN_USE');
  assert.match(refusal.reason.message, /workerId 3 .* is held: process \d+ on/);
  const ids = await won.draw(20);
  const waiting = lost.lease({ ...claim, waitForSlot: 600_000 });
  await won.close();
  const { floor, slot } = await waiting;
  assert.equal(slot.workerId, 3);
  assert.ok(floor >= SnowFlake.parse(ids.at(-1)).timestamp, 'above what was issued');
  assert.ok(floor <= Date.now(), 'it waits for no horizon');
  ids.push(...(await lost.draw(20)));
  assert.equal(countDuplicates(ids), 0);
});
