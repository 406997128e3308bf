'use strict';
// Fake timers, those of node:test and globals that are replaced by hand: IDs are of the real time, and each wait ends, whenever
// snowdrift is loaded. Those of jest and vitest are in app/mocks.test.js.

const assert = require('node:assert/strict');
const { afterEach, mock, test } = require('node:test');

const { layouts } = require('../../js/id.js');
const { closeLater, loadCopy, refuses, rejects } = require('../support/default-copy.js');
const { dateLead, entry, runScript, wide } = require('../support/support.js');

const NOW = Date.UTC(2026, 10, 21);
const MINUTE = 60_000;
const { now } = Date;
const node = { datacenterId: 1, workerId: 23 };
const apis = ['Date', 'setTimeout', 'setInterval', 'setImmediate'];
/** Two IDs a ms, so that a hundred of them wait. */
const small = { ...layouts.node, sequenceBits: 1 };
const manyOf = (flake) => Promise.all(Array.from({ length: 100 }, () => flake.nextIdAsync()));

afterEach(() => mock.timers.reset());

test('a lease from memory() has the real time, too', async () => {
  const { SnowFlake } = loadCopy();
  const { memory } = require('../../js/stores/memory.js');
  mock.timers.enable({ apis, now: NOW - 365 * 24 * 60 * MINUTE });
  const flake = closeLater(await SnowFlake.lease(memory(), { datacenterId: 1 }));
  assert.equal(flake.lease.state, 'held');
  assert.ok(Math.abs(flake.parse(flake.nextId()).timestamp - now()) < 10 * MINUTE);
  await flake.close();
  assert.equal(flake.lease.state, 'released');
});

for (const order of ['before', 'after']) {
  test(`snowdrift is loaded ${order} the timers are faked`, async () => {
    if (order === 'before') loadCopy();
    mock.timers.enable({ apis, now: NOW });
    const { SnowFlake } = order === 'before' ? require('../..') : loadCopy();
    const flake = closeLater(new SnowFlake({ ...node, layout: small }));
    assert.ok(Math.abs(flake.parse(flake.nextId()).timestamp - now()) < 10 * MINUTE);
    const ids = [...flake.nextIds(100), ...(await manyOf(flake)), ...flake.nextIds(100)];
    mock.timers.setTime(NOW - MINUTE);
    ids.push(...(await manyOf(flake)));
    mock.timers.reset();
    ids.push(...(await manyOf(flake)));
    assert.equal(new Set(ids).size, 500);
    assert.ok(flake.stats().waits > 0);
    assert.equal(flake.stats().clockRollbacks, 0);
  });

  test(`the option clock follows the fake Date, if snowdrift is loaded ${order} it is faked`, async () => {
    if (order === 'before') loadCopy();
    mock.timers.enable({ apis, now: NOW });
    const { SnowFlake } = order === 'before' ? require('../..') : loadCopy();
    const flake = closeLater(new SnowFlake({ ...node, clock: () => Date.now() }));
    assert.equal(flake.parse(flake.nextId()).timestamp, NOW);
    mock.timers.tick(1000);
    for (let n = 0; n < 4096; n++) assert.equal(flake.parse(flake.nextId()).timestamp, NOW + 1000);
    // Each wait ends although the clock stands.
    const advice = /the option clock, at 2026-11-21T00:00:01.000Z, does not reach .* advance it/;
    refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_EXHAUSTED', advice);
    await rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_EXHAUSTED', advice);
    mock.timers.tick(1);
    assert.equal(flake.parse(await flake.nextIdAsync()).timestamp, NOW + 1001);
    mock.timers.setTime(NOW);
    assert.equal(flake.parse(flake.nextId()).clockBack, 1);
  });

  test(`globals are replaced ${order === 'before' ? 'after' : 'before'} snowdrift is loaded: IDs are of this turn, and leases are renewed`, async () => {
    const { stdout, stderr } = await runScript(`
      const { now } = Date, { setTimeout } = globalThis;
      const fake = () => {
        const never = () => ({ unref() {}, ref() {} });
        const fakes = { setTimeout: never, clearTimeout: never, setInterval: never, setImmediate: never };
        Object.assign(globalThis, fakes, { queueMicrotask: never, performance: { now: () => 0 } });
        Object.assign(require('node:timers'), fakes);
        globalThis.Date = class extends Date { static now() { return 0; } getTime() { return 0; } };
        process.nextTick = never;
      };
      if (${order === 'after'}) fake();
      const { SnowFlake } = require(${JSON.stringify(entry)});
      const { memory } = require('snowdrift/lease/memory');
      if (${order === 'before'}) fake();
      const flake = new SnowFlake({ layout: ${JSON.stringify(wide)}, datacenterId: 1, workerId: 0 });
      (async () => {
        let stale = 0;
        for (let round = 0; round < 8; round++) {
          for (let n = 0; n < 700; n++) flake.nextId();
          const start = now();
          while (now() < start + 3);
          await undefined;
          const before = now() - ${dateLead};
          if (flake.parse(flake.nextId()).timestamp < before) stale++;
        }
        if (${order === 'after'}) return console.log(stale);
        const leased = await SnowFlake.lease(memory({ now }), { datacenterId: 1, ttl: 1000 });
        const drawn = () => { try { return typeof leased.nextId(); } catch ({ code }) { return code; } };
        let found;
        // Late timers only take longer.
        for (let n = 0; n < 1500 && found !== 'true held bigint'; n++) {
          await new Promise((resolve) => setTimeout(resolve, 20));
          found = [leased.lease.renewals > 1, leased.lease.state, drawn()].join(' ');
        }
        console.log(stale, found);
        process.exit();
      })();`);
    assert.equal(stdout, order === 'before' ? '0 true held bigint\n' : '0\n', stderr);
  });
}
