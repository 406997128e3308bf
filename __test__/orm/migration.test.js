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
const { standing, yitter } = require('../support/support.js');

const { epoch } = yitter;
const stopped = Date.UTC(2026, 0, 1);
const uid = { ...layouts.uid, epoch: stopped };

for (const [what, layout, workerId, ahead, sequence] of [
  ['a millisecond', yitter, 3, 2000, 63],
  ['a second', uid, 21, 8999, 8191],
]) {
  test(`the wait covers the whole tick of the highest old ID, ${what}, and ends with it`, () => {
    const flake = new SnowFlake({ layout, workerId, clock: standing(stopped + ahead + 1) });
    const highest = flake.compose({ timestamp: stopped + ahead, sequence });
    const isOver = (now) => flake.floorId(now) > highest;
    assert.deepEqual([isOver(stopped + ahead), isOver(stopped + ahead + 1)], [false, true]);
    assert.ok(flake.nextId() > highest);
  });
}

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
  const old = new SnowFlake({ layout: yitter, workerId: 63 });
  const highest = old.compose({ timestamp: epoch + 2 ** 41 - 1, sequence: 63 });
  assert.ok(flake.nextId() > highest);
  // The page tells both by this bound.
  const inTenYears = Date.UTC(2036, 0, 1);
  assert.ok(ceilingId(inTenYears, yitter) < 2n ** 53n);
  assert.ok(flake.nextId() > 2n ** 53n);
});
