'use strict';
// IDs drawn as base32 and as numbers.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { isQuick } = require('../support/amount.js');
const {
  CachedSnowFlake,
  SnowFlake,
  countDuplicates,
  layouts,
  refuses,
  slow,
  standing,
  wide,
} = require('../support/support.js');
const { fromBase32, toBase32 } = require('snowdrift/id');

const MANY = isQuick ? 20_000 : 100_000;
const CONFIG = 'ERR_SNOWFLAKE_CONFIG';

const safe = (options) => new SnowFlake({ layout: 'safe', ...options });

test('base32 is that of the IDs, across every carry', () => {
  const flake = new SnowFlake({ layout: wide, datacenterId: 0, workerId: 0 });
  let last = flake.nextId();
  for (let i = 0; i < MANY; i++) {
    const text = flake.nextIdBase32();
    const id = fromBase32(text);
    assert.ok(toBase32(id) === text && id > last, `${text} after ${last}`);
    last = i % 3 ? id : BigInt(flake.nextIdString());
  }
  // Within one tick, where the carries go into the 11th character and beyond.
  const counting = new SnowFlake({ layout: slow, datacenterId: 0, workerId: 1 });
  const first = counting.nextId();
  for (let i = 1n; i < 40_000n; i++) assert.equal(counting.nextIdBase32(), toBase32(first + i));
});

test('numbers are refused of every layout above 53 bits, and drawn of every other', () => {
  for (const layout of ['node', 'twitter', 'discord', { ...layouts.safe, sequenceBits: 6 }]) {
    const flake = new SnowFlake({ layout, datacenterId: 0, workerId: 1 });
    const { message } = refuses(() => flake.nextIdNumber(), CONFIG);
    assert.match(message, /at most 53 bits.*layout: 'safe'/);
    assert.equal(flake.stats().issued, 0);
    refuses(() => flake.parse(5), 'ERR_SNOWFLAKE_INVALID_ID');
    refuses(() => SnowFlake.parse(5, layout), 'ERR_SNOWFLAKE_INVALID_ID');
    flake.close();
  }
  const narrow = { ...layouts.safe, workerBits: 1, sequenceBits: 1 };
  for (const layout of ['safe', narrow]) {
    const flake = new SnowFlake({ layout, workerId: 1 });
    const number = flake.nextIdNumber();
    assert.deepEqual(flake.parse(number), flake.parse(BigInt(number)));
    assert.deepEqual(SnowFlake.parse(number, layout), flake.parse(String(number)));
    assert.equal(JSON.parse(flake.toUidString(number)).UID, String(number));
    for (const wrong of [number + 0.5, -1, Number.MAX_SAFE_INTEGER + 1, Number.NaN, Infinity]) {
      refuses(() => flake.parse(wrong), 'ERR_SNOWFLAKE_INVALID_ID');
    }
    flake.close();
  }
});

test('the last number is Number.MAX_SAFE_INTEGER, and there is none after it', () => {
  const { epoch } = layouts.safe;
  const clock = standing(epoch + 2 ** 41 - 1);
  const flake = safe({ workerId: 63, clock, maxWait: 0 });
  assert.deepEqual(
    Array.from({ length: 32 }, () => Number.MAX_SAFE_INTEGER - flake.nextIdNumber()),
    // The clock-back counter is 0: its bit is not set.
    Array.from({ length: 32 }, (_, n) => 32 + 31 - n),
  );
  refuses(() => flake.nextIdNumber(), 'ERR_SNOWFLAKE_EXHAUSTED');
  clock.now -= 1;
  const [first, ...rest] = Array.from({ length: 32 }, () => flake.nextIdNumber());
  assert.equal(flake.parse(first).clockBack, 1);
  assert.equal(countDuplicates([first, ...rest]), 0);
  clock.now += 1;
  const again = Array.from({ length: 32 }, () => flake.nextIdNumber());
  assert.equal(again.at(-1), Number.MAX_SAFE_INTEGER);
  refuses(() => flake.nextIdNumber(), 'ERR_SNOWFLAKE_EXHAUSTED');
  clock.now += 1;
  refuses(() => flake.nextIdNumber(), 'ERR_SNOWFLAKE_TIME_ENDED');
});

test("an ID of the application's own is handed out as base32, and as a number only if it fits", () => {
  let own = 5n;
  const cached = new CachedSnowFlake({
    // Its time is over.
    layout: { ...layouts.safe, timestampBits: 30, epoch: Date.UTC(2026, 0) },
    workerId: 6,
    onRejectedTake: () => own,
  });
  assert.equal(cached.nextIdBase32(), toBase32(5n));
  assert.equal(cached.nextIdNumber(), 5);
  own = BigInt(Number.MAX_SAFE_INTEGER);
  assert.equal(cached.nextIdNumber(), Number.MAX_SAFE_INTEGER);
  own += 1n;
  const { message } = refuses(() => cached.nextIdNumber(), 'ERR_SNOWFLAKE_INVALID_ID');
  assert.match(message, /onRejectedTake returned 9007199254740992 to nextIdNumber/);
  assert.equal(fromBase32(cached.nextIdBase32()), own);
  own = 7;
  assert.equal(cached.nextId(), 7n);
  assert.equal(cached.nextIdNumber(), 7);
  cached.close();
});
