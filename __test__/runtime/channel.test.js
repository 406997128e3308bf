'use strict';
// The native half of js/generator/draw.js: what it does with counts that cannot be, and with a slot that was lost.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { requestOf } = require('../support/request.js');
const { SnowFlake, layouts, slow } = require('../support/support.js');
const { holdSlot } = require('../support/lease/held.js');
const native = require('../../js/runtime/native.js');

const request = (more) => requestOf(slow, more);

/** The next block. */
function blockOf(channel) {
  const length = Math.abs(channel.refill(channel.memory));
  assert.ok(length > 0, JSON.stringify(channel.refusal()));
  return [...new BigUint64Array(channel.memory).subarray(0, length)];
}

/** The next block that has several IDs. */
function largeBlockOf(channel) {
  for (;;) {
    const block = blockOf(channel);
    if (block.length > 4) return block;
  }
}

test('no more is given back than was reserved, whatever the count', () => {
  const channel = native.open(request());
  const other = native.open(request());
  const seen = new Set();
  for (const count of [-1, -93_857, 5000, 2 ** 32, 2 ** 53, Number.NaN, 0.5, undefined, '3']) {
    const block = largeBlockOf(channel);
    for (const id of block) {
      assert.ok(!seen.has(id), `${id} again`);
      seen.add(id);
    }
    channel.giveBack(channel.memory, count);
    channel.giveBack(channel.memory, 1);
    for (const id of largeBlockOf(other)) {
      assert.ok(!seen.has(id), `${id} again, after giveBack(${count})`);
      seen.add(id);
    }
  }
});

test('IDs of one node are not taken back by another', () => {
  const channel = native.open(request({ workerId: 2 }));
  const other = new SnowFlake({ layout: slow, datacenterId: 1, workerId: 3 });
  const id = other.nextId();
  channel.takeBack(BigUint64Array.of(id));
  assert.ok(other.nextId() > id);
  assert.equal(channel.stats().issued, 0);
});

test('the rest of a lost slot’s block is not given to the ring of the next slot', () => {
  const ring = { boostPower: 1, paddingFactor: 50, scheduleInterval: 0, maxAge: 1000 };
  const layout = { ...layouts.node, sequenceBits: 8 };
  const of = (workerId) => {
    const own = request({ layout, ring, workerId });
    return { ...own, lease: holdSlot(own) };
  };
  const channel = native.open(of(4));
  const left = largeBlockOf(channel);
  assert.equal(channel.moveTo(of(5)), null);
  channel.giveBack(channel.memory, left.length - 1);
  for (let n = 0; n < 50; n++) {
    for (const id of blockOf(channel)) {
      assert.equal(SnowFlake.parse(id, layout).workerId, 5, 'the slot it has now');
    }
  }
  channel.close();
});
