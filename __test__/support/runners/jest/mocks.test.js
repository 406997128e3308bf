'use strict';
// A test of a user's, which app/mocks.test.js runs: spies.

const { CachedSnowFlake, SnowFlake } = require('snowdrift');

const DIGITS = /^\d{18}$/;

afterEach(() => jest.restoreAllMocks());

test.each([[SnowFlake], [CachedSnowFlake]])('the methods of an instance', (Class) => {
  const flake = new Class();
  const spy = jest.spyOn(flake, 'nextIdString').mockReturnValue('7');
  expect(flake.nextIdString()).toBe('7');
  spy.mockRestore();
  expect(flake.nextIdString()).toMatch(DIGITS);
  jest.spyOn(flake, 'nextId');
  expect(typeof flake.nextId()).toBe('bigint');
  expect(flake.nextId).toHaveBeenCalledTimes(1);
  flake.close();
});

test('the static methods', () => {
  jest.spyOn(SnowFlake, 'nextIdString').mockReturnValue('7');
  expect(SnowFlake.nextIdString()).toBe('7');
  jest.restoreAllMocks();
  expect(SnowFlake.nextIdString()).toMatch(DIGITS);
  jest.spyOn(SnowFlake.default, 'nextIdString').mockReturnValue('7');
  expect(SnowFlake.default.nextIdString()).toBe('7');
  expect(SnowFlake.nextIdString()).toMatch(DIGITS);
});

test('the prototype', () => {
  jest.spyOn(SnowFlake.prototype, 'nextIdString').mockReturnValue('7');
  const flake = new SnowFlake();
  expect(flake.nextIdString()).toBe('7');
  jest.restoreAllMocks();
  expect(flake.nextIdString()).toMatch(DIGITS);
});
