'use strict';
// What every LeaseStore must do: the four rules, as src/authority/mod.rs states them and
// tests/store/contract.rs holds Rust's stores to, and what SnowFlake.lease() needs besides.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');

const LAYOUT = '41/3/5/2/12@1+1580486400000';

const newId = () => randomBytes(16).toString('hex');
const { signal } = new AbortController();

/** A namespace's record, as a process that opens it first would have it. */
function record(more = {}) {
  const limits = { ttl: 60_000, maxClockSkew: 10_000, maxAhead: 0 };
  return { id: newId(), layout: LAYOUT, ...limits, floor: -1, ...more };
}

/** Opens a store's namespace, or creates it. */
function open(store, more) {
  return store.open({ ...record(more), signal });
}

/** A request by a holder of its own. */
function request(more = {}) {
  return {
    datacenterId: 1,
    workerIds: 32,
    owner: newId(),
    holder: { pid: process.pid, host: 'here', startedAt: new Date(1_700_000_000_000) },
    ceiling: 100,
    ttl: 60_000,
    signal,
    ...more,
  };
}

/** A holder and its slot, of the namespace that the store has or `namespace`. */
async function take(store, more) {
  const { id: namespace } = await open(store);
  const asked = request({ namespace, ...more });
  return { ...asked, confirmed: asked.ceiling, ...(await store.acquire(asked)) };
}

/**
 * Holds a store to the contract, with the runner's `test`.
 *
 * @param connect makes a store, as one more process would: `connect(namespace)`
 * @param options `ttl`: the shortest that the engine can do, ms. `die`: has a store's holders die,
 *   where it is not enough that they renew no more; then ttl is as long as a call may take
 */
function contract(test, connect, { ttl, die }) {
  let namespaces = 0;
  /** A namespace of this test alone. */
  const fresh = () => `contract-${process.pid}-${namespaces++}`;
  const newStore = () => connect(fresh());
  /** Until no hold of a dead holder is left. */
  const expire = async (store) => {
    await die?.(store);
    const end = performance.now() + 120_000;
    for (;;) {
      // A call may fail whose session is as short as ttl, on a busy machine.
      const seen = await store.slots().catch(String);
      if (seen.slots?.every(({ isHeld }) => !isHeld)) return;
      assert.ok(performance.now() < end, `it does not expire: ${JSON.stringify(seen)}`);
      await sleep(50);
    }
  };
  /** Calls a body with a ttl that it has come to its end within: one of a slow machine is longer. */
  const within = async (body) => {
    for (let patience = ttl; ; patience *= 2) {
      const start = performance.now();
      const isInTime = () => performance.now() - start < patience * 0.8;
      try {
        const answer = await body(patience);
        if (isInTime()) return answer;
      } catch (failure) {
        if (isInTime()) throw failure;
      }
    }
  };

  test('a first holder has no floor; the next starts at the ceiling it left', async () => {
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
    const [one, refused] = await within(async (ttl) => {
      const store = await newStore();
      const dead = await take(store, { workerIds: 1, ceiling: 500, ttl });
      await store.renew({ ...dead, ceiling: 700, ttl });
      return [store, await take(store, { workerIds: 1 })];
    });
    assert.equal(refused.workerId, undefined);
    const [{ workerId, pid, host, startedAt }] = refused.holders;
    assert.deepEqual([workerId, pid, host], [0, process.pid, 'here']);
    assert.equal(Number(startedAt), 1_700_000_000_000);
    await expire(one);
    assert.equal((await take(one, { workerIds: 1 })).floor, 700);
  });

  test('a recorded ceiling never falls', async () => {
    const [one, renewed] = await within(async (ttl) => {
      const store = await newStore();
      const first = await take(store, { workerIds: 1, ceiling: 900, ttl });
      return [store, await store.renew({ ...first, ceiling: 50, confirmed: 50, ttl })];
    });
    assert.ok(renewed.isHeld);
    await expire(one);
    const second = await take(one, { workerIds: 1, ceiling: 10, ttl });
    assert.equal(second.floor, 900);
    await expire(one);
    assert.equal((await take(one, { workerIds: 1, ceiling: 10 })).floor, 900);
  });

  test('a holder that lost a slot can neither raise nor lower nor release it', async () => {
    const [one, lost] = await within(async (ttl) => {
      const store = await newStore();
      return [store, await take(store, { workerIds: 1, ceiling: 500, ttl })];
    });
    await expire(one);
    const next = await take(one, { workerIds: 1, ceiling: 600 });
    const answer = await one.renew({ ...lost, ceiling: 9999 });
    assert.deepEqual([answer.isHeld, answer.lost], [false, 'taken']);
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

  test('each of many concurrent holders gets a slot of its own, and one too many gets none', async () => {
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

  test('a namespace keeps the record that it was created with', async () => {
    const namespace = fresh();
    const one = await connect(namespace);
    const first = record({ layout: '28/0/22/0/13@1000-86400000', floor: 2 ** 52 + 1 });
    assert.deepEqual(await one.open({ ...first, signal }), first);
    const other = await connect(namespace);
    assert.deepEqual(await open(other, { ttl: 99_000, floor: -1 }), first);
    assert.deepEqual(await open(other), first);
  });

  test('many holders that create a namespace at once get one record', async () => {
    const namespace = fresh();
    const stores = await Promise.all(Array.from({ length: 8 }, () => connect(namespace)));
    const opened = await Promise.all(stores.map((store, n) => open(store, { ttl: 60_000 + n })));
    for (const found of opened) assert.deepEqual(found, opened[0]);
  });

  test('raise() raises what is lower, and leaves the rest', async () => {
    const one = await newStore();
    const { id, ...first } = await open(one, { floor: 50 });
    const raised = { ...first, id, floor: 900, ttl: 70_000 };
    const lower = { maxClockSkew: 1, maxAhead: 0 };
    const request = { namespace: id, floor: 900, ttl: 70_000, ...lower, signal };
    assert.deepEqual(await one.raise(request), raised);
    assert.deepEqual(await one.raise({ namespace: id, floor: 20, signal }), raised);
    assert.deepEqual(await one.raise({ namespace: id, maxAhead: 5, signal }), {
      ...raised,
      maxAhead: 5,
    });
    await assert.rejects(Promise.resolve(one.raise({ namespace: newId(), floor: 9999, signal })));
    assert.deepEqual(await open(one), { ...raised, maxAhead: 5 });
  });

  test('a new ID of the namespace ends all holds; the slots stay', async () => {
    const one = await newStore();
    const first = await take(one, { workerIds: 1, ceiling: 500 });
    const id = newId();
    const raised = await one.raise({ namespace: first.namespace, id, floor: 400, signal });
    assert.deepEqual([raised.id, raised.floor], [id, 400]);
    assert.deepEqual(await open(one), raised);
    const renewed = await one.renew({ ...first, ceiling: 900, confirmed: 500 });
    assert.deepEqual([renewed.isHeld, renewed.lost], [false, 'missing']);
    await one.release({ ...first, last: 1 });
    assert.ok((await one.acquire({ ...first, workerId: undefined })).isMissing);
    const { slots } = await one.slots();
    assert.deepEqual([slots[0].ceiling, slots[0].isHeld], [500, true], 'until it expires');
  });

  test('of many concurrent raises, the highest of each value stays', async () => {
    const namespace = fresh();
    const stores = await Promise.all(Array.from({ length: 6 }, () => connect(namespace)));
    const { id } = await open(stores[0]);
    await Promise.all(
      stores.map((store, n) =>
        store.raise({ namespace: id, floor: 100 + n, maxAhead: 100 - n, signal }),
      ),
    );
    const { floor, maxAhead } = await open(stores[0]);
    assert.deepEqual([floor, maxAhead], [105, 100]);
  });

  test('no slot starts at or below the namespace’s floor', async () => {
    const one = await newStore();
    const { id } = await open(one, { floor: 300 });
    const two = { workerIds: 2 };
    const first = await take(one, two);
    const second = await take(one, { ...two, ceiling: 900 });
    assert.deepEqual([first.floor, second.floor], [300, 300]);
    await one.raise({ namespace: id, floor: 800, signal });
    // Who holds a slot already renews it.
    assert.ok((await one.renew({ ...first, ceiling: 700 })).isHeld);
    await one.release({ ...second, last: 850 });
    await one.release({ ...first, last: 600 });
    const floors = [];
    for (let n = 0; n < 2; n++) floors.push((await take(one, two)).floor);
    assert.deepEqual(floors.sort(), [800, 850]);
  });

  test('in a namespace with another ID nothing is acquired, renewed or released', async () => {
    const one = await newStore();
    const holder = await take(one, { workerIds: 1, ceiling: 500 });
    const stranger = { ...holder, namespace: newId() };
    assert.deepEqual(await one.acquire({ ...stranger, owner: newId() }), { isMissing: true });
    const { isHeld, lost } = await one.renew({ ...stranger, ceiling: 9999 });
    assert.deepEqual([isHeld, lost], [false, 'missing']);
    await one.release({ ...stranger, last: 1 });
    assert.equal((await take(one, { workerIds: 1 })).workerId, undefined, 'it is still held');
    assert.ok((await one.renew({ ...holder, ceiling: 600 })).isHeld);
    await one.release({ ...holder, last: 550 });
    assert.equal((await take(one, { workerIds: 1 })).floor, 550, 'not 9999, not 1');
  });

  test('a record that is older than what was confirmed is not renewed', async () => {
    const one = await newStore();
    const holder = await take(one, { workerIds: 1, ceiling: 500 });
    const answer = await one.renew({ ...holder, ceiling: 900, confirmed: 501 });
    assert.deepEqual([answer.isHeld, answer.lost], [false, 'reverted']);
    assert.ok((await one.renew({ ...holder, ceiling: 600 })).isHeld);
    await one.release({ ...holder, last: 600 });
    assert.equal((await take(one, { workerIds: 1 })).floor, 600, 'not 900');
  });

  test('replies have the times of the store’s clock', async () => {
    const [before, held, after] = await within(async (ttl) => {
      const one = await newStore();
      const start = Date.now();
      const holder = await take(one, { ttl });
      const renewed = await one.renew({ ...holder, ceiling: 200, ttl: ttl * 2 });
      const both = [
        [holder, ttl],
        [renewed, ttl * 2],
      ];
      return [start, both, Date.now()];
    });
    const isNear = (time) => before - 10_000 < time && time < after + 10_000;
    for (const [{ now, expires }, ms] of held) {
      assert.ok(now === undefined || isNear(now), `now ${now}`);
      assert.ok(expires === null || isNear(expires - ms), `expires ${expires}`);
    }
  });

  test('an abandoned call begins nothing', async () => {
    const one = await newStore();
    const holder = await take(one, { workerIds: 1, ceiling: 500 });
    const abort = new AbortController();
    abort.abort();
    const late = { ...holder, owner: newId(), workerIds: 2, signal: abort.signal };
    await Promise.allSettled([one.acquire(late)]);
    const next = await take(one, { workerIds: 2 });
    assert.deepEqual([next.workerId, next.floor], [1, -1], 'nobody had taken it');
  });

  test('slots() lists each slot with its holder and state', async () => {
    const one = await newStore();
    assert.deepEqual((await one.slots()).slots, []);
    const namespace = await open(one, { maxAhead: 7 });
    const held = await take(one, { datacenterId: 1, workerIds: 2, ceiling: 500 });
    const freed = await take(one, { datacenterId: 3, workerIds: 1, ceiling: 600 });
    await one.release({ ...freed, last: 550 });
    const { namespace: found, slots } = await one.slots();
    assert.deepEqual(found, namespace);
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
    assert.ok((await one.renew({ ...first, ceiling: large + 2 })).isHeld);
    await one.release({ ...first, last: large + 2 });
    assert.equal((await take(one, { workerIds: 1 })).floor, large + 2);
  });

  test('it has a clock of its own', async () => {
    const store = await newStore();
    const before = Date.now();
    const now = await store.now();
    const after = Date.now();
    assert.ok(before - 1500 < now && now < after + 1500, `${now - before}, ${after - now} ms`);
  });
}

module.exports = { contract, open, record, take };
