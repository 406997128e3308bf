'use strict';
// The codec (js/ids/codec.js) reads and writes the IDs that plain arithmetic does and that Rust issues, and refuses the
// others: any layout, any ID, any fields.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const fc = require('fast-check');

const { isQuick } = require('../support/amount.js');
const { SnowFlake, SnowFlakeError } = require('../support/support.js');
const { Codec, ParsedId } = require('../../js/ids/codec.js');
const { idOf } = require('../../js/ids/text.js');
const { unwrap } = require('../../js/messages/errors.js');
const native = require('../../js/runtime/native.js');
const { requestOf } = require('../support/request.js');
const { LARGEST_ID, ids, layoutsWithFields, within } = require('../support/layouts.js');

const RUNS = { numRuns: isQuick ? 4000 : 20_000 };

/** What a call returns, or the code and message of what it throws. */
function outcome(call) {
  try {
    return call();
  } catch (error) {
    assert.ok(error instanceof SnowFlakeError, error.stack);
    return { code: error.code, message: error.message };
  }
}

const codecOf = (layout) => new Codec(layout);

test('Rust issues the IDs of these bits, and takes back what is put together, in any layout', () => {
  fc.assert(
    fc.property(layoutsWithFields, ({ layout, fields: { timestamp, datacenterId, workerId } }) => {
      const node = { datacenterId, workerId, ownClock: true };
      const channel = unwrap(native.open(requestOf(layout, node)));
      new Float64Array(channel.memory, 2048, 1)[0] = timestamp;
      const isIssued = channel.refill(channel.memory) === 1;
      const id = outcome(() => codecOf(layout).encode(timestamp, datacenterId, workerId, 0, 0));
      assert.equal(isIssued, typeof id === 'bigint', channel.refusal().kind);
      if (!isIssued) return;
      assert.equal(new BigUint64Array(channel.memory)[0], id);
      const decoded = codecOf(layout).decode(id);
      const { tickMs, epoch } = layout;
      const start = BigInt(timestamp) - ((BigInt(timestamp) - BigInt(epoch)) % BigInt(tickMs));
      assert.equal(decoded.timestamp, Number(start));
      assert.deepEqual(
        [decoded.datacenterId, decoded.workerId, decoded.clockBack, decoded.sequence],
        [datacenterId, workerId, 0, 0],
      );
      assert.equal(channel.stats().issued, 1);
      channel.takeBack(BigUint64Array.of(id));
      assert.equal(channel.stats().issued, 0);
      channel.close();
    }),
    { numRuns: 2000 },
  );
});

test('digits are read as BigInt() reads them, and nothing else is', () => {
  const pattern = /^(0|[1-9][0-9]{0,18})$/;
  const digits = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 20n }).map(String),
    ids.map(String),
    fc.constantFrom(LARGEST_ID, LARGEST_ID + 1n, 2n ** 32n, 10n ** 9n, 10n ** 18n - 1n).map(String),
    fc.stringMatching(/^[0-9]{0,21}$/),
    fc.string({ maxLength: 21 }),
    // A digit of another script, a sign, a space, within digits.
    fc
      .tuple(
        ids.map(String),
        within(18),
        fc.constantFrom('٣', '３', '-', '+', ' ', '_', '.', 'e', 'n', '\0'),
      )
      .map(([text, at, odd]) => text.slice(0, at) + odd + text.slice(at + 1)),
  );
  fc.assert(
    fc.property(digits, (text) => {
      const id = pattern.test(text) ? BigInt(text) : undefined;
      assert.equal(idOf(text), id <= LARGEST_ID ? id : undefined);
    }),
    { numRuns: 5 * RUNS.numRuns },
  );
});

test('what is parsed shows, spreads, compares and serialises as a plain object does', () => {
  const parsed = SnowFlake.parse('501276370537314304');
  const fields = {
    id: 501276370537314304n,
    timestamp: 1700000000000,
    date: new Date(1700000000000),
    datacenterId: 5,
    workerId: 17,
    clockBack: 3,
    sequence: 2048,
  };
  assert.ok(parsed instanceof ParsedId);
  assert.deepEqual(Object.keys(parsed), Object.keys(fields));
  assert.deepEqual({ ...parsed }, fields);
  assert.deepEqual(parsed, SnowFlake.parse(501276370537314304n));
  assert.deepEqual(structuredClone(parsed), fields);
  assert.equal(parsed.date, parsed.date);
  assert.deepEqual(parsed.toJSON(), { ...fields, id: '501276370537314304' });
});
