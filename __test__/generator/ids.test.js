'use strict';
// IDs as applications draw, parse and compose them.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { fromBase32 } = require('../../js/id.js');
const { SnowFlake, layouts, refuses, slow, standing, wide } = require('../support/support.js');

test('compose() takes missing fields from the instance, the epoch and zero', () => {
  const flake = new SnowFlake({ datacenterId: 5, workerId: 17 });
  const { id, date, ...fields } = flake.parse(flake.compose({}));
  const { epoch } = layouts.node;
  const rest = { clockBack: 0, sequence: 0 };
  assert.deepEqual(fields, { timestamp: epoch, datacenterId: 5, workerId: 17, ...rest });
});

test('strings are the decimal digits of the IDs, across every carry', () => {
  const flake = new SnowFlake({ layout: wide, datacenterId: 0, workerId: 0 });
  let last = 0n;
  for (let i = 0; i < 300_000; i++) {
    const text = flake.nextIdString();
    const id = BigInt(text);
    assert.ok(String(id) === text && id > last, `${text} after ${last}`);
    last = id;
  }
});

test('strings of small IDs have no leading zeros', () => {
  const now = Date.now();
  const layout = { ...wide, timestampBits: 20, epoch: now, sequenceBits: 16, workerBits: 0 };
  const flake = new SnowFlake({ layout, datacenterId: 0, clock: standing(now) });
  for (let id = 0; id < 25_000; id++) assert.equal(flake.nextIdString(), String(id));
  // The same in blocks, by the system's clock: the epoch is the start of this very tick, an hour ago. A page begins it at
  // its second number.
  const inBlocks = new SnowFlake({
    layout: { ...slow, epoch: now - 3_600_000 },
    datacenterId: 0,
    workerId: 0,
  });
  for (let id = 1; id < 25_000; id++) assert.equal(inBlocks.nextIdString(), String(id));
});

test('IDs of one instance rise, however they are drawn', () => {
  const flake = new SnowFlake({ layout: 'safe', workerId: 1 });
  const ids = [];
  for (let round = 0; round < 300; round++) {
    ids.push(flake.nextId(), fromBase32(flake.nextIdBase32()), BigInt(flake.nextIdNumber()));
    ids.push(BigInt(flake.nextIdString()), ...flake.nextIds(2));
    ids.push(...flake.nextIdStrings(2).map(BigInt));
  }
  assert.ok(ids.every((id, i) => i === 0 || id > ids[i - 1]));
});

test('stats() reports what happened', () => {
  const flake = new SnowFlake({ layout: slow, datacenterId: 1, workerId: 6 });
  for (let i = 0; i < 300; i++) flake.nextId();
  const { highMarks, endOfTime, scope, page, ...stats } = flake.stats();
  assert.equal(scope, 'host');
  assert.ok(page.startsWith(process.env.SNOWDRIFT_SHARED), page);
  assert.deepEqual(stats, {
    issued: 300,
    waits: 0,
    waitedMs: 0,
    clockRollbacks: 0,
    clockBack: 0,
    clock: 'system',
  });
  assert.deepEqual(highMarks, [flake.parse(flake.nextId()).timestamp, null, null, null]);
  assert.ok(endOfTime > new Date());
});

test('a closed instance refuses each call with the same error', async () => {
  const flake = new SnowFlake({ datacenterId: 1, workerId: 7 });
  flake.nextId();
  flake.close();
  flake.close();
  refuses(() => flake.nextId(), 'ERR_SNOWFLAKE_CLOSED');
  refuses(() => flake.nextIdString(), 'ERR_SNOWFLAKE_CLOSED');
  refuses(() => flake.nextIds(1), 'ERR_SNOWFLAKE_CLOSED');
  await assert.rejects(flake.nextIdAsync(), { code: 'ERR_SNOWFLAKE_CLOSED' });
  assert.equal(flake.stats().issued, 1);
  const other = new SnowFlake({ datacenterId: 1, workerId: 7 });
  other[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
  refuses(() => other.nextId(), 'ERR_SNOWFLAKE_CLOSED');
});

test('ESM finds the same class by name', async () => {
  const esm = await import('../../js/index.js');
  assert.equal(esm.SnowFlake, SnowFlake);
  assert.equal(esm.layouts, layouts);
  assert.equal(new esm.SnowFlakeError('X', 'y').name, 'SnowFlakeError');
});
