'use strict';
// One of a project's test files, which jest runs in parallel. The test starts as many copies of it.

const { readdirSync } = require('node:fs');
const { basename } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const snowdrift = require('snowdrift');

const { DIRECTORY, draw } = require('./draw.js');

const DRAWERS = 8;

test('two copies draw, beside those of other files', async () => {
  jest.resetModules();
  const again = require('snowdrift');
  expect(again.SnowFlake).not.toBe(snowdrift.SnowFlake);
  const name = `${process.pid}-${basename(__filename)}`;
  const ends = [draw(snowdrift, name), draw(again, `${name}-again`)];
  await sleep(100);
  while (readdirSync(DIRECTORY).length < DRAWERS) await sleep(5);
  for (const end of ends) end();
}, 30_000);
