'use strict';
// docs/migration.md: the wait that it asks for between an old generator and the first snowdrift ID, and its table of
// generators.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { GenidOptimized } = require('@cdlab996/genid');
const { Snowflake: Sapphire } = require('@sapphire/snowflake');
const CherryId = require('cherry-id');
const FlakeId = require('flake-idgen');
const nodejs = require('nodejs-snowflake');
const { SnowflakeIdv1 } = require('simple-flakeid');

const { SnowFlake, layouts } = require('../..');
const { ceilingId, floorId, parse } = require('../../js/id.js');
const { standing, yitter: layout } = require('../support/support.js');

const { epoch } = layout;
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

/** The layout that the page gives a generator: its bits, with an epoch. */
function layoutOf(name, epoch) {
  const page = readFileSync(join(__dirname, '../../docs/migration.md'), 'utf8');
  const [, bits] = new RegExp(`^\\| [^|]*${name} [\\d.]+[^|]*\\| ([\\d/]+),`, 'm').exec(page);
  const [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits] = bits
    .split('/')
    .map(Number);
  return {
    ...{ timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits },
    ...{ tickMs: 1, epoch },
  };
}

/** One ID of each npm package of the page's table that is installed, and the node that the page says is in it. */
const IDS = {
  'flake-idgen': [
    () => new FlakeId({ epoch, datacenter: 35, worker: 41 }).next().readBigUInt64BE(),
    [3, 9],
  ],
  'nodejs-snowflake': [
    () => new nodejs.Snowflake({ custom_epoch: epoch, instance_id: 2345 }).getUniqueID(),
    [0, 2345],
  ],
  '@sapphire/snowflake': [() => new Sapphire(epoch).generate(), [0, 1]],
  '@cdlab996/genid': [() => new GenidOptimized({ workerId: 3 }).nextBigId(), [0, 3]],
  'simple-flakeid': [() => new SnowflakeIdv1({ workerId: 3 }).NextBigId(), [0, 3]],
  'cherry-id': [() => BigInt(new CherryId({ WorkerId: 3 }).NextId()), [0, 3]],
};

for (const [name, [draw, node]] of Object.entries(IDS)) {
  test(`the layout that the page gives ${name} reads its IDs`, () => {
    const from = Date.now();
    const { datacenterId, workerId, timestamp } = parse(draw(), layoutOf(name, epoch));
    assert.deepEqual([datacenterId, workerId], node);
    assert.ok(timestamp >= from && timestamp <= Date.now() + 1, String(timestamp - from));
  });
}

test('an epoch of a day earlier is above old IDs for a day, and no longer', () => {
  const old = { ...layouts.twitter, epoch };
  const next = { ...old, epoch: epoch - 86_400_000 };
  const first = floorId(stopped, next);
  assert.ok(first > ceilingId(stopped + 86_400_000 - 1, old));
  assert.equal(first, floorId(stopped + 86_400_000, old));
});

test('the default layout is above all IDs that yitter can issue', () => {
  const clock = standing(Date.UTC(2026, 0, 1));
  const flake = new SnowFlake({ datacenterId: 0, workerId: 0, clock });
  const old = new SnowFlake({ layout, workerId: 63 });
  const highest = old.compose({ timestamp: epoch + 2 ** 41 - 1, sequence: 63 });
  assert.ok(flake.nextId() > highest);
  // The page tells both by this bound.
  const inTenYears = Date.UTC(2036, 0, 1);
  assert.ok(ceilingId(inTenYears, layout) < 2n ** 53n);
  assert.ok(flake.nextId() > 2n ** 53n);
});
