'use strict';
// Any options to a generator and to a ring. Either they are refused by a SnowFlakeError with a code, or the IDs tell of them.
// bad-input.test.js has what each option and call refuses, id.test.js any layout and any ID. A failure prints its seed and the
// smallest input that fails.
//
//   TESTS_TIMES=10 node --test __test__/generator/fuzz.test.js
//
// TESTS_SEED=4711 replays a run.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runInNewContext } = require('node:vm');

const fc = require('fast-check');

const { amount, isQuick, seed } = require('../support/amount.js');
const { CachedSnowFlake, SnowFlake, SnowFlakeError, layouts } = require('../support/support.js');
const { OPTION_KEYS } = require('../../js/generator/options.js');

// Of clocks that step and layouts that end there are many here.
process.removeAllListeners('warning');

const TIME_LIMIT = 8.64e15;

function raise() {
  throw new RangeError('a trap');
}

const numbers = fc.oneof(
  fc.constantFrom(-0, 0.5, Number.NaN, Infinity, -Infinity, 1e300, 5e-324, TIME_LIMIT + 2),
  // About the bounds of whatever has so many bits.
  fc
    .tuple(fc.integer({ min: 0, max: 64 }), fc.integer({ min: -2, max: 2 }))
    .map(([bits, more]) => 2 ** bits + more),
  fc.double(),
);
const dates = fc.oneof(fc.date(), fc.constant(new Date(Number.NaN)));
const key = fc.oneof(fc.constantFrom(...OPTION_KEYS, ...Object.keys(layouts.node)), fc.string());
const anything = fc.oneof(
  numbers,
  dates,
  fc.string(),
  fc.anything({
    ...{ key, maxDepth: 2, maxKeys: 3, withBigInt: true, withBoxedValues: true, withDate: true },
    ...{ withMap: true, withNullPrototype: true, withSet: true, withTypedArray: true },
  }),
  fc.constantFrom(Symbol('s'), () => 1, raise, class {}, runInNewContext('({})')),
);

/** Mostly what is good, else anything. */
const mostly = (good) =>
  fc.oneof({ weight: 15, arbitrary: good }, { weight: 1, arbitrary: anything });
const upTo = (max) => mostly(fc.integer({ min: 0, max }));

const layout = fc.record({
  timestampBits: mostly(
    fc.oneof(fc.integer({ min: 30, max: 42 }), fc.integer({ min: 0, max: 63 })),
  ),
  datacenterBits: upTo(8),
  workerBits: upTo(8),
  clockBackBits: upTo(4),
  sequenceBits: upTo(12),
  tickMs: mostly(fc.constantFrom(1, 2, 10, 1000, 86_400_000)),
  epoch: mostly(fc.oneof(fc.constantFrom(0, 1_580_486_400_000, -1), dates)),
});

/** Clocks stand, step, or are none. */
const clock = fc
  .array(mostly(fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_005 })), { minLength: 1 })
  .map((readings) => {
    let at = 0;
    return () => readings[at++ % readings.length];
  });

/** A maxWait that is good, and would make this take long. */
const isLong = (value) => typeof value === 'number' && value > 2 && value <= 60_000;

/** What makes no file, and waits for no more than 2 ms. */
const options = {
  datacenterId: upTo(8),
  workerId: upTo(8),
  layout: mostly(fc.oneof(fc.constantFrom(...Object.keys(layouts)), layout)),
  epoch: mostly(fc.constantFrom(0, 1_580_486_400_000)),
  clockBack: mostly(fc.constantFrom('counter', 'wait', 'throw')),
  maxWait: fc.oneof(
    fc.integer({ min: 0, max: 2 }),
    anything.filter((value) => !isLong(value)),
  ),
  // Nothing records these nodes: they are refused ahead of the clock, but for those with a clock of their own.
  maxAhead: fc.oneof(fc.constant(0), upTo(3_600_000)),
  sequenceStart: mostly(fc.constantFrom('zero', 'random')),
};
const ring = {
  boostPower: upTo(2),
  paddingFactor: upTo(100),
  scheduleIntervalMs: upTo(100),
  maxAge: upTo(1000),
  onRejectedPut: mostly(fc.constantFrom('discard', () => {})),
  onRejectedTake: mostly(
    fc.constantFrom(
      'throw',
      'wait',
      () => 5n,
      raise,
      () => 'no ID',
    ),
  ),
};

/** Keys that are there or not, and now and then one that nobody knows. */
function some(model) {
  const known = fc.record(model, { requiredKeys: [] });
  const unknown = fc
    .tuple(known, fc.string(), anything)
    .map(([all, name, value]) => (name === '__proto__' ? all : { ...all, [name]: value }));
  return fc.oneof({ weight: 9, arbitrary: known }, { weight: 1, arbitrary: unknown });
}

/** What a call returns; undefined if it was refused as it must be. */
function granted(call) {
  try {
    return call();
  } catch (refusal) {
    assert.ok(refusal instanceof SnowFlakeError, `not a SnowFlakeError: ${refusal?.stack}`);
    assert.match(refusal.code, /^ERR_SNOWFLAKE_[A-Z_]+$/);
    assert.ok(refusal.message.length > 20 && refusal.message.length < 1000, refusal.message);
    return undefined;
  }
}

/** An instance's IDs tell where they come from, in whatever form. */
function drawsIds(flake) {
  const ids = [...(granted(() => flake.nextIds(3)) ?? [])];
  for (let n = 0; n < 4; n++) {
    const drawn = [granted(flake.nextId), granted(flake.nextIdString)];
    ids.push(...drawn.filter((id) => id !== undefined).map(BigInt));
  }
  for (const id of ids) {
    assert.ok(id >= 0n && id < 2n ** 63n, String(id));
    const parsed = flake.parse(String(id));
    assert.deepEqual(
      [parsed.id, parsed.datacenterId, parsed.workerId, flake.compose(parsed)],
      [id, flake.datacenterId, flake.workerId, id],
    );
  }
  assert.equal(new Set(ids).size, ids.length, 'an ID was drawn twice');
}

/** In npm test each is tried as often as it must be: fewer tries show nothing. */
const SECONDS = isQuick ? 0 : amount(1, 10);
const LEAST_TRIES = isQuick ? 1000 : 3000;

for (const [Class, model, accepted] of [
  [SnowFlake, { ...options, clock: mostly(clock) }, 0.02],
  [CachedSnowFlake, { ...options, ...ring }, 0.01],
]) {
  test(`any options to a ${Class.name}: refused, or the IDs tell of them`, (t) => {
    let tries = 0;
    let passed = 0;
    const property = fc.property(some(model), (given) => {
      tries++;
      const flake = granted(() => new Class(given));
      if (flake === undefined) return;
      passed++;
      if (given.clock === undefined) assert.ok(!(given.maxAhead > 0), 'ahead without a record');
      // What the application gives instead of an ID may be anything.
      if (typeof given.onRejectedTake !== 'function') drawsIds(flake);
      flake.close();
    });
    const end = performance.now() + SECONDS * 1000;
    // In rounds: fast-check takes a time that ends before the first try for a failure.
    for (let round = 0; round === 0 || performance.now() < end; round++) {
      fc.assert(property, {
        numRuns: LEAST_TRIES,
        ...(seed === undefined ? {} : { seed: seed + round }),
      });
    }
    t.diagnostic(`${tries} tries, ${passed} accepted`);
    assert.ok(passed >= tries * accepted, `only ${passed} of ${tries} were accepted`);
  });
}
