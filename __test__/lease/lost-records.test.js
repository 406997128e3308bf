'use strict';
// One record of a namespace is lost or cannot be read, and what was never held: on a register in memory, whose holders draw
// meanwhile.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');
const { faulty } = require('../support/lease/faulty.js');
const { newToken } = require('../support/lease/records.js');
const { Sharer } = require('../support/lease/sharer.js');
const {
  SnowFlake,
  countDuplicates,
  layouts,
  rejects,
  soon,
  until,
} = require('../support/support.js');

const SHORT = { datacenterId: 1, ttl: 1000, maxClockSkew: 200, callTimeout: 60_000 };
const LINUX = { skip: process.platform !== 'linux' && 'tried on Linux' };
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

/** A host: a process with a directory of pages of its own. */
async function startHost(t, store) {
  const host = await Sharer.start(store, { env: { SNOWDRIFT_SHARED: createDirectory() } });
  t.after(() => host.kill());
  return host;
}

for (const [what, keys] of [
  ['its bucket', ['1/0']],
  ['its bucket twice', ['1/0', '1/0']],
  ['the namespace, later its bucket', ['namespace', '1/0']],
  ['its bucket, later the namespace', ['1/0', 'namespace']],
]) {
  test(
    `a store loses ${what}: nothing repeats, though another host takes a slot before the holder notices`,
    LINUX,
    async (t) => {
      const store = faulty();
      const own = faulty({ stored: store.stored });
      const first = await startHost(t, own);
      await first.lease(SHORT);
      const ids = [];
      for (const key of keys) {
        const { owner, slot } = await first.report();
        const next = await startHost(t, store);
        // It goes on until its next renewal.
        const drawing = first.draw(500, 100);
        const renewals = own.count('renew');
        await until(() => own.count('renew') > renewals);
        // It notices nothing before the other host has a slot.
        let go;
        const going = new Promise((resolve) => {
          go = resolve;
        });
        own.fault = () => going;
        store.loseOne(key);
        // In a lost bucket the holder's own worker ID is absent. In a new namespace its line is there.
        const claimed = key === 'namespace' ? {} : { workerId: slot.workerId };
        const claim = await next.lease({ ...SHORT, waitForSlot: 600_000, ...claimed });
        if (key !== 'namespace') assert.equal(claim.slot.workerId, slot.workerId);
        assert.ok(claim.floor > 0, 'above all that was issued');
        own.fault = undefined;
        go();
        ids.push(...(await next.draw(500)), ...(await drawing));
        await until(async () => {
          const lease = await first.report();
          return lease.owner !== owner && lease.state === 'held';
        });
        ids.push(...(await Promise.all([first, next].map((host) => host.draw(200)))).flat());
        await next.close();
      }
      assert.ok(ids.length >= 100);
      assert.equal(countDuplicates(ids), 0);
    },
  );
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
    assert.equal(typeof (await soon(free.nextId)), 'bigint');
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

test(
  'of two first claims of one worker ID one is refused at once, and has it when the other has closed',
  LINUX,
  async (t) => {
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
    const hosts = await Promise.all([0, 1].map(() => startHost(t, store)));
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
  },
);
