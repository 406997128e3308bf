'use strict';
// The wait that docs/migration.md asks for between an old generator and the first snowdrift ID.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const FlakeId = require('flake-idgen');
const nodejs = require('nodejs-snowflake');

const { SnowFlake, layouts } = require('..');
const { standing } = require('./support.js');

const epoch = 1577836800000;
const layout = {
  timestampBits: 41,
  datacenterBits: 0,
  workerBits: 6,
  clockBackBits: 0,
  sequenceBits: 6,
  tickMs: 1,
  epoch,
};
const stopped = Date.UTC(2026, 0, 1);
const AHEAD = 2000;

/** The IDs of a generator as yitter's that was stopped 2,000 ticks ahead of its clock. */
function issuedAhead() {
  const issued = new Set();
  for (let ahead = 0; ahead <= AHEAD; ahead++) {
    const tick = BigInt(stopped - epoch + ahead);
    for (let sequence = 5n; sequence < 64n; sequence++) {
      issued.add((tick << 12n) | (3n << 6n) | sequence);
    }
  }
  return { issued, highest: [...issued].at(-1) };
}

/** How many of the next 20,000 IDs are duplicates, if snowdrift draws the first one at `now`. */
function duplicatesFrom(now, { issued }) {
  const clock = standing(now);
  const flake = new SnowFlake({ layout, workerId: 3, clock });
  let duplicates = 0;
  for (let drawn = 0; drawn < 20_000; drawn++) {
    if (drawn > 0 && drawn % 64 === 0) clock.now++;
    if (issued.has(flake.nextId())) duplicates++;
  }
  return duplicates;
}

test('without a wait, snowdrift repeats what an old generator issued ahead of the clock', () => {
  assert.ok(duplicatesFrom(stopped, issuedAhead()) > 18_000);
});

test('the wait ends with the tick of the highest old ID, neither before nor after', () => {
  const old = issuedAhead();
  const flake = new SnowFlake({ layout, workerId: 3, clock: standing(stopped) });
  assert.equal(flake.parse(old.highest).timestamp, stopped + AHEAD);
  const isOver = (now) => flake.floorId(now) > old.highest;
  assert.deepEqual(
    [AHEAD - 1, AHEAD, AHEAD + 1].map((ms) => isOver(stopped + ms)),
    [false, false, true],
  );
  assert.equal(duplicatesFrom(stopped + AHEAD, old), 59);
  assert.equal(duplicatesFrom(stopped + AHEAD + 1, old), 0);
});

test('the wait covers the whole tick of a layout that counts seconds', () => {
  const uid = { ...layouts.uid, epoch: Date.UTC(2026, 0, 1) };
  const flake = new SnowFlake({ layout: uid, workerId: 21 });
  const highest = flake.compose({ timestamp: uid.epoch + 8000, sequence: 8191 });
  assert.equal(flake.floorId(uid.epoch + 8999) > highest, false);
  assert.equal(flake.floorId(uid.epoch + 9000) > highest, true);
});

test('another worker ID needs no wait', () => {
  const { issued } = issuedAhead();
  const clock = standing(stopped);
  const flake = new SnowFlake({ layout, workerId: 4, clock });
  for (let drawn = 0; drawn < 20_000; drawn++) {
    if (drawn > 0 && drawn % 64 === 0) clock.now++;
    assert.equal(issued.has(flake.nextId()), false);
  }
});

test('a later epoch repeats old IDs, unless the worker ID is another', () => {
  const old = new SnowFlake({ layout: 'uid', workerId: 21 });
  const month = 30 * 86_400_000;
  const issued = old.compose({ timestamp: layouts.uid.epoch + month });
  const later = { ...layouts.uid, epoch: Date.UTC(2024, 10, 1) };
  const drawn = (workerId) => {
    const clock = standing(later.epoch + month);
    return new SnowFlake({ layout: later, workerId, clock }).nextId();
  };
  assert.equal(drawn(21), issued);
  assert.notEqual(drawn(22), issued);
});

test('flake-idgen and nodejs-snowflake do not run ahead of the clock', () => {
  const flake = new FlakeId({ epoch, id: 105 });
  const { Snowflake } = nodejs;
  const snowflake = new Snowflake({ custom_epoch: epoch, instance_id: 2345 });
  const generators = {
    'flake-idgen': () => {
      for (;;) {
        try {
          return flake.next().readBigUInt64BE();
        } catch (error) {
          assert.match(error.message, /^(Sequence exceeded|Clock moved)/);
        }
      }
    },
    'nodejs-snowflake': () => snowflake.getUniqueID(),
  };
  for (const [name, next] of Object.entries(generators)) {
    for (let drawn = 0; drawn < 50_000; drawn++) {
      const time = Number(next() >> 22n) + epoch;
      assert.ok(time <= Date.now(), `${name}, ID ${drawn}: ${time - Date.now()} ms ahead`);
    }
  }
});
