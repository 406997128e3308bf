'use strict';
// Batches of all sizes: each ID once, in order, with the IDs drawn one by one between them; and arrays of
// the application's that are filled.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runInNewContext } = require('node:vm');

const { isQuick } = require('../support/amount.js');
const {
  CachedSnowFlake,
  SnowFlake,
  layouts,
  refuses,
  slow,
  standing,
  wide,
} = require('../support/support.js');

const SIZES = [0, 1, 2, 7, 15, 16, 31, 32, 33, 64, 65, 66, 255, 256, 257, 500, 1000, 5000];

/** In a tick of a day each ID counts: no number is left out, none comes twice. */
test('batches of all sizes, by all ways, leave no holes and repeat nothing', async () => {
  const flake = new SnowFlake({ layout: slow, datacenterId: 2, workerId: 0 });
  let expected = flake.nextId();
  const expect = (id) => assert.equal(BigInt(id), ++expected);
  for (let round = 0; round < 4; round++) {
    for (const size of SIZES) {
      for (const id of flake.nextIds(size)) expect(id);
      expect(flake.nextId());
      for (const id of flake.nextIdStrings(size)) expect(id);
      for (const id of flake.nextIds(new BigUint64Array(size))) expect(id);
      expect(flake.nextIdString());
      expect(await flake.nextIdAsync());
      if (round % 2) await new Promise(setImmediate);
    }
  }
  flake.close();
});

test('IDs of a batch are no older than its call', async () => {
  const flake = new SnowFlake({ layout: wide, datacenterId: 1, workerId: 1 });
  for (let round = 0; round < (isQuick ? 6 : 30); round++) {
    for (const size of SIZES.filter((size) => size > 0)) {
      await (round % 2 ? new Promise(setImmediate) : undefined);
      // Leaves a block behind that is checked, of an earlier ms.
      for (let n = 0; n < 5; n++) flake.nextId();
      const start = Date.now();
      while (Date.now() === start);
      const before = Date.now();
      for (const ids of [flake.nextIds(size), flake.nextIdStrings(size)]) {
        const { timestamp } = flake.parse(ids[0]);
        assert.ok(timestamp >= before, `${before - timestamp} ms old, of ${size}`);
      }
    }
  }
  flake.close();
});

test('an array is filled, whole or in part, and returned', () => {
  const flake = new SnowFlake({ datacenterId: 2, workerId: 1 });
  const array = new BigUint64Array(100);
  assert.equal(flake.nextIds(array), array);
  assert.equal(new Set(array).size, 100);
  array.fill(0n);
  const part = array.subarray(10, 20);
  assert.equal(flake.nextIds(part), part);
  assert.equal(
    array.findIndex((id) => id !== 0n),
    10,
  );
  assert.equal(
    array.findLastIndex((id) => id !== 0n),
    19,
  );
  const other = runInNewContext('new BigUint64Array(3)');
  assert.equal(flake.nextIds(other), other);
  assert.ok(other.every((id) => flake.parse(id).workerId === 1));
  class Ids extends BigUint64Array {}
  assert.ok(flake.nextIds(new Ids(3)) instanceof Ids);
  // Whatever properties it has.
  const odd = Object.defineProperties(new BigUint64Array(4), {
    length: { value: 2 },
    buffer: { value: null },
    set: { value: null },
  });
  assert.ok([...flake.nextIds(odd)].every((id) => id > 0n));
  assert.ok(flake.nextIds(0) instanceof BigUint64Array);
  assert.deepEqual(flake.nextIdStrings(0), []);
  flake.close();
});

test('rings and own clocks fill arrays, too', () => {
  const cached = new CachedSnowFlake({ datacenterId: 2, workerId: 2 });
  const own = new SnowFlake({ datacenterId: 2, workerId: 2, clock: standing(Date.now()) });
  for (const flake of [cached, own]) {
    const ids = flake.nextIds(new BigUint64Array(1000));
    assert.equal(new Set(ids).size, 1000);
    assert.ok(ids.every((id, n) => n === 0 || id > ids[n - 1]));
    flake.close();
  }
});

test('arrays that cannot be filled are refused, and nothing is drawn', () => {
  const flake = new SnowFlake({ layout: slow, datacenterId: 2, workerId: 4 });
  const first = flake.nextId();
  const detached = new BigUint64Array(8);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  const targets = {
    shared: new BigUint64Array(new SharedArrayBuffer(64)),
    detached,
    'too long': new BigUint64Array(1_000_001),
    'of another type': new BigInt64Array(8),
    bytes: new Uint8Array(64),
    'no view': new ArrayBuffer(64),
    'an array': [0n, 0n],
    'looks like one': { __proto__: BigUint64Array.prototype, length: 8 },
    'a proxy': new Proxy(new BigUint64Array(8), {}),
  };
  if ('resizable' in ArrayBuffer.prototype) {
    const buffer = new ArrayBuffer(64, { maxByteLength: 128 });
    targets.shrunk = new BigUint64Array(buffer, 0, 8);
    targets['shrunk below its start'] = new BigUint64Array(buffer, 32);
    const tracking = new BigUint64Array(buffer);
    buffer.resize(16);
    // One that follows its buffer has what is left.
    assert.equal(flake.nextIds(tracking).length, 2);
    assert.equal(flake.nextId(), first + 3n);
  }
  const { issued } = flake.stats();
  for (const [what, target] of Object.entries(targets)) {
    const { message } = refuses(() => flake.nextIds(target), 'ERR_SNOWFLAKE_ARGUMENT');
    assert.match(message, /nextIds\(\)|count/, what);
  }
  assert.equal(flake.stats().issued, issued);
  flake.close();
});

test('a refused batch leaves no ID in the array that is issued again', () => {
  const layout = { ...slow, sequenceBits: 10 };
  const flake = new SnowFlake({ layout, datacenterId: 2, workerId: 5, maxWait: 0 });
  const array = new BigUint64Array(1025).fill(1n);
  refuses(() => flake.nextIds(array), 'ERR_SNOWFLAKE_EXHAUSTED');
  assert.ok(array.every((id) => id === 0n));
  assert.equal(flake.stats().issued, 0);
  assert.equal(new Set(flake.nextIds(1024)).size, 1024);
  flake.close();
});

test('an array that a callback detaches meanwhile is refused, and its IDs are given back', () => {
  const layout = { ...layouts.node, sequenceBits: 12 };
  let taken;
  const clock = () => {
    if (taken) structuredClone(taken.buffer, { transfer: [taken.buffer] });
    taken = undefined;
    return 1_700_000_000_000;
  };
  const flake = new SnowFlake({ layout, datacenterId: 2, workerId: 6, clock });
  const first = flake.nextId();
  taken = new BigUint64Array(8);
  refuses(() => flake.nextIds(taken), 'ERR_SNOWFLAKE_ARGUMENT');
  assert.equal(flake.nextId(), first + 1n);
  flake.close();
});
