'use strict';
// A directory's lease as an instance follows it: a native thread takes and renews it, the instance goes with it from slot
// to slot, and says so.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { mkdtempSync, readdirSync, unlinkSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { removeDirectory } = require('../support/own-directory.js');
const {
  CachedSnowFlake,
  SnowFlake,
  countDuplicates,
  entry,
  runScript,
  runWorker,
  until,
} = require('../support/support.js');

const ofLinux = process.platform !== 'linux' && 'deletes a page that is mapped';

/** A directory of slots, until the test ends. */
function slots(t) {
  const path = mkdtempSync(join(tmpdir(), 'snowdrift-directory-'));
  t.after(() => removeDirectory(path));
  return path;
}

/** Deletes the host's page of a worker ID, as a program that tidies up there does. */
function deletePage(workerId) {
  const shared = process.env.SNOWDRIFT_SHARED;
  const names = readdirSync(shared, { recursive: true });
  const found = names.filter((name) => name.endsWith(`-worker-${workerId}.page`));
  assert.equal(found.length, 1, `${names}`);
  unlinkSync(join(shared, found[0]));
}

/** The reports of a lease, from now on. */
function reportsOf(t, onReport = () => {}) {
  const reports = [];
  for (const what of ['taken', 'lost', 'released']) {
    const name = `snowdrift:lease-${what}`;
    const note = (report) => {
      reports.push([what, report.state, report.lost, report.slot.workerId]);
      onReport(what, report);
    };
    subscribe(name, note);
    t.after(() => unsubscribe(name, note));
  }
  return reports;
}

/** Prints no warning of this process: that of a lost slot is provoked. */
function silence(t) {
  const kept = process.listeners('warning');
  process.removeAllListeners('warning');
  t.after(() => {
    for (const one of kept) process.on('warning', one);
  });
}

test('an instance that is closed says which worker ID it had, and that its lease is released', async (t) => {
  const directory = slots(t);
  const claimed = new SnowFlake({ datacenterId: 1, workerId: 2, state: directory });
  const leased = await SnowFlake.lease(pathToFileURL(directory), { datacenterId: 1 });
  const held = leased.workerId;
  for (const [flake, workerId] of [
    [claimed, 2],
    [leased, held],
  ]) {
    await flake.close();
    assert.equal(flake.workerId, workerId);
    assert.equal(flake.lease.slot.workerId, workerId);
    assert.equal(flake.lease.state, 'released');
    assert.equal(JSON.parse(JSON.stringify(flake)).workerId, workerId);
  }
});

for (const [name, open] of [
  ['a SnowFlake', (options) => new SnowFlake(options)],
  ['a ring', (options) => new CachedSnowFlake(options)],
]) {
  test(`${name} goes on in the next slot, and reports the loss before it`, {
    skip: ofLinux,
  }, async (t) => {
    silence(t);
    const reports = reportsOf(t);
    const options = { datacenterId: 1, workerId: 3, ttl: 1000, state: slots(t) };
    const flake = open(options);
    const ids = [flake.nextId(), ...flake.nextIds(100)];
    const { owner } = flake.lease;
    deletePage(3);
    // Within this turn, so that both come together.
    for (let next = owner; next === owner; ) {
      const other = open(options);
      next = other.lease.owner;
      other.close();
    }
    reports.length = 0;
    await until(() => reports.some(([what]) => what === 'taken'));
    for (let n = 0; n < 100; n++) ids.push(await flake.nextIdAsync());
    await flake.close();
    assert.deepEqual(reports, [
      ['lost', 'lost', 'page', 3],
      ['taken', 'held', undefined, 3],
      ['released', 'released', undefined, 3],
    ]);
    assert.equal(countDuplicates(ids), 0);
    assert.ok(ids.every((id, at) => at === 0 || id > ids[at - 1]));
  });
}

test('a subscriber may close a lease that is lost', { skip: ofLinux }, async (t) => {
  silence(t);
  let flake;
  const reports = reportsOf(t, (what) => {
    if (what === 'lost') flake.close();
  });
  flake = new SnowFlake({ datacenterId: 1, workerId: 4, ttl: 1000, state: slots(t) });
  flake.nextId();
  deletePage(4);
  await until(() => reports.length === 3);
  assert.deepEqual(
    reports.map(([what]) => what),
    ['taken', 'lost', 'released'],
  );
  assert.ok(flake.isClosed);
  assert.equal(flake.lease.state, 'released');
});

/** Opens, draws and closes a node again and again. Posts its IDs. */
const RELAY = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { SnowFlake } = require(${JSON.stringify(entry)});
  const ids = [];
  for (let n = 0; n < 50; n++) {
    const flake = new SnowFlake(workerData);
    for (let i = 0; i < 5; i++) ids.push(flake.nextId());
    flake.close();
  }
  parentPort.postMessage(ids);`;

for (const scope of ['auto', 'process']) {
  test(`threads that open and close one node refuse each other nothing, with scope '${scope}'`, async (t) => {
    const workerData = { datacenterId: 1, workerId: 5, scope, state: slots(t) };
    const threads = Array.from({ length: 4 }, () => runWorker(RELAY, { eval: true, workerData }));
    const ids = (await Promise.all(threads)).flat();
    assert.equal(ids.length, 4 * 50 * 5);
    assert.equal(countDuplicates(ids), 0);
  });
}

test('instances that are closed or forgotten leave no thread and no file open', {
  skip: ofLinux,
}, async (t) => {
  const { stdout, stderr } = await runScript(
    `const { readdirSync, readFileSync } = require('node:fs');
     const { CachedSnowFlake, SnowFlake } = require(${JSON.stringify(entry)});
     const state = ${JSON.stringify(slots(t))};
     const tasks = () => readdirSync('/proc/self/task').filter((id) => {
       try {
         return readFileSync('/proc/self/task/' + id + '/comm', 'utf8').startsWith('snowdrift');
       } catch {
         return false;
       }
     }).length;
     const files = () => readdirSync('/proc/self/fd').length;
     async function main() {
       const open = (n) => new [SnowFlake, CachedSnowFlake][n % 2]({ datacenterId: 1, workerId: n % 30, state });
       open(0).close();
       const before = files();
       for (let n = 0; n < 60; n++) {
         const flake = open(n);
         flake.nextId();
         flake.close();
       }
       for (let n = 0; n < 10; n++) open(n).nextId();
       const most = tasks();
       while (tasks() > 0) {
         await new Promise((resolve) => setTimeout(resolve, 10));
         gc();
       }
       console.log(most >= 10 && most <= 20, files() <= before);
     }
     main();`,
    { args: ['--expose-gc'] },
  );
  assert.equal(stdout, 'true true\n', stderr);
});
