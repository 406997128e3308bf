// A test of a user's, which app/mocks.test.js runs: spies.

import { CachedSnowFlake, SnowFlake } from 'snowdrift';
import { afterEach, expect, test, vi } from 'vitest';

const DIGITS = /^\d{18}$/;

afterEach(() => vi.restoreAllMocks());

test.each([[SnowFlake], [CachedSnowFlake]])('the methods of an instance', (Class) => {
  const flake = new Class();
  const spy = vi.spyOn(flake, 'nextIdString').mockReturnValue('7');
  expect(flake.nextIdString()).toBe('7');
  spy.mockRestore();
  expect(flake.nextIdString()).toMatch(DIGITS);
  vi.spyOn(flake, 'nextId');
  expect(typeof flake.nextId()).toBe('bigint');
  expect(flake.nextId).toHaveBeenCalledTimes(1);
  flake.close();
});

test('the static methods', () => {
  vi.spyOn(SnowFlake, 'nextIdString').mockReturnValue('7');
  expect(SnowFlake.nextIdString()).toBe('7');
  vi.restoreAllMocks();
  expect(SnowFlake.nextIdString()).toMatch(DIGITS);
  vi.spyOn(SnowFlake.default, 'nextIdString').mockReturnValue('7');
  expect(SnowFlake.default.nextIdString()).toBe('7');
  expect(SnowFlake.nextIdString()).toMatch(DIGITS);
});

test('the prototype', () => {
  vi.spyOn(SnowFlake.prototype, 'nextIdString').mockReturnValue('7');
  const flake = new SnowFlake();
  expect(flake.nextIdString()).toBe('7');
  vi.restoreAllMocks();
  expect(flake.nextIdString()).toMatch(DIGITS);
});
