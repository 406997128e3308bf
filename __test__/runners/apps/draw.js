'use strict';
// The part of each application that draws: some IDs each millisecond, by every call, now and then a batch.
// What it draws it writes down in ids/.

const { mkdirSync, openSync, writeSync } = require('node:fs');
const { join } = require('node:path');

const DIRECTORY = join(__dirname, 'ids');
const BATCH = 2000;
/** ms. */
const BATCHES_EACH = 100;

/**
 * @param name of the file, one for each who draws
 * @returns an end of it
 */
function draw({ CachedSnowFlake, SnowFlake }, name = process.pid) {
  mkdirSync(DIRECTORY, { recursive: true });
  const file = openSync(join(DIRECTORY, String(name)), 'a');
  const cached = new CachedSnowFlake();
  let turns = 0;
  const timer = setInterval(() => {
    const ids = [SnowFlake.nextId(), BigInt(SnowFlake.nextIdString()), cached.nextId()];
    ids.push(...SnowFlake.nextIds(++turns % BATCHES_EACH === 0 ? BATCH : 8));
    writeSync(file, BigUint64Array.from(ids));
  }, 1);
  return () => clearInterval(timer);
}

module.exports = { DIRECTORY, draw };
