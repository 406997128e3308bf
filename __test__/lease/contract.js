'use strict';
// What every LeaseStore must do: the four rules, as src/store/mod.rs states them and
// tests/store/contract.rs holds Rust's stores to, and what SnowFlake.lease() needs besides.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');

const LAYOUT = '41/3/5/2/12 bits in ticks of 1 ms from 1580486400000';

/** A request by a holder of its own. */
function request(more = {}) {
  return {
    layout: LAYOUT,
    datacenterId: 1,
    workerIds: 32,
    owner: randomBytes(16).toString('hex'),
    holder: { pid: process.pid, host: 'here', startedAt: new Date(1_700_000_000_000) },
    ceiling: 100,
    horizon: -1,
    ttl: 60_000,
    ...more,
  };
}

/** A holder and its slot. */
async function take(store, more) {
  const asked = request(more);
  const { workerId, floor, expires, holders } = await store.acquire(asked);
  return { ...asked, workerId, floor, expires, holders };
}

/**
 * Holds a store to the contract, with the runner's `test`.
 *
 * @param connect makes a store, as one more process would: `connect(namespace)`
 * @param options `ttl`: the shortest that the engine can do, ms. `die`: has a store's holders die,
 *   where it is not enough that they renew no more
 */
function contract(test, connect, { ttl, die }) {
  let namespaces = 0;
  /** A namespace of this test alone. */
  const fresh = () => `contract-${process.pid}-${namespaces++}`;
  const newStore = () => connect(fresh());
  const expire = async (store) => {
    await die?.(store);
    await sleep(ttl * 1.5 + 500);
  };

  test('a first holder has no floor, the next starts at the ceiling it left', async () => {
    const one = await newStore();
    const first = await take(one, { workerIds: 1, ceiling: 500 });
    assert.deepEqual([first.workerId, first.floor], [0, -1]);
    await one.release({ ...first, last: 321 });
    const second = await take(one, { workerIds: 1, ceiling: 400 });
    assert.deepEqual([second.workerId, second.floor], [0, 321]);
    await one.release({ ...second, last: 321 });
    assert.equal((await take(one, { workerIds: 1 })).floor, 321);
  });

  test('a dead holder’s slot is free when its hold has expired, above its ceiling', async () => {
    const one = await newStore();
    const dead = await take(one, { workerIds: 1, ceiling: 500, ttl });
    assert.ok((await one.renew({ ...dead, ceiling: 700, ttl })).isHeld);
    const refused = await take(one, { workerIds: 1 });
    assert.equal(refused.workerId, undefined);
    const [{ workerId, pid, host, startedAt }] = refused.holders;
    assert.deepEqual([workerId, pid, host], [0, process.pid, 'here']);
    assert.equal(Number(startedAt), 1_700_000_000_000);
    await expire(one);
    assert.equal((await take(one, { workerIds: 1 })).floor, 700);
  });

  test('a recorded ceiling never falls', async () => {
    const one = await newStore();
    const first = await take(one, { workerIds: 1, ceiling: 900, ttl });
    assert.ok((await one.renew({ ...first, ceiling: 50, ttl })).isHeld);
    await expire(one);
    const second = await take(one, { workerIds: 1, ceiling: 10, ttl });
    assert.equal(second.floor, 900);
    await expire(one);
    assert.equal((await take(one, { workerIds: 1, ceiling: 10 })).floor, 900);
  });

  test('whoever lost a slot can neither raise nor lower nor release it', async () => {
    const one = await newStore();
    const lost = await take(one, { workerIds: 1, ceiling: 500, ttl });
    await expire(one);
    const next = await take(one, { workerIds: 1, ceiling: 600 });
    assert.equal((await one.renew({ ...lost, ceiling: 9999 })).isHeld, false);
    await one.release({ ...lost, last: 1 });
    assert.equal((await take(one, { workerIds: 1 })).workerId, undefined, 'it is still held');
    assert.ok((await one.renew({ ...next, ceiling: 700 })).isHeld);
    await one.release({ ...next, last: 650 });
    assert.equal((await take(one, { workerIds: 1 })).floor, 650, 'not 9999, not 1');
  });

  test('the free slot with the lowest ceiling is taken', async () => {
    const one = await newStore();
    const holders = [];
    for (let n = 0; n < 4; n++) holders.push(await take(one, { workerIds: 4, ceiling: 1000 }));
    assert.deepEqual(holders.map(({ workerId }) => workerId).sort(), [0, 1, 2, 3]);
    for (const [n, last] of [40, 20, 10, 30].entries()) {
      await one.release({ ...holders[n], last });
    }
    for (const floor of [10, 20, 30, 40]) {
      assert.equal((await take(one, { workerIds: 4, ceiling: 1000 })).floor, floor);
    }
  });

  test('of many who come at once each gets a slot of its own, and one too many gets none', async () => {
    const namespace = fresh();
    const stores = await Promise.all(Array.from({ length: 9 }, () => connect(namespace)));
    const taken = await Promise.all(stores.map((one) => take(one, { workerIds: 8 })));
    const ids = taken.map(({ workerId }) => workerId).filter((id) => id !== undefined);
    assert.deepEqual(
      ids.sort((a, b) => a - b),
      [0, 1, 2, 3, 4, 5, 6, 7],
    );
    const refused = taken.find(({ holders }) => holders);
    assert.equal(refused.holders.length, 8);
  });

  test('datacenters and namespaces have slots of their own', async () => {
    const one = await newStore();
    assert.equal((await take(one, { workerIds: 1 })).workerId, 0);
    assert.equal((await take(one, { workerIds: 1, datacenterId: 2 })).workerId, 0);
    assert.equal((await take(await newStore(), { workerIds: 1 })).workerId, 0);
  });

  test('another layout or epoch in the namespace is refused', async () => {
    const namespace = fresh();
    const one = await connect(namespace);
    await take(one);
    const layout = LAYOUT.replace('1580486400000', '0');
    for (const again of [one, await connect(namespace)]) {
      await assert.rejects(take(again, { layout }), ({ code, message }) => {
        assert.equal(code, 'ERR_SNOWFLAKE_STORE');
        assert.match(message, /another layout or epoch: .*1580486400000, and not .*from 0\. Use/);
        return true;
      });
    }
  });

  test('operators see each slot, who holds it, and whether', async () => {
    const one = await newStore();
    assert.deepEqual((await one.slots()).slots, []);
    const held = await take(one, { datacenterId: 1, workerIds: 2, ceiling: 500 });
    const freed = await take(one, { datacenterId: 3, workerIds: 1, ceiling: 600 });
    await one.release({ ...freed, last: 550 });
    const { layout, slots } = await one.slots();
    assert.equal(layout, LAYOUT);
    const seen = slots.map((slot) => [slot.datacenterId, slot.workerId, slot.ceiling, slot.isHeld]);
    assert.deepEqual(seen.sort(), [
      [1, held.workerId, 500, true],
      [3, 0, 550, false],
    ]);
    const { pid, host, startedAt } = slots.find(({ isHeld }) => isHeld);
    assert.deepEqual([pid, host, Number(startedAt)], [process.pid, 'here', 1_700_000_000_000]);
  });

  test('large ticks come back exactly', async () => {
    const one = await newStore();
    const large = 2 ** 52 + 1;
    const first = await take(one, { workerIds: 1, ceiling: large });
    await one.renew({ ...first, ceiling: large + 2 });
    await one.release({ ...first, last: large + 2 });
    assert.equal((await take(one, { workerIds: 1 })).floor, large + 2);
  });

  test('it tells its own time', async () => {
    const store = await newStore();
    const before = Date.now();
    const now = await store.now();
    const after = Date.now();
    assert.ok(before - 1500 < now && now < after + 1500, `${now - before}, ${after - now} ms`);
  });
}

module.exports = { contract, take };
