'use strict';
// The part of each application that draws: some IDs each millisecond, by each way to draw, and a batch now
// and then. It writes all IDs to files in ids/.

const { mkdirSync, openSync, readdirSync, statSync, writeSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const DIRECTORY = join(__dirname, 'ids');
const BATCH = 2000;
const TURNS_A_BATCH = 100;
/** A drawer has drawn for a while when its file has so many bytes: 1000 IDs. */
const WHILE = 8000;

/**
 * @param name of the file, one for each drawer
 * @returns a function that waits until this drawer and so many in all have drawn for a while, then ends it
 */
function draw({ CachedSnowFlake, SnowFlake }, name = process.pid) {
  mkdirSync(DIRECTORY, { recursive: true });
  const path = join(DIRECTORY, String(name));
  const file = openSync(path, 'a');
  const { STATE: state } = process.env;
  if (state) SnowFlake.configure({ state });
  const cached = new CachedSnowFlake(state && { state });
  let turns = 0;
  const timer = setInterval(() => {
    const ids = [SnowFlake.nextId(), BigInt(SnowFlake.nextIdString()), cached.nextId()];
    ids.push(...SnowFlake.nextIds(++turns % TURNS_A_BATCH === 0 ? BATCH : 8));
    writeSync(file, BigUint64Array.from(ids));
  }, 1);
  return async (count) => {
    while (!hasDrawn(path) || drawers() < count) await sleep(5);
    clearInterval(timer);
  };
}

function hasDrawn(path) {
  return statSync(path).size >= WHILE;
}

function drawers() {
  return readdirSync(DIRECTORY).filter((name) => hasDrawn(join(DIRECTORY, name))).length;
}

module.exports = { draw };
