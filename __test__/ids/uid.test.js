'use strict';
// UidGenerator's DefaultUidGenerator: a layout with ticks of a second, on a JavaScript thread; and what
// its parseUID prints.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const {
  CachedSnowFlake,
  SnowFlake,
  layouts,
  refuses,
  rejects,
  standing,
} = require('../support/support.js');

const PER_SECOND = 8192;
const EPOCH = Date.UTC(2026, 0, 1);
const uid = { ...layouts.uid, epoch: EPOCH };

test('the last second of the layout is the last, in every way to draw', async () => {
  const lastSecond = EPOCH + (2 ** 28 - 1) * 1000;
  const clock = standing(lastSecond);
  const flake = new SnowFlake({ layout: uid, workerId: 1, clock });
  const ids = Array.from({ length: PER_SECOND }, flake.nextId);
  assert.ok(ids.every((id) => id > 0n && id < 2n ** 63n));
  assert.equal(flake.parse(ids.at(-1)).timestamp, lastSecond);
  const { retryAfterMs, message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_EXHAUSTED');
  assert.equal(retryAfterMs, undefined, 'nothing comes after it');
  assert.match(message, /the layout's last tick. Choose more timestampBits/);
  clock.now += 1000;
  for (const draw of [flake.nextId, flake.nextIdString, () => flake.nextIds(1)]) {
    refuses(draw, 'ERR_SNOWFLAKE_TIME_ENDED');
  }
  await rejects(flake.nextIdAsync(), 'ERR_SNOWFLAKE_TIME_ENDED');
});

test('UidGenerator’s own epoch, which overflowed on 2024-11-20, is refused, not wrapped', () => {
  for (const Class of [SnowFlake, CachedSnowFlake]) {
    const flake = new Class({ layout: 'uid', workerId: 1 });
    const { message } = refuses(flake.nextId, 'ERR_SNOWFLAKE_TIME_ENDED');
    assert.match(message, /28 timestamp bits have run out. Choose more timestampBits/);
    flake.close();
  }
});

test('one warning a year before a layout’s timestamp overflows', async () => {
  const days = (n) => n * 86_400_000;
  const endingIn = (ms) => ({ ...uid, epoch: Date.now() + ms - 2 ** 28 * 1000 });
  const warnings = [];
  const listen = (warning) => warnings.push(warning);
  process.on('warning', listen);
  for (const [workerId, layout] of [endingIn(days(400)), uid].entries()) {
    new SnowFlake({ layout, workerId }).close();
  }
  const layout = endingIn(days(30));
  for (const workerId of [1, 2]) new SnowFlake({ layout, workerId }).close();
  await new Promise(setImmediate);
  process.off('warning', listen);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['SNOWFLAKE_TIME_ENDING'],
  );
  assert.match(warnings[0].message, /overflows at 20\d\d-.*, in 30 days/);
});

test('toUidString prints what parseUID prints', () => {
  const flake = new SnowFlake({ layout: uid, workerId: 5 });
  const old = new SnowFlake({ layout: 'uid', workerId: 5 });
  const id = '3200169789968523265';
  for (const [timeZone, timestamp] of [
    ['Asia/Shanghai', '2019-05-02 23:26:39'],
    ['UTC', '2019-05-02 15:26:39'],
    [undefined, '2019-05-02 15:26:39'],
    ['America/St_Johns', '2019-05-02 12:56:39'],
  ]) {
    assert.equal(
      old.toUidString(id, { timeZone }),
      `{"UID":"${id}","timestamp":"${timestamp}","workerId":"21","sequence":"1"}`,
    );
  }
  assert.equal(old.toUidString(BigInt(id)), old.toUidString(id, {}));
  const midnight = flake.compose({ timestamp: Date.UTC(2026, 1, 1), sequence: 3 });
  assert.match(flake.toUidString(midnight), /"timestamp":"2026-02-01 00:00:00","workerId":"5"/);
  // Where a layout has datacenters, those bits are part of UidGenerator's worker ID.
  const node = new SnowFlake({ datacenterId: 3, workerId: 5 });
  assert.match(node.toUidString(node.nextId()), /"workerId":"101"/);

  const { message } = refuses(
    () => old.toUidString(id, { timeZone: 'Mars/Olympus' }),
    'ERR_SNOWFLAKE_ARGUMENT',
  );
  assert.match(message, /IANA name of a time zone, such as 'Asia\/Shanghai'; it is 'Mars/);
  for (const bad of [{ timeZone: 1 }, { zone: 'UTC' }, 'UTC', null]) {
    refuses(() => old.toUidString(id, bad), 'ERR_SNOWFLAKE_ARGUMENT');
  }
  refuses(() => old.toUidString(Number(id)), 'ERR_SNOWFLAKE_INVALID_ID');
});
