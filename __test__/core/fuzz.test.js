'use strict';
// Any value to everything that takes input. Either it is refused by a SnowFlakeError with a code, or what
// comes of it is what was asked for. A failure prints its seed and the smallest input that fails.
//
//   TESTS_TIMES=10 node --test __test__/core/fuzz.test.js
//
// TESTS_SEED=4711 replays a run.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runInNewContext } = require('node:vm');

const fc = require('fast-check');

const { amount, isQuick, seed } = require('../support/amount.js');
const { CachedSnowFlake, SnowFlake, SnowFlakeError, layouts } = require('../support/support.js');
const { OPTION_KEYS } = require('../../js/generator/options.js');

/** For all properties. In npm test each is tried as often as it must be. */
const SECONDS = isQuick ? 0 : amount(2, 20);

// Of clocks that step and layouts that end there are many here.
process.removeAllListeners('warning');

const LARGEST_ID = 2n ** 63n - 1n;
const TIME_LIMIT = 8.64e15;

function raise() {
  throw new RangeError('a trap');
}

function revoked() {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const TRAPS = ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'];
const KEYS = [...OPTION_KEYS, ...Object.keys(layouts.node), 'timestamp', 'timeZone', 'valueOf'];

/** What throws when it is looked at, so that it is made only when it is passed. */
const TRICKS = {
  'a revoked proxy': revoked,
  ...Object.fromEntries(
    TRAPS.map((trap) => [`a proxy, ${trap} throws`, () => new Proxy({}, { [trap]: raise })]),
  ),
  ...Object.fromEntries(
    KEYS.map((key) => [
      `an object, ${key} throws`,
      () => Object.defineProperty({}, key, { get: raise, enumerable: true }),
    ]),
  ),
};

class Trick {
  constructor(name) {
    this.name = name;
  }
}

/** What was generated, with its tricks in place. */
function real(value) {
  if (value instanceof Trick) return TRICKS[value.name]();
  if (value === null || typeof value !== 'object') return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, real(inner)]));
}

const numbers = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 0.5, Number.NaN, Infinity, -Infinity, 1e300, 5e-324),
  fc.integer({ min: 0, max: 65 }),
  // About the bounds of whatever has so many bits.
  fc
    .tuple(fc.integer({ min: 0, max: 64 }), fc.integer({ min: -2, max: 2 }))
    .map(([bits, more]) => 2 ** bits + more),
  fc.constantFrom(TIME_LIMIT, TIME_LIMIT + 2, -TIME_LIMIT, -TIME_LIMIT - 2),
  fc.double(),
);
const bigints = fc.oneof(
  fc.bigInt({ min: -3n, max: LARGEST_ID + 3n }),
  fc.bigInt({ min: LARGEST_ID - 3n, max: LARGEST_ID + 3n }),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
);
const strings = fc.oneof(
  fc.string(),
  // Lone surrogates, too.
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  bigints.map(String),
  numbers.map(String),
  // A number that is nearly one.
  fc
    .tuple(
      bigints.map(String),
      fc.nat(20),
      fc.constantFrom('', ' ', '0', '-', '+', '.', 'e1', 'n', '_', '\n', '\0', '０', 'x'),
    )
    .map(([digits, at, more]) => digits.slice(0, at) + more + digits.slice(at)),
  fc.integer({ min: 20, max: 100_000 }).map((length) => '9'.repeat(length)),
  fc.constantFrom('node', 'counter', 'zero', '__proto__', 'constructor', 'toString'),
);
const dates = fc.oneof(fc.date(), fc.constant(new Date(Number.NaN)));
const objects = fc.oneof(
  fc.anything({
    key: fc.oneof(fc.constantFrom(...OPTION_KEYS, ...Object.keys(layouts.node)), fc.string()),
    maxDepth: 2,
    maxKeys: 3,
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
  }),
  fc.constantFrom(...Object.keys(TRICKS)).map((name) => new Trick(name)),
);
const others = fc.constantFrom(
  undefined,
  null,
  true,
  false,
  Symbol('s'),
  Symbol.iterator,
  () => 1,
  raise,
  class {},
  runInNewContext('({})'),
  runInNewContext('new Date(0)'),
  Object.create(Date.prototype),
);
const anything = fc.oneof(numbers, bigints, strings, dates, objects, others);

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
const someLayout = fc.oneof(fc.constantFrom(...Object.keys(layouts)), layout);

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
  layout: mostly(someLayout),
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
/** Keys that are there or not, and now and then one that nobody knows. */
function some(model) {
  const known = fc.record(model, { requiredKeys: [] });
  return fc.oneof(
    { weight: 9, arbitrary: known },
    {
      weight: 1,
      arbitrary: fc.tuple(known, fc.string(), anything).map(([all, key, value]) => {
        return key === '__proto__' ? all : { ...all, [key]: value };
      }),
    },
  );
}

/** Runs `call`; answers undefined if it was refused as it must be. */
function granted(call) {
  try {
    return call();
  } catch (refusal) {
    isRefusal(refusal);
    return undefined;
  }
}

function isRefusal(refusal) {
  assert.ok(refusal instanceof SnowFlakeError, `not a SnowFlakeError: ${refusal?.stack}`);
  assert.match(refusal.code, /^ERR_SNOWFLAKE_[A-Z_]+$/);
  assert.ok(refusal.message.length > 20 && refusal.message.length < 1000, refusal.message);
}

function isId(id) {
  assert.ok(typeof id === 'bigint' && id >= 0n && id <= LARGEST_ID, `not an ID: ${String(id)}`);
}

/** An instance's IDs tell where they come from, in whatever form. */
function drawsIds(flake) {
  const ids = [];
  for (let i = 0; i < 4; i++) {
    const id = granted(flake.nextId);
    if (id !== undefined) ids.push(id);
    const spelled = granted(flake.nextIdString);
    if (spelled !== undefined) ids.push(BigInt(spelled));
  }
  ids.push(...(granted(() => flake.nextIds(3)) ?? []));
  for (const id of ids) {
    isId(id);
    const parsed = flake.parse(String(id));
    assert.equal(parsed.id, id);
    assert.equal(parsed.datacenterId, flake.datacenterId);
    assert.equal(parsed.workerId, flake.workerId);
    assert.equal(flake.compose(parsed), id);
  }
  assert.equal(new Set(ids).size, ids.length, 'an ID was drawn twice');
}

const KINDS = 4;

/** So often each property is tried at least, however slow the machine is: fewer tries show nothing. */
const LEAST_TRIES = isQuick ? 1000 : 3000;

/**
 * A property that is tried for its share of the time.
 * @param accepted the share of what it is tried with that must not be refused, else it shows nothing
 * @param property answers whether it was not
 */
function fuzz(name, accepted, arbitraries, property) {
  test(name, async (t) => {
    let tries = 0;
    let passed = 0;
    const counted = async (...values) => {
      tries++;
      if (await property(...values.map(real))) passed++;
    };
    const end = performance.now() + (SECONDS * 1000) / KINDS;
    // In rounds: fast-check takes a time that ends before the first try for a failure.
    for (let round = 0; round === 0 || performance.now() < end; round++) {
      await fc.assert(fc.asyncProperty(...arbitraries, counted), {
        numRuns: LEAST_TRIES,
        ...(seed === undefined ? {} : { seed: seed + round }),
      });
    }
    t.diagnostic(`${tries} tries, ${passed} accepted`);
    assert.ok(passed >= tries * accepted, `only ${passed} of ${tries} were accepted`);
  });
}

fuzz(
  'options: refused, or the IDs tell of them',
  0.02,
  [some({ ...options, clock: mostly(clock) })],
  (given) => {
    const flake = granted(() => new SnowFlake(given));
    if (flake === undefined) return false;
    if (given.clock === undefined) assert.ok(!(given.maxAhead > 0), 'ahead without a record');
    drawsIds(flake);
    flake.close();
    return true;
  },
);

/** Whether index.d.ts calls it a layout. */
function isLayout(cut) {
  const within = (value, min, max) => Number.isInteger(value) && value >= min && value <= max;
  const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits } = cut;
  const sum = timestampBits + datacenterBits + workerBits + clockBackBits + sequenceBits;
  const ms = Object.prototype.toString.call(cut.epoch) === '[object Date]' ? +cut.epoch : cut.epoch;
  return (
    within(timestampBits, 1, 62) &&
    within(datacenterBits, 0, 53) &&
    within(workerBits, 0, 53) &&
    within(clockBackBits, 0, 4) &&
    within(sequenceBits, 1, 53) &&
    within(cut.tickMs, 1, 86_400_000) &&
    typeof ms === 'number' &&
    Math.abs(ms) <= TIME_LIMIT &&
    (Math.floor(ms) <= 0 || ms >= Date.UTC(1970, 1)) &&
    sum <= 63
  );
}

const fields = some({
  timestamp: mostly(fc.oneof(dates, fc.integer({ min: 1_580_486_400_000, max: 2e12 }))),
  datacenterId: upTo(8),
  workerId: upTo(8),
  clockBack: upTo(4),
  sequence: upTo(5000),
});

fuzz(
  'a layout: refused by its own rules, or any fields and IDs go there and back',
  0.02,
  [layout, fields, bigints],
  (cut, given, id) => {
    const make = () =>
      new SnowFlake({ layout: cut, datacenterId: 0, workerId: 0, clock: () => 1_700_000_000_000 });
    if (!safely(() => isLayout(cut))) {
      assert.throws(make, { code: 'ERR_SNOWFLAKE_CONFIG' });
      return false;
    }
    const flake = make();
    const composed = granted(() => flake.compose(given));
    if (composed !== undefined) {
      isId(composed);
      const parsed = flake.parse(composed);
      assert.equal(flake.compose(parsed), composed);
      for (const name of ['datacenterId', 'workerId', 'clockBack', 'sequence']) {
        // -0 is 0.
        if (given[name] !== undefined) assert.equal(parsed[name], given[name] + 0);
      }
      const age = given.timestamp === undefined ? 0 : given.timestamp - parsed.timestamp;
      assert.ok(age >= 0 && age < cut.tickMs, `composed for ${age} ms later`);
    }
    const parsed = granted(() => flake.parse(id));
    if (parsed !== undefined) assert.equal(flake.compose(parsed), id);
    flake.close();
    return true;
  },
);

/** What a test's own look at a value says; false if it cannot be looked at. */
function safely(look) {
  try {
    return look();
  } catch {
    return false;
  }
}

const CALLS = [
  'nextIds',
  'nextIdStrings',
  'floorId',
  'compose',
  'parse',
  'toUidString',
  'configure',
  'use',
];
const flake = new SnowFlake({ datacenterId: 7, workerId: 31 });
const [firstId] = flake.nextIds(1);
/** A count that is good is a small one here. */
const isLarge = (value) => typeof value === 'number' && value > 1000 && value <= 1_000_000;

fuzz(
  'calls: refused, or answered; and the next good call works',
  0.01,
  [fc.constantFrom(...CALLS), anything.filter((value) => !isLarge(value))],
  (name, value) => {
    const answer = granted(() => {
      if (name === 'configure' || name === 'use') return SnowFlake[name](value);
      return name === 'toUidString' ? flake.toUidString(firstId, value) : flake[name](value);
    });
    // -0 is 0.
    if (answer?.length !== undefined && name.startsWith('nextIds')) {
      assert.equal(answer.length, value + 0);
    }
    if (name === 'floorId' && answer !== undefined) isId(answer);
    isId(flake.nextId());
    return answer !== undefined;
  },
);

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

fuzz(
  'options of a ring: refused, or the IDs tell of them',
  0.01,
  [some({ ...options, ...ring })],
  (given) => {
    const cached = granted(() => new CachedSnowFlake(given));
    if (cached === undefined) return false;
    assert.ok(!(given.maxAhead > 0), 'ahead without a record');
    // What the application gives instead of an ID may be anything.
    if (typeof given.onRejectedTake !== 'function') drawsIds(cached);
    cached.close();
    return true;
  },
);
