'use strict';
// IDs as applications draw, parse and compose them.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { isStorms } = require('../support/amount.js');
const {
  SnowFlake,
  countDuplicates,
  dateLead,
  layouts,
  refuses,
  slow,
  standing,
  wide,
} = require('../support/support.js');

test('an ID decodes to its node and its time', () => {
  const flake = new SnowFlake({ datacenterId: 5, workerId: 17 });
  const before = Date.now();
  const { timestamp, datacenterId, workerId } = flake.parse(flake.nextId());
  assert.ok(before - dateLead <= timestamp && timestamp <= Date.now() + dateLead);
  assert.deepEqual([datacenterId, workerId], [5, 17]);
});

test('compose() takes missing fields from the instance, the epoch and zero', () => {
  const flake = new SnowFlake({ datacenterId: 5, workerId: 17 });
  const { id, date, ...fields } = flake.parse(flake.compose({}));
  const { epoch } = layouts.node;
  const rest = { clockBack: 0, sequence: 0 };
  assert.deepEqual(fields, { timestamp: epoch, datacenterId: 5, workerId: 17, ...rest });
});

test('floorId is the smallest ID of a moment', () => {
  for (const layout of ['node', 'twitter', 'uid']) {
    const flake = new SnowFlake({ layout, datacenterId: 0, workerId: 3, clockBack: 'throw' });
    const { epoch, tickMs } = flake.layout;
    const start = epoch + 5 * tickMs;
    assert.equal(flake.floorId(start), flake.compose({ timestamp: start, workerId: 0 }));
    assert.equal(flake.floorId(start + tickMs - 1), flake.floorId(new Date(start)));
    assert.ok(flake.floorId(start - 1) < flake.floorId(start));
    assert.equal(flake.floorId(epoch), 0n);
    refuses(() => flake.floorId(epoch - 1), 'ERR_SNOWFLAKE_ARGUMENT');
    refuses(() => flake.floorId(flake.stats().endOfTime), 'ERR_SNOWFLAKE_ARGUMENT');
    assert.ok(flake.floorId(flake.stats().endOfTime.getTime() - 1) > 0n);
    flake.close();
  }
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
  const flake = new SnowFlake({ datacenterId: 1, workerId: 1 });
  const ids = [];
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 7; i++) ids.push(flake.nextId());
    ids.push(...flake.nextIds(13));
    for (let i = 0; i < 5; i++) ids.push(BigInt(flake.nextIdString()));
    ids.push(...flake.nextIdStrings(3).map(BigInt));
  }
  assert.ok(ids.every((id, i) => i === 0 || id > ids[i - 1]));
});

test('a batch spans ticks, and may be empty', () => {
  const flake = new SnowFlake({ datacenterId: 1, workerId: 2 });
  const ids = flake.nextIds(20_000);
  assert.ok(ids instanceof BigUint64Array);
  assert.equal(countDuplicates(ids), 0);
  assert.ok(flake.parse(ids[19_999]).timestamp > flake.parse(ids[0]).timestamp);
  assert.equal(flake.nextIds(0).length, 0);
  assert.deepEqual(flake.nextIdStrings(0), []);
});

test('nextIdAsync() waits in an exhausted tick without holding the event loop', async () => {
  const layout = { ...layouts.node, tickMs: 200, sequenceBits: 1 };
  const flake = new SnowFlake({ layout, datacenterId: 1, workerId: 5 });
  const all = [];
  /** Answers how many ticks five IDs were drawn in, and how many turns passed. */
  async function draw() {
    let turns = 0;
    const counting = setInterval(() => turns++, 5);
    const ids = await Promise.all(Array.from({ length: 5 }, () => flake.nextIdAsync()));
    clearInterval(counting);
    all.push(...ids);
    // The order does not matter: the call that waits longest may come first.
    return { ticks: new Set(ids.map((id) => flake.parse(id).timestamp)).size, turns };
  }
  // Two IDs a tick. On a busy machine a tick may begin or end between two draws.
  let seen;
  for (let rounds = 0; rounds < 20; rounds++) {
    seen = await draw();
    assert.ok(seen.ticks >= 3);
    if (seen.ticks === 3 && seen.turns > 0) break;
  }
  if (isStorms) {
    assert.equal(seen.ticks, 3);
    assert.ok(seen.turns > 0, 'other work had its turns');
  }
  assert.equal(countDuplicates(all), 0);
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

test('the default instance is configured once, before its first use', () => {
  const flake = SnowFlake.configure({ layout: 'twitter', datacenterId: 31, workerId: 31 });
  assert.equal(SnowFlake.default, flake);
  const { nextId, nextIdString, nextIds, nextIdStrings, parse } = SnowFlake;
  const ids = [nextId(), BigInt(nextIdString()), ...nextIds(2), ...nextIdStrings(2).map(BigInt)];
  assert.ok(
    ids.every((id) => parse(id).datacenterId === 31),
    'parsed by the default layout',
  );
  assert.equal(countDuplicates(ids), 0);
  refuses(() => SnowFlake.configure({ datacenterId: 1, workerId: 1 }), 'ERR_SNOWFLAKE_CONFLICT');
  flake.close();
  refuses(nextId, 'ERR_SNOWFLAKE_CLOSED');
  SnowFlake.configure({ datacenterId: 2, workerId: 2 });
  assert.equal(parse(nextId()).datacenterId, 2);
});

test('ESM finds the same class by name', async () => {
  const esm = await import('../../js/index.js');
  assert.equal(esm.SnowFlake, SnowFlake);
  assert.equal(esm.layouts, layouts);
  assert.equal(new esm.SnowFlakeError('X', 'y').name, 'SnowFlakeError');
});
