'use strict';
// A test of a user's, which app/mocks.test.js runs: the whole package as a mock.

jest.mock('snowdrift');

const { CachedSnowFlake, SnowFlake } = require('snowdrift');

const METHODS = [
  ...['nextId', 'nextIdString', 'nextIdBase32', 'nextIdNumber', 'nextIds', 'nextIdStrings'],
  ...['nextIdAsync', 'parse', 'floorId', 'compose', 'stats', 'close'],
];

test.each([[SnowFlake], [CachedSnowFlake]])('it has all methods', (Class) => {
  const flake = new Class();
  for (const name of METHODS)
    expect([name, jest.isMockFunction(flake[name])]).toEqual([name, true]);
  flake.nextIdString.mockReturnValue('7');
  expect(flake.nextIdString()).toBe('7');
});

test('static methods', () => {
  for (const name of [...METHODS.slice(0, 9), 'lease', 'ready', 'use', 'configure']) {
    expect([name, jest.isMockFunction(SnowFlake[name])]).toEqual([name, true]);
  }
  SnowFlake.nextIdString.mockReturnValue('7');
  expect(SnowFlake.nextIdString()).toBe('7');
});
