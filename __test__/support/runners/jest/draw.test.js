'use strict';
// One of a project's test files, which jest runs in parallel: app/runners.test.js makes copies of it.

const { basename } = require('node:path');
const snowdrift = require('snowdrift');

const { draw } = require('./draw.js');

/** Two in each of four workers. */
const DRAWERS = 8;

test('two copies draw, beside those of other files', async () => {
  jest.resetModules();
  const again = require('snowdrift');
  expect(again.SnowFlake).not.toBe(snowdrift.SnowFlake);
  const name = `${process.pid}-${basename(__filename)}`;
  const ends = [draw(snowdrift, name), draw(again, `${name}-again`)];
  await Promise.all(ends.map((end) => end(DRAWERS)));
}, 300_000);
