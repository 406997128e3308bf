'use strict';
// One lease per host, within one process: instances and threads share a slot by its page, and pages do not
// accumulate. Time passes when a test says so. lease/host-processes.test.js has several processes.
//
//   TESTS_TIMES=200 node --test __test__/lease/host.test.js

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { mkdtempSync, readdirSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { afterEach, test } = require('node:test');
const { fileURLToPath, pathToFileURL } = require('node:url');

const { amount } = require('../support/amount.js');
const { createDirectory } = require('../support/own-directory.js');
const { SnowFlake, countDuplicates, layouts, rejects } = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { pagesIn } = require('../support/lease/on-host.js');
const { readLine } = require('../support/lease/slot-file.js');
const { memory } = require('../../js/stores/memory.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
const OPENS = amount(100, 500);
/** Longer than a busy machine stops a process. */
const TTL = 60_000;
/** Where renewals are waited for. */
const SHORT_TTL = 4000;
const open = [];
/** Of one test. */
let time;
const root = linux ? undefined : createDirectory();

const until = (condition) => time.until(condition);
const closeAll = () => time.run(Promise.all(open.splice(0).map((flake) => flake.close())));

afterEach(async () => {
  await closeAll();
  time.end();
});

/** A test with a directory of pages of its own. */
function hostTest(name, body) {
  test(name, { skip: linux }, async (t) => {
    const before = process.env.SNOWDRIFT_SHARED;
    const directory = mkdtempSync(join(root, 'shared-'));
    process.env.SNOWDRIFT_SHARED = directory;
    time = new LeaseTime();
    try {
      await body({ t, directory });
      await closeAll();
      await sweep(1);
      assert.deepEqual(pagesIn(directory), [], 'no page is left');
    } finally {
      process.env.SNOWDRIFT_SHARED = before;
    }
  });
}

async function leased(store, options) {
  const all = { datacenterId: 1, ttl: TTL, callTimeout: 60_000, ...options };
  const flake = await time.run(SnowFlake.lease(store, all));
  open.push(flake);
  return flake;
}

/** A page that was closed in the ms of its last ID stays until a later lease finds it. */
async function sweep(datacenterId) {
  const closed = Date.now();
  await until(() => Date.now() > closed);
  const flake = await time.run(SnowFlake.lease(memory(), { datacenterId, ttl: TTL }));
  await flake.close();
}

const heldSlots = ({ slots }) => slots.filter(({ kind }) => kind === 'held');

hostTest('leases of one namespace share a slot', async ({ directory }) => {
  const store = faulty();
  // Other clients of the same records, as of another connection.
  const other = faulty({ stored: store.stored });
  const flakes = [await leased(store), await leased(store), await leased(other)];
  const owners = flakes.map(({ lease }) => lease.owner);
  assert.equal(new Set(owners).size, 1);
  assert.equal(new Set(flakes.map((flake) => flake.stats().page)).size, 1);
  assert.equal(store.count('take') + other.count('take'), 1);
  assert.equal(pagesIn(directory).length, 1);
  const ids = flakes.flatMap((flake) => [...flake.nextIds(2000), flake.nextId()]);
  assert.equal(countDuplicates(ids), 0);
  const { lease } = flakes[0];
  assert.deepEqual(
    [lease.scope, lease.renewer.pid, typeof lease.renewer.since],
    ['host', process.pid, 'number'],
  );
});

hostTest('one of the leases of a namespace renews the slot', async () => {
  const store = faulty();
  const other = faulty({ stored: store.stored });
  const short = { ttl: SHORT_TTL };
  const flakes = [
    await leased(store, short),
    await leased(store, short),
    await leased(other, short),
  ];
  const before = flakes[0].lease.renewals;
  const asked = () => store.count('renew') + other.count('renew');
  const start = asked();
  await until(() => flakes[2].lease.renewals >= before + 4);
  // All see them, and they are no more than of one.
  const renewals = flakes[2].lease.renewals - before;
  assert.ok(asked() - start <= renewals + 2, `${asked() - start} calls, ${renewals} renewals`);
  for (const flake of flakes) assert.equal(flake.lease.renewals, flakes[2].lease.renewals);
});

hostTest('a short ttl of one lease does not shorten the hold of another one', async () => {
  const store = faulty();
  await leased(store, { ttl: 3 * SHORT_TTL });
  const short = await leased(store, { ttl: SHORT_TTL });
  // The short one renews at its pace.
  const count = store.count('renew');
  await until(() => store.count('renew') > count + 3);
  await short.close();
  for (const end = time.passed + SHORT_TTL; time.passed < end; await time.advance(10)) {
    const [{ kind, expires }] = store.slots;
    assert.ok(kind === 'held' && expires > time.now(), 'other hosts can have the slot');
  }
  const writes = store.calls.filter(({ does }) => does === 'take' || does === 'renew');
  const expiries = writes.map(({ expires }) => expires);
  assert.deepEqual(
    expiries,
    [...expiries].sort((a, b) => a - b),
    'no renewal shortens the hold',
  );
});

hostTest('stores with other records do not share, and have other worker IDs', async () => {
  const flakes = [await leased(memory()), await leased(memory())];
  assert.notEqual(flakes[0].lease.owner, flakes[1].lease.owner);
  assert.notEqual(flakes[0].workerId, flakes[1].workerId);
});

hostTest('another datacenterId, layout or epoch has a slot of its own', async () => {
  const store = memory();
  const flakes = [await leased(store), await leased(store, { datacenterId: 2 })];
  assert.notEqual(flakes[0].lease.owner, flakes[1].lease.owner);
  assert.deepEqual(
    flakes.map(({ datacenterId }) => datacenterId),
    [1, 2],
  );
});

hostTest("scope 'process' leases a slot a call, and makes no page", async ({ directory }) => {
  const store = memory();
  const flakes = [];
  for (let n = 0; n < 3; n++) flakes.push(await leased(store, { scope: 'process' }));
  assert.equal(new Set(flakes.map(({ workerId }) => workerId)).size, 3);
  for (const flake of flakes) {
    const { scope, renewer } = flake.lease;
    assert.deepEqual([scope, renewer, flake.stats().page], ['process', undefined, undefined]);
  }
  assert.deepEqual(pagesIn(directory), []);
});

hostTest(
  'a store that gives each process a slot of its own makes no page',
  async ({ directory }) => {
    const store = { ...memory(), scope: 'process' };
    const flakes = [await leased(store), await leased(store)];
    assert.notEqual(flakes[0].workerId, flakes[1].workerId);
    assert.deepEqual(pagesIn(directory), []);
    await rejects(leased(store, { scope: 'host' }), 'ERR_SNOWFLAKE_CONFIG');
  },
);

hostTest('leases of one process that search at once get all slots, and one more none', async () => {
  const store = faulty();
  // Each takes its own time.
  store.fault = () => time.sleep(Math.random() * 5);
  const layout = { ...layouts.node, workerBits: 3 };
  const leases = Array.from({ length: 9 }, () => leased(store, { layout, scope: 'process' }));
  const settled = await Promise.allSettled(leases);
  const refused = settled.filter(({ status }) => status === 'rejected');
  assert.deepEqual(
    refused.map(({ reason }) => reason.code),
    ['ERR_SNOWFLAKE_NO_SLOT'],
  );
  assert.equal(heldSlots(store).length, 8);
});

hostTest('the last one to close releases, and others draw on until then', async () => {
  const store = faulty();
  const [first, second, third] = [await leased(store), await leased(store), await leased(store)];
  const ids = [];
  for (const flake of [first, second]) {
    await flake.close();
    ids.push(...third.nextIds(100), third.nextId());
    assert.equal(store.count('release'), 0);
    assert.equal(flake.lease.state, 'released');
  }
  assert.equal(third.lease.state, 'held');
  assert.equal(countDuplicates(ids), 0);
  const last = third.nextId();
  await third.close();
  const [{ ceiling }] = store.calls.filter(({ does }) => does === 'release');
  const { epoch } = layouts.node;
  assert.equal(ceiling + epoch, third.parse(last).timestamp, 'up to its last ID');
  assert.deepEqual(heldSlots(store), []);
});

hostTest('one that closes while another one opens leaves it a slot', async () => {
  const store = faulty();
  for (let n = 0; n < 30; n++) {
    const first = await leased(store);
    const [second] = await Promise.all([leased(store), first.close()]);
    assert.equal(typeof second.nextId(), 'bigint');
    assert.equal(second.lease.state, 'held');
    await second.close();
  }
  assert.equal(store.count('release'), store.count('take'));
});

hostTest('one that is left alone with a slot that it joined takes it over', async () => {
  // Only a renewal by the one that took it shows that the slot is of this store, and not of a copy.
  const store = faulty();
  const first = await leased(store);
  const second = await leased(store);
  const { owner, slot, ceiling } = first.lease;
  const ids = [...first.nextIds(2000), ...second.nextIds(2000)];
  await time.run(first.close());
  assert.equal(second.lease.owner, owner);
  ids.push(second.nextId());
  const left = time.passed;
  await until(() => second.lease.owner !== owner);
  assert.ok(time.passed - left < TTL, 'before its ceiling');
  await until(() => second.lease.state === 'held');
  assert.deepEqual(second.lease.slot, slot);
  assert.ok(second.lease.floor < ceiling, 'it waits for no more than was issued');
  ids.push(...second.nextIds(2000));
  assert.equal(countDuplicates(ids), 0);
  assert.equal(heldSlots(store).length, 1);
  // From then on it renews.
  const { renewals } = second.lease;
  await until(() => second.lease.renewals > renewals);
});

hostTest('one whose release fails keeps no other one of the host waiting', async () => {
  const store = faulty();
  const first = await leased(store, { callTimeout: 1000 });
  store.fault = () => Promise.reject(new Error('away'));
  await time.run(first.close());
  assert.equal(heldSlots(store).length, 1, 'it expires');
  const closed = time.passed;
  const second = await leased(memory());
  assert.equal(typeof second.nextId(), 'bigint');
  assert.ok(time.passed - closed < 1000, 'it waits for no lock');
});

hostTest('one that has joined renews, by a store whose replies have no time', async () => {
  const store = faulty();
  for (const name of ['read', 'write']) {
    const call = store[name];
    store[name] = async (...values) => {
      const { now, ...reply } = await call(...values);
      return reply;
    };
  }
  const [first, second] = [await leased(store), await leased(store)];
  const { owner, renewals } = first.lease;
  // It shows that the store is the page's own.
  await until(() => second.lease.renewals > renewals);
  await time.run(first.close());
  const before = second.lease.renewals;
  await until(() => second.lease.renewals > before);
  assert.deepEqual([second.lease.owner, second.lease.state], [owner, 'held']);
});

hostTest('one whose store contradicts a page joins the next one', async () => {
  const store = faulty();
  const narrow = { ttl: SHORT_TTL, layout: { ...layouts.node, workerBits: 0 } };
  const first = await leased(store, narrow);
  // Nothing has shown yet that its store is the page's own.
  const second = await leased(store, narrow);
  const { owner } = first.lease;
  let isLost = false;
  store.late = ({ does }) => {
    if (does !== 'renew' || isLost) return;
    isLost = true;
    store.loseOne('1/0');
  };
  const hasMoved = ({ lease }) => lease.owner !== owner && lease.state === 'held';
  await until(() => [first, second].every(hasMoved));
  assert.equal(second.lease.owner, first.lease.owner);
});

hostTest('two that take a slot at one time keep both until they close', async () => {
  // The wait for another one that takes a slot is by the addon's clock.
  time.end();
  const stopped = faulty();
  const other = faulty({ stored: stopped.stored });
  let go;
  const going = new Promise((resolve) => {
    go = resolve;
  });
  stopped.late = ({ does }) => does === 'take' && going;
  // Its renewals are waited for.
  const first = leased(stopped, { ttl: SHORT_TTL });
  await until(() => stopped.count('take') > 0);
  // While the first one is stopped, it waits for some calls.
  const second = await leased(other, { ttl: SHORT_TTL, callTimeout: 50 });
  go();
  const two = [await first, second];
  assert.notEqual(two[0].lease.owner, two[1].lease.owner);
  // Later ones join the one with the lower worker ID.
  two.sort((a, b) => a.workerId - b.workerId);
  const third = await leased(other, { ttl: SHORT_TTL });
  assert.equal(third.lease.owner, two[0].lease.owner);
  const flakes = [...two, third];
  const ids = flakes.flatMap((flake) => [...flake.nextIds(2000), flake.nextId()]);
  assert.equal(countDuplicates(ids), 0);
  // A renewal does not move them.
  const { owner, renewals } = two[1].lease;
  await until(() => two[1].lease.renewals > renewals);
  assert.equal(two[1].lease.owner, owner);
  assert.equal(heldSlots(stopped).length, 2);
  await Promise.all(flakes.map((flake) => flake.close()));
  assert.deepEqual(heldSlots(stopped), []);
});

hostTest('one that finds a slot of the host while it takes another one joins it', async () => {
  // The wait for another one that takes a slot is by the addon's clock.
  time.end();
  const stopped = faulty();
  const other = faulty({ stored: stopped.stored });
  let go;
  const going = new Promise((resolve) => {
    go = resolve;
  });
  const isLook = ({ name, of }) => name === 'read' && of === 'bucket';
  stopped.fault = (call) => isLook(call) && going;
  const first = leased(stopped);
  await until(() => stopped.calls.some(isLook));
  const second = await leased(other, { callTimeout: 50 });
  go();
  assert.equal((await first).lease.owner, second.lease.owner);
  assert.equal(heldSlots(stopped).length, 1);
});

hostTest('a slot that was lost moves all of them to one new slot, with one warning', async () => {
  let ahead = 0;
  const store = faulty({ now: () => Date.now() + ahead });
  const short = { ttl: SHORT_TTL };
  const flakes = [
    await leased(store, short),
    await leased(store, short),
    await leased(store, short),
  ];
  const { owner, slot } = flakes[0].lease;
  const warnings = [];
  const note = ({ code }) => warnings.push(code);
  process.on('warning', note);
  // As by another host, after the hold has expired.
  ahead = 2 * SHORT_TTL;
  store.steal(slot.workerId);
  await until(() => flakes.every(({ lease }) => lease.owner !== owner && lease.state === 'held'));
  await until(() => warnings.length > 0);
  assert.equal(new Set(flakes.map(({ lease }) => lease.owner)).size, 1);
  assert.equal(new Set(flakes.map((flake) => flake.stats().page)).size, 1);
  assert.ok(flakes.every(({ workerId }) => workerId === flakes[0].workerId));
  assert.notEqual(flakes[0].workerId, slot.workerId);
  process.off('warning', note);
  assert.deepEqual(warnings, ['SNOWFLAKE_SLOT_LOST']);
});

hostTest('a page that was deleted is given up: all go on by another one', async ({ directory }) => {
  const store = faulty();
  const flakes = [await leased(store), await leased(store)];
  const { page } = flakes[0].stats();
  const ids = [...flakes[0].nextIds(100)];
  rmSync(page);
  const draws = (flake) => {
    try {
      ids.push(flake.nextId());
      return flake.stats().page !== undefined && flake.lease.state === 'held';
    } catch {
      return false;
    }
  };
  await until(() => flakes.every(draws) && pagesIn(directory).length === 1);
  await until(() => flakes[0].stats().page === flakes[1].stats().page);
  assert.equal(countDuplicates(ids), 0);
  assert.equal(heldSlots(store).length, 1, 'the slot before was released');
});

hostTest(
  'threads share the slot with the main thread, and outlive it there',
  async ({ directory }) => {
    time.end();
    const { Worker } = require('node:worker_threads');
    const url = pathToFileURL(mkdtempSync(join(root, 'store-'))).href;
    // Of a directory, since a thread has no client of ours.
    const flake = await SnowFlake.lease(url, { datacenterId: 1, ttl: TTL });
    const body = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { SnowFlake } = require(${JSON.stringify(require.resolve('../..'))});
    SnowFlake.lease(workerData, { datacenterId: 1, ttl: ${TTL} }).then((flake) => {
      parentPort.postMessage({ lease: flake.lease, ids: flake.nextIds(500) });
      parentPort.once('message', () => flake.close());
    });`;
    const workers = [0, 1].map(() => new Worker(body, { eval: true, workerData: url }));
    const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
    const ids = [...flake.nextIds(500), ...answers.flatMap(([answer]) => [...answer.ids])];
    assert.equal(countDuplicates(ids), 0);
    assert.ok(answers.every(([{ lease }]) => lease.owner === flake.lease.owner));
    await flake.close();
    for (const worker of workers) worker.postMessage('close');
    await Promise.all(workers.map((worker) => once(worker, 'exit')));
    // close() waits for the release for a second only.
    const file = join(fileURLToPath(url), 'datacenter-1-worker-0.slot');
    await until(() => readLine(file).kind === 'free');
    // The page of a directory's slot stays.
    for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
  },
);

hostTest(`${OPENS} leases and their ends leave no page`, async ({ t, directory }) => {
  const store = memory();
  const count = () => readdirSync(directory, { recursive: true }).length;
  const first = await leased(store);
  await first.close();
  const before = count();
  const start = performance.now();
  let last = -1n;
  for (let n = 0; n < OPENS; n++) {
    const flake = await time.run(SnowFlake.lease(store, { datacenterId: n % 8, ttl: TTL }));
    if (n % 8 === 0) {
      const id = flake.nextId();
      assert.ok(id !== last);
      last = id;
    }
    await flake.close();
  }
  t.diagnostic(`${((performance.now() - start) / OPENS).toFixed(2)} ms each`);
  await sweep(0);
  assert.deepEqual(pagesIn(directory), []);
  assert.ok(count() <= before + 8, `${before} files before, ${count()} after`);
});
