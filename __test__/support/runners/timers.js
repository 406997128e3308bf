'use strict';
// A test of a user's, by jest and by vitest, which app/mocks.test.js runs: snowdrift is loaded before and after the timers are
// faked.

const NOW = Date.UTC(2026, 10, 21);
const { now } = Date;

/** @param fakes what fakes timers @param forget makes the next require() load snowdrift anew */
module.exports = ({ afterEach, expect, test, fakes, forget }) => {
  afterEach(() => {
    fakes.useRealTimers();
    forget();
  });

  test.each(['before', 'after'])('snowdrift is loaded %s the timers are faked', async (order) => {
    if (order === 'before') require('snowdrift');
    fakes.useFakeTimers({ now: NOW });
    const { SnowFlake, layouts } = require('snowdrift');
    const flake = new SnowFlake({ layout: { ...layouts.node, sequenceBits: 1 } });
    expect(Math.abs(Number(flake.parse(flake.nextId()).timestamp) - now())).toBeLessThan(600_000);
    const all = () => Promise.all(Array.from({ length: 100 }, () => flake.nextIdAsync()));
    expect(new Set([...(await all()), ...flake.nextIds(100)]).size).toBe(200);

    const faked = new SnowFlake({ clock: () => Date.now() });
    expect(faked.parse(faked.nextId()).timestamp).toBe(NOW);
    fakes.advanceTimersByTime(1000);
    expect(faked.parse(faked.nextId()).timestamp).toBe(NOW + 1000);
    const drawTick = () => Array.from({ length: 4096 }, () => faked.nextId());
    expect(drawTick).toThrow(/the option clock, at .*, does not reach the next one.*: advance it/);
    await expect(faked.nextIdAsync()).rejects.toThrow(/advance it/);

    fakes.useRealTimers();
    expect(new Set(await all()).size).toBe(100);
  }, 60_000);
};
