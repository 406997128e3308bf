'use strict';
// A test of a user's with sinon, which app/mocks.test.js runs by node --test.

const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');
const sinon = require('sinon');

const NOW = Date.UTC(2026, 10, 21);
const { now } = Date;

afterEach(() => {
  sinon.restore();
  for (const path of Object.keys(require.cache)) {
    if (path.includes('/snowdrift/')) delete require.cache[path];
  }
});

const toFake = [
  ...[
    'setTimeout',
    'clearTimeout',
    'setImmediate',
    'clearImmediate',
    'setInterval',
    'clearInterval',
  ],
  ...['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask'],
];

for (const order of ['before', 'after']) {
  test(`snowdrift is loaded ${order} all timers are faked`, async () => {
    if (order === 'before') require('snowdrift');
    const clock = sinon.useFakeTimers({ now: NOW, toFake });
    const { SnowFlake, layouts } = require('snowdrift');
    const flake = new SnowFlake({ layout: { ...layouts.node, sequenceBits: 1 } });
    assert.ok(Math.abs(flake.parse(flake.nextId()).timestamp - now()) < 600_000);
    const all = () => Promise.all(Array.from({ length: 100 }, () => flake.nextIdAsync()));
    assert.equal(new Set([...(await all()), ...flake.nextIds(100)]).size, 200);

    const faked = new SnowFlake({ clock: () => Date.now() });
    assert.equal(faked.parse(faked.nextId()).timestamp, NOW);
    clock.tick(1000);
    assert.equal(faked.parse(faked.nextId()).timestamp, NOW + 1000);
    sinon.restore();
    assert.equal(new Set(await all()).size, 100);
  });
}
