'use strict';
// One lease per host, within one process: instances and threads share a slot by its page, and pages do not
// accumulate. Time passes when a test says so. lease/host-processes.test.js has several processes, and the tests of
// src/registry/host have what the driver and the pages do.
//
//   TESTS_TIMES=200 node --test __test__/lease/host.test.js

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { mkdtempSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { afterEach, test } = require('node:test');
const { fileURLToPath, pathToFileURL } = require('node:url');

const { amount } = require('../support/amount.js');
const { createDirectory } = require('../support/own-directory.js');
const {
  CachedSnowFlake,
  SnowFlake,
  countDuplicates,
  layouts,
  refuses,
  rejects,
} = require('../support/support.js');
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

hostTest(
  'leases of one namespace share a slot, which one of them renews',
  async ({ directory }) => {
    const store = faulty();
    // Other clients of the same records, as of another connection.
    const other = faulty({ stored: store.stored });
    const short = { ttl: SHORT_TTL };
    const flakes = [await leased(store, short), await leased(store, short)];
    flakes.push(await leased(other, short));
    for (const field of ['owner', 'ceiling', 'renewals']) {
      assert.equal(new Set(flakes.map(({ lease }) => lease[field])).size, 1, field);
    }
    assert.equal(new Set(flakes.map((flake) => flake.stats().page)).size, 1);
    assert.equal(pagesIn(directory).length, 1);
    assert.equal(store.count('take') + other.count('take'), 1);
    const ids = flakes.flatMap((flake) => [...flake.nextIds(2000)]);
    assert.equal(countDuplicates(ids), 0);
    const { lease } = flakes[0];
    assert.deepEqual(
      [lease.scope, lease.renewer.pid, typeof lease.renewer.since],
      ['host', process.pid, 'number'],
    );
    await until(() => flakes[2].lease.renewals >= 2);
    for (const flake of flakes) assert.equal(flake.lease.renewals, flakes[2].lease.renewals);
  },
);

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

hostTest('the last one to close releases, and others draw on until then', async () => {
  const store = faulty();
  const [first, last] = [await leased(store), await leased(store)];
  await first.close();
  assert.deepEqual([first.lease.state, last.lease.state], ['released', 'held']);
  const id = last.nextId();
  assert.equal(store.count('release'), 0);
  await last.close();
  const [{ ceiling }] = store.calls.filter(({ does }) => does === 'release');
  assert.equal(ceiling + layouts.node.epoch, last.parse(id).timestamp, 'up to its last ID');
  assert.deepEqual(heldSlots(store), []);
});

hostTest('a slot that was lost moves all of them to one new slot, with one warning', async () => {
  let ahead = 0;
  const store = faulty({ now: () => Date.now() + ahead });
  const short = { ttl: SHORT_TTL };
  const flakes = [await leased(store, short), await leased(store, short)];
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

hostTest(
  'a slot that another one gave up is lost at once, before its holder has looked',
  async () => {
    const store = faulty();
    const [first, second] = [await leased(store), await leased(store)];
    second.nextId();
    first.afterRestore();
    assert.deepEqual([second.lease.state, second.lease.lost], ['lost', 'restored']);
    refuses(second.nextId, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
  },
);

hostTest('a node that a host has leased is not opened otherwise', async () => {
  const flake = await leased(memory());
  const { workerId } = flake;
  const state = mkdtempSync(join(root, 'state-'));
  const beside = { datacenterId: 1, workerId, scope: 'process' };
  for (const options of [
    { datacenterId: 1, workerId },
    { ...beside, state },
  ]) {
    refuses(() => new SnowFlake(options), 'ERR_SNOWFLAKE_CONFLICT');
  }
  const filed = await SnowFlake.lease(pathToFileURL(state), { datacenterId: 1, scope: 'process' });
  open.push(filed);
  assert.notEqual(filed.workerId, workerId);
});

hostTest(
  'a lease whose instance cannot be opened leaves no page of its slot',
  async ({ directory }) => {
    const store = faulty();
    const tooLarge = { datacenterId: 1, boostPower: 13 };
    await time.run(rejects(CachedSnowFlake.lease(store, tooLarge), 'ERR_SNOWFLAKE_CONFIG'));
    assert.deepEqual([pagesIn(directory), heldSlots(store)], [[], []]);
  },
);

hostTest(
  'a host whose pages are damaged leaves the slots to others, and names a page',
  async ({ directory }) => {
    const store = faulty();
    const options = { layout: { ...layouts.node, workerBits: 0 } };
    const flake = await leased(store, options);
    const { page } = flake.stats();
    await flake.close();
    writeFileSync(page, 'no page'.repeat(1000));
    const { message } = await rejects(leased(store, options), 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /worker-0\.page/);
    assert.deepEqual([heldSlots(store), store.count('take')], [[], 1]);
    rmSync(join(directory, pagesIn(directory)[0]));
  },
);

hostTest('rings of two sizes have a slot each', async () => {
  const store = memory();
  const rings = [];
  for (const boostPower of [1, 2]) {
    const options = { datacenterId: 1, ttl: TTL, boostPower };
    rings.push(await time.run(CachedSnowFlake.lease(store, options)));
    open.push(rings.at(-1));
  }
  assert.equal(countDuplicates(rings.flatMap((ring) => [...ring.nextIds(1000)])), 0);
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
