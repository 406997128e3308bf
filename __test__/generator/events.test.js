'use strict';
// What is told on channels of node:diagnostics_channel.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { afterEach, beforeEach, test } = require('node:test');

const { removeDirectory } = require('../support/own-directory.js');
const {
  CachedSnowFlake,
  SnowFlake,
  entry,
  layouts,
  refuses,
  runScript,
  soon,
  standing,
  until,
} = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');

const LEASE = ['taken', 'renewed', 'failing', 'lost', 'released'].map((what) => `lease-${what}`);
const NAMES = ['clock-rollback', 'wait', ...LEASE].map((name) => `snowdrift:${name}`);

const MONTH_OF_2026 = Date.UTC(2026, 10);

let told;

function listen(message, name) {
  told.push([name.replace('snowdrift:', ''), message]);
}

beforeEach(() => {
  told = [];
  for (const name of NAMES) subscribe(name, listen);
});

afterEach(() => {
  for (const name of NAMES) unsubscribe(name, listen);
});

const names = () => told.map(([name]) => name);
const messages = (wanted) => told.filter(([name]) => name === wanted).map(([, told]) => told);

test('a clock rollback is published with its size and the counter value', () => {
  const clock = standing(MONTH_OF_2026);
  const flake = new SnowFlake({ datacenterId: 1, workerId: 2, clock });
  flake.nextId();
  clock.now -= 250;
  flake.nextId();
  const rollback = { datacenterId: 1, workerId: 2, backMs: 250, clockBack: 1, unreported: 0 };
  assert.deepEqual(told, [['clock-rollback', rollback]]);
});

test('channels publish nothing that did not happen', async () => {
  const flake = new SnowFlake({ datacenterId: 1, workerId: 2 });
  flake.nextId();
  flake.nextIds(10);
  await flake.nextIdAsync();
  flake.close();
  assert.deepEqual(told, []);
});

/** Two IDs a ms. */
const narrow = { ...layouts.node, sequenceBits: 1 };

test('waits are published: how often, how long, for what, and whether the thread was held', async () => {
  const flake = new SnowFlake({ datacenterId: 1, workerId: 3, layout: narrow });
  const cached = new CachedSnowFlake({ datacenterId: 1, workerId: 4, layout: narrow, maxAge: 0 });
  // A process that pauses for some ms waits for fewer.
  const waitsUntil = async (hasEnough, draw) => {
    for (let n = 0; n < 2000 && !hasEnough(messages('wait')); n++) await draw();
    assert.ok(hasEnough(messages('wait')), JSON.stringify(told));
    return messages('wait');
  };
  const singles = await waitsUntil((all) => all.length >= 20, flake.nextId);
  assert.ok(singles.every(({ waits }) => waits >= 1));
  assert.equal(
    singles.reduce((sum, { waits }) => sum + waits, 0),
    flake.stats().waits,
  );
  const sum = singles.reduce((sum, { waitedMs }) => sum + waitedMs, 0);
  assert.ok(Math.abs(sum - flake.stats().waitedMs) < 1e-6);
  const { waits, waitedMs, ...rest } = singles[0];
  assert.deepEqual(rest, { datacenterId: 1, workerId: 3, reason: 'exhausted', blocking: true });

  for (const other of [flake, cached]) {
    told = [];
    const isLong = (all) => all.some((batch) => batch.waits >= 10);
    const batches = await waitsUntil(isLong, () => {
      told = [];
      other.nextIds(100);
      assert.ok(messages('wait').length <= 1, 'one for all of a batch');
    });
    assert.ok(batches[0].blocking, JSON.stringify(batches));
    assert.equal(batches[0].workerId, other.workerId);
  }

  told = [];
  const unheld = await waitsUntil(
    (all) => all.length > 5,
    async () => {
      const ids = await Promise.all(Array.from({ length: 20 }, () => flake.nextIdAsync()));
      assert.equal(new Set(ids).size, 20);
    },
  );
  assert.ok(
    unheld.every(({ blocking }) => !blocking),
    JSON.stringify(told),
  );
  for (const each of [flake, cached]) each.close();
});

test('waits for an own clock are published, also those in vain', () => {
  const clock = standing(MONTH_OF_2026);
  const options = { datacenterId: 1, workerId: 5, layout: narrow, maxWait: 3 };
  const flake = new SnowFlake({ ...options, clock });
  flake.nextId();
  flake.nextId();
  refuses(flake.nextId, 'ERR_SNOWFLAKE_EXHAUSTED');
  const wait = { reason: 'exhausted', waits: 3, waitedMs: 3, blocking: true };
  assert.deepEqual(messages('wait'), [{ datacenterId: 1, workerId: 5, ...wait }]);
});

test('a lease from a store is published: taken, renewed, failing, lost, another taken, released', async () => {
  let ahead = 0;
  const store = faulty({ now: () => Date.now() + ahead });
  const flake = await SnowFlake.lease(store, { datacenterId: 1, ttl: 1000 });
  assert.deepEqual(names(), ['lease-taken']);
  await until(() => messages('lease-renewed').length > 0);
  assert.equal(messages('lease-renewed')[0].renewals, 1);

  store.fault = () => {
    throw new Error('connection refused');
  };
  await until(() => messages('lease-failing').length > 0);
  assert.match(messages('lease-failing')[0].failure, /connection refused/);

  store.fault = undefined;
  ahead = 5000;
  const { workerId } = flake;
  store.steal(workerId);
  await until(() => messages('lease-taken').length === 2);
  const [lost, ...more] = messages('lease-lost');
  assert.deepEqual([lost.slot.workerId, lost.state, more], [workerId, 'lost', []]);
  const [first, second] = messages('lease-taken');
  assert.deepEqual([first.slot.workerId, second.slot.workerId], [workerId, flake.workerId]);
  assert.notEqual(workerId, flake.workerId);
  assert.notEqual(first.owner, second.owner);

  // Waits and steps are of the slot that is held now.
  told = [];
  await soon(() => {
    for (let n = 0; n < 1_000_000 && messages('wait').length === 0; n++) flake.nextId();
    return messages('wait').length > 0;
  });
  assert.ok(messages('wait').length > 0);
  assert.ok(messages('wait').every((message) => message.workerId === flake.workerId));
  flake.close();
  assert.equal(names().at(-1), 'lease-released');
});

test('a forgotten instance is not kept alive by its channels', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-events-'));
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    let flake = new SnowFlake({ datacenterId: 1, workerId: 7, state: ${JSON.stringify(directory)} });
    const was = new WeakRef(flake);
    flake = undefined;
    // Collected within some turns, or never.
    let turns = 0;
    (function look() {
      gc();
      if (was.deref() === undefined || ++turns === 100) return console.log(was.deref() === undefined);
      setTimeout(look, 10);
    })();`;
  const { stdout, stderr } = await runScript(script, { args: ['--expose-gc'] });
  removeDirectory(directory);
  assert.equal(stdout, 'true\n', stderr);
});

// A test runner (jest) ends a test file's environment, and loads nothing for it any more. Leases that the file
// has not closed are still renewed.
test('a renewal loads nothing', async () => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-events-'));
  try {
    const { code, stderr } = await runScript(
      `const { SnowFlake } = require(${JSON.stringify(entry)});
       const state = ${JSON.stringify(state)};
       const flake = new SnowFlake({ datacenterId: 1, workerId: 2, state, ttl: 1000 });
       require('node:module')._load = (name) => {
         throw new Error(name + ' is loaded late');
       };
       const timer = setInterval(() => {
         if (flake.lease.renewals > 0) clearInterval(timer);
       }, 5);`,
    );
    assert.deepEqual([code, stderr], [0, '']);
  } finally {
    removeDirectory(state);
  }
});
