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
const { gate } = require('../support/amount.js');
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

test('flake-idgen, nodejs-snowflake and Sapphire do not run ahead of the clock', {
  skip: gate,
}, () => {
  const flake = new FlakeId({ epoch, id: 105 });
  const { Snowflake } = nodejs;
  const snowflake = new Snowflake({ custom_epoch: epoch, instance_id: 2345 });
  const sapphire = new Sapphire(epoch);
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
    '@sapphire/snowflake': () => sapphire.generate(),
  };
  for (const [name, next] of Object.entries(generators)) {
    for (let drawn = 0; drawn < 50_000; drawn++) {
      const time = Number(next() >> 22n) + epoch;
      assert.ok(time <= Date.now(), `${name}, ID ${drawn}: ${time - Date.now()} ms ahead`);
    }
  }
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

test('flake-idgen takes the bits of its id as both numbers', () => {
  const id = new FlakeId({ epoch, id: 1024 + 105 }).next().readBigUInt64BE();
  const { datacenterId, workerId } = parse(id, layoutOf('flake-idgen', epoch));
  assert.deepEqual([datacenterId, workerId], [105 >> 5, 105 & 31]);
});

test('Sapphire has the two numbers of a node modulo 32, and reads IDs of snowdrift', () => {
  const twitter = { ...layouts.twitter, epoch };
  const sapphire = new Sapphire(epoch);
  sapphire.workerId = 33;
  sapphire.processId = 34;
  const { datacenterId, workerId } = parse(sapphire.generate(), twitter);
  assert.deepEqual([datacenterId, workerId], [1, 2]);
  const id = new SnowFlake({ layout: twitter, datacenterId: 1, workerId: 3 }).nextId();
  const read = sapphire.deconstruct(id);
  const { timestamp, sequence } = parse(id, twitter);
  assert.deepEqual(
    [read.workerId, read.processId, read.increment, read.timestamp],
    [1n, 3n, BigInt(sequence), BigInt(timestamp)],
  );
});

test('an epoch of a day earlier is above old IDs for a day, and no longer', () => {
  const old = { ...layouts.twitter, epoch };
  const next = { ...old, epoch: epoch - 86_400_000 };
  const first = floorId(stopped, next);
  assert.ok(first > ceilingId(stopped + 86_400_000 - 1, old));
  assert.equal(first, floorId(stopped + 86_400_000, old));
});

/** The npm packages with yitter's algorithm: each returns a function that draws an ID. */
const YITTERS = {
  '@cdlab996/genid': (options) => {
    const generator = new GenidOptimized(options);
    return () => generator.nextBigId();
  },
  'simple-flakeid': (options) => {
    const generator = new SnowflakeIdv1({ ...options });
    return () => generator.NextBigId();
  },
  'cherry-id': (options) => {
    const capitals = Object.entries(options).map(([name, value]) => [
      name[0].toUpperCase() + name.slice(1),
      value,
    ]);
    const generator = new CherryId(Object.fromEntries(capitals));
    return () => BigInt(generator.NextId());
  },
};

/** The first IDs of a generator whose clock stands still. */
function drawnAt(now, name, options, count) {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args) {
      super(...(args.length === 0 ? [now] : args));
    }
    static now() {
      return now;
    }
  };
  try {
    const next = YITTERS[name](options);
    return Array.from({ length: count }, next);
  } finally {
    globalThis.Date = RealDate;
  }
}

/** The values of a field, lowest and highest. */
function rangeOf(ids, field, bits) {
  const flake = new SnowFlake({ layout: { ...layout, ...bits }, workerId: 0 });
  const values = ids.map((id) => flake.parse(id)[field]);
  return [Math.min(...values), Math.max(...values)];
}

for (const name of Object.keys(YITTERS)) {
  const isGenid = name === '@cdlab996/genid';

  test(`${name} has the default layout of yitter, and runs 2,000 ticks ahead of the clock`, {
    skip: gate,
  }, () => {
    const ids = drawnAt(stopped, name, { workerId: 3 }, AHEAD * 59 + 1);
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual(rangeOf(ids, 'sequence'), [5, 63]);
    assert.deepEqual(rangeOf(ids, 'workerId'), [3, 3]);
    assert.deepEqual(rangeOf(ids, 'timestamp'), [stopped, stopped + AHEAD]);
  });

  test(`${name} with other bits of sequence`, { skip: gate }, () => {
    const few = drawnAt(stopped, name, { workerId: 3, seqBitLength: 4 }, 118);
    assert.deepEqual(rangeOf(few, 'workerId', { sequenceBits: 4 }), isGenid ? [3, 3] : [3, 6]);
    const many = drawnAt(stopped, name, { workerId: 3, seqBitLength: 8 }, 1000);
    assert.deepEqual(rangeOf(many, 'sequence', { sequenceBits: 8 }), [5, isGenid ? 255 : 63]);
  });

  test(`${name} with a worker ID that is too large`, { skip: gate }, () => {
    const draw = () => drawnAt(stopped, name, { workerId: 64 }, 1);
    if (isGenid) return assert.throws(draw, /workerId/);
    assert.deepEqual(rangeOf(draw(), 'workerId'), [0, 0]);
    assert.deepEqual(rangeOf(draw(), 'timestamp'), [stopped + 1, stopped + 1]);
  });
}

test('cherry-id rounds IDs above 2^53, the others do not', { skip: gate }, () => {
  const options = { workerId: 3, workerIdBitLength: 10, seqBitLength: 12 };
  const bits = { workerBits: 10, sequenceBits: 12 };
  for (const name of Object.keys(YITTERS)) {
    const ids = drawnAt(stopped, name, options, 59);
    const isExact = rangeOf(ids, 'sequence', bits)[0] === 5 && new Set(ids).size === ids.length;
    assert.equal(isExact, name !== 'cherry-id', name);
  }
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
