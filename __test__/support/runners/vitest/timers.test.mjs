// A test of a user's, which app/mocks.test.js runs: snowdrift is loaded before and after the timers are faked.

import { createRequire } from 'node:module';
import { afterEach, expect, test, vi } from 'vitest';

const require = createRequire(import.meta.url);

const NOW = Date.UTC(2026, 10, 21);
const { now } = Date;

afterEach(() => {
  vi.useRealTimers();
  for (const path of Object.keys(require.cache)) delete require.cache[path];
});

test.each(['before', 'after'])('snowdrift is loaded %s the timers are faked', async (order) => {
  if (order === 'before') require('snowdrift');
  vi.useFakeTimers({ now: NOW });
  const { SnowFlake, layouts } = require('snowdrift');
  const flake = new SnowFlake({ layout: { ...layouts.node, sequenceBits: 1 } });
  expect(Math.abs(Number(flake.parse(flake.nextId()).timestamp) - now())).toBeLessThan(600_000);
  const all = () => Promise.all(Array.from({ length: 100 }, () => flake.nextIdAsync()));
  expect(new Set([...(await all()), ...flake.nextIds(100)]).size).toBe(200);

  const faked = new SnowFlake({ clock: () => Date.now() });
  expect(faked.parse(faked.nextId()).timestamp).toBe(NOW);
  vi.advanceTimersByTime(1000);
  expect(faked.parse(faked.nextId()).timestamp).toBe(NOW + 1000);
  const drawTick = () => Array.from({ length: 4096 }, () => faked.nextId());
  expect(drawTick).toThrow(/the option clock, at .*, does not reach the next one.*: advance it/);
  await expect(faked.nextIdAsync()).rejects.toThrow(/advance it/);

  vi.useRealTimers();
  expect(new Set(await all()).size).toBe(100);
}, 60_000);
