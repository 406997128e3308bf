'use strict';
// Bad input of every kind, to everything that takes input: a SnowFlakeError with a code, and the next
// good call works.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');

const { gate } = require('../support/amount.js');
const {
  CachedSnowFlake,
  SnowFlake,
  SnowFlakeError,
  layouts,
  refuses,
  rejects,
  standing,
} = require('../support/support.js');
const { ParsePublicIdPipe, SnowFlakeModule } = require('../../js/nestjs.js');

function revoked(target) {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function throwing(target) {
  const refuse = () => {
    throw new RangeError('a trap');
  };
  return new Proxy(target, { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse });
}

function detached() {
  const array = new BigUint64Array(1);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

/** Values that are neither a number, a string, a bigint nor a good object. */
const STRANGE = [
  null,
  true,
  Symbol('s'),
  () => 1,
  [],
  [1],
  new Map(),
  detached(),
  detached().buffer,
  throwing({}),
  revoked({}),
  revoked(() => 1),
  {
    valueOf() {
      throw new Error('valueOf');
    },
    toString() {
      throw new Error('toString');
    },
    get [Symbol.toPrimitive]() {
      throw new Error('toPrimitive');
    },
  },
  Object(1),
  Object(1n),
];

const NOT_WHOLE_NUMBERS = [
  ...STRANGE,
  {},
  Number.NaN,
  Infinity,
  -Infinity,
  -1,
  0.5,
  1e-7,
  2 ** 53,
  2 ** 53 + 2,
  1e300,
  4294967296 * 1e6,
  1n,
  '',
  '1',
  'x',
];

const NOT_IDS = [
  ...STRANGE,
  undefined,
  {},
  ...[0, 1, -1, 0.5, Number.NaN, Infinity, 2 ** 53, Number('3200169789968523265')],
  ...[-1n, 2n ** 63n, 2n ** 64n, 2n ** 64n + 1n, 10n ** 40n],
  ...['', ' ', ' 1', '1 ', '1\n', '+1', '-1', '01', '0x10', '0b1', '1e3', '1.0', '1n', '1_000'],
  ...['NaN', '１２', '9223372036854775808', '9'.repeat(40), '9'.repeat(1_000_000)],
];

const NOT_TIMES = [
  ...STRANGE,
  undefined,
  {},
  { getTime: () => 1_700_000_000_000 },
  Number.NaN,
  Infinity,
  8.64e15 + 1,
  1n,
  '2026-01-01',
  new Date(Number.NaN),
  Object.create(Date.prototype),
];

const flake = new SnowFlake({ datacenterId: 0, workerId: 0 });

function refusesEach(name, values, call, code) {
  test(`${name} refuses ${values.length} kinds of bad input, by name, and works afterwards`, () => {
    for (const value of values) {
      let thrown;
      try {
        call(value);
      } catch (error) {
        thrown = error;
      }
      let shown = 'a proxy';
      try {
        shown = inspect(value, { customInspect: false, maxStringLength: 40 });
      } catch {}
      assert.ok(thrown instanceof SnowFlakeError, `${shown}: ${thrown}`);
      assert.equal(thrown.code, code, shown);
      assert.ok(thrown.message.length > 20 && thrown.message.length < 500, thrown.message);
      assert.equal(typeof flake.nextId(), 'bigint');
    }
  });
}

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const ARGUMENT = 'ERR_SNOWFLAKE_ARGUMENT';
const INVALID_ID = 'ERR_SNOWFLAKE_INVALID_ID';
const base = { datacenterId: 1, workerId: 1 };
const make = (options) => new SnowFlake({ ...base, ...options });

refusesEach(
  'new SnowFlake()',
  [...STRANGE, 1, 'node', 1n],
  (value) => new SnowFlake(value),
  CONFIG,
);
for (const name of ['datacenterId', 'workerId', 'maxWait', 'maxAhead']) {
  refusesEach(name, [...NOT_WHOLE_NUMBERS, 3_600_001], (value) => make({ [name]: value }), CONFIG);
}
const NO_URLS = [...STRANGE, {}, 5, 'http://a/b', new URL('kafka://a')];
refusesEach(
  'state',
  // On Windows it is a directory that another machine shares.
  [
    ...NO_URLS,
    'a\0b',
    'file:ids%2Fa',
    ...(process.platform === 'win32' ? [] : ['file://host/ids']),
  ],
  (value) => make({ state: value }),
  CONFIG,
);
refusesEach(
  'lease',
  [...NO_URLS, 'ids', '/ids', 'postgres://a'],
  (value) => new SnowFlake({ datacenterId: 1, lease: value }),
  CONFIG,
);
for (const [name, ...beyond] of [
  ['ttl', 0, 999, 1000.5, 3_600_001],
  ['waitForSlot', 3_600_001],
]) {
  const values = [...NOT_WHOLE_NUMBERS, ...beyond];
  refusesEach(name, values, (value) => make({ state: '/no/ids', [name]: value }), CONFIG);
}
for (const name of ['clockBack', 'sequenceStart']) {
  refusesEach(
    name,
    [...STRANGE, {}, 1, '', 'Wait', 'toString'],
    (value) => make({ [name]: value }),
    CONFIG,
  );
}
refusesEach(
  'layout',
  [...STRANGE, {}, 1, '', 'Node', 'constructor', '__proto__'],
  (value) => make({ layout: value }),
  CONFIG,
);
refusesEach(
  'epoch',
  NOT_TIMES.slice(0, -1).filter((v) => v !== undefined),
  (value) => make({ epoch: value }),
  CONFIG,
);
refusesEach(
  'clock',
  [...STRANGE.filter((v) => typeof v !== 'function'), {}, 1, 'now'],
  (value) => make({ clock: value }),
  CONFIG,
);
for (const name of Object.keys(layouts.node).filter((key) => key !== 'epoch')) {
  const values = [...NOT_WHOLE_NUMBERS, 64, 255, 256, undefined];
  refusesEach(
    `${name} of a layout`,
    name === 'tickMs' ? values.filter((v) => ![64, 255, 256].includes(v)) : values,
    (value) => make({ layout: { ...layouts.node, [name]: value } }),
    CONFIG,
  );
}
refusesEach('configure()', [...STRANGE, undefined, 1, 'node'], SnowFlake.configure, CONFIG);

for (const method of ['nextIds', 'nextIdStrings']) {
  const counts = [...NOT_WHOLE_NUMBERS, undefined, 1_000_001, 2 ** 32, 2 ** 32 + 1];
  refusesEach(method, counts, (value) => flake[method](value), ARGUMENT);
}
refusesEach('parse()', NOT_IDS, (value) => flake.parse(value), INVALID_ID);
refusesEach('SnowFlake.parse()', NOT_IDS, (value) => SnowFlake.parse(value), INVALID_ID);
refusesEach(
  'the layout of SnowFlake.parse()',
  [...STRANGE, {}, 1, ''],
  (value) => SnowFlake.parse(1n, value),
  CONFIG,
);
refusesEach('floorId()', [...NOT_TIMES, 0, 8.64e15], (value) => flake.floorId(value), ARGUMENT);
refusesEach(
  'compose()',
  [...STRANGE, undefined, 1, '', { worker: 1 }],
  (value) => flake.compose(value),
  ARGUMENT,
);
refusesEach(
  'a timestamp to compose()',
  NOT_TIMES.filter((v) => v !== undefined),
  (timestamp) => flake.compose({ timestamp }),
  ARGUMENT,
);
for (const name of ['datacenterId', 'workerId', 'clockBack', 'sequence']) {
  const values = [...NOT_WHOLE_NUMBERS, 2 ** layouts.node[`${name}Bits`], 4096];
  refusesEach(
    `${name} to compose()`,
    values,
    (value) => flake.compose({ [name]: value }),
    ARGUMENT,
  );
}
refusesEach(
  'what a clock returns',
  NOT_TIMES,
  (now) => make({ clock: () => now }).nextId(),
  'ERR_SNOWFLAKE_CLOCK',
);

const NO_TEXT = STRANGE.filter((v) => typeof v !== 'function');
const { mongodb } = require('../../js/stores/mongodb.js');
for (const [name, store] of Object.entries({
  ...{ mongodb, ...require('../../js/stores/dynamodb.js'), ...require('../../js/stores/etcd.js') },
  ...require('../../js/stores/gcs.js'),
  ...{ ...require('../../js/stores/mysql.js'), ...require('../../js/stores/postgres.js') },
  ...{ ...require('../../js/stores/redis.js'), ...require('../../js/stores/typeorm.js') },
  s3: (client) => require('../../js/stores/s3.js').s3(client, { bucket: 'ids' }),
  sql: require('../../js/stores/sql.js').sql,
  ...require('../../js/stores/upstash.js'),
  workerNode: require('../../js/stores/worker-node.js').workerNode,
})) {
  refusesEach(`${name}()`, [...STRANGE, undefined, {}, 1, ''], (value) => store(value), CONFIG);
}
refusesEach(
  'the option database of mongodb()',
  [...STRANGE, {}, 1, '', 'a.b'],
  (database) => mongodb({ db() {} }, { database }),
  CONFIG,
);
for (const name of ['server', 'token', 'ca', 'kubernetesNamespace']) {
  const options = { server: 'https://k', token: 't', kubernetesNamespace: 'ids' };
  const { kubernetes } = require('../../js/stores/kubernetes.js');
  refusesEach(
    `the option ${name} of kubernetes()`,
    [...(name === 'server' ? STRANGE : NO_TEXT), {}, 1, ''],
    (value) => kubernetes({ ...options, [name]: value }),
    CONFIG,
  );
}

/** Objects with parts of an instance. */
const NO_FLAKES = [
  ...[...STRANGE, {}, 1, 'x', { isClosed: false }, { isClosed: true, lease: null }],
  ...[{ isClosed: false, lease: {}, stats() {} }, { stats: () => ({}) }],
  {
    get isClosed() {
      throw new Error('isClosed');
    },
  },
];
for (const [name, ask] of Object.entries(require('../../js/monitoring.js'))) {
  refusesEach(`${name}()`, NO_FLAKES, (value) => ask(value), ARGUMENT);
}
const { instrument } = require('../../js/opentelemetry.js');
const given = (values) => values.filter((value) => value !== null);
const meterProvider = { getMeter() {} };
refusesEach(
  'the flake of instrument()',
  given(NO_FLAKES),
  (flake) => instrument({ flake, meterProvider }),
  ARGUMENT,
);
refusesEach(
  'the meterProvider of instrument()',
  [...STRANGE, {}, 1, ''],
  (value) => instrument({ meterProvider: value }),
  CONFIG,
);
refusesEach(
  'ParsePublicIdPipe()',
  [...STRANGE, undefined, {}, 1, ''],
  (value) => new ParsePublicIdPipe(value),
  CONFIG,
);

test('SnowFlake.lease() refuses a value that is no store', async () => {
  for (const value of [...STRANGE, {}, 1, '', 'ids']) {
    await rejects(SnowFlake.lease(value, { datacenterId: 1 }), CONFIG);
  }
  await assert.rejects(SnowFlake.lease({ datacenterId: 1 }), {
    message:
      /must be a URL, or a LeaseStore such as postgres\(pool\); it lacks the functions read, write, now: /,
  });
});

test('an error thrown by a clock is the cause', () => {
  const cause = new Error('no time');
  const broken = make({
    clock() {
      throw cause;
    },
  });
  assert.equal(refuses(() => broken.nextId(), 'ERR_SNOWFLAKE_CLOCK').cause, cause);
});

test('a clock that works again is read again', () => {
  const clock = standing(Number.NaN);
  const repaired = make({ clock });
  refuses(() => repaired.nextId(), 'ERR_SNOWFLAKE_CLOCK');
  clock.now = Date.now();
  assert.equal(repaired.parse(repaired.nextId()).timestamp, clock.now);
});

test('a clock that draws from its own instance fails like any endless recursion', {
  skip: gate,
}, () => {
  const endless = make({ clock: () => Number(endless.nextId()) });
  assert.throws(() => endless.nextId(), { code: 'ERR_SNOWFLAKE_CLOCK' });
  assert.equal(typeof flake.nextId(), 'bigint');
});

test('-0 is 0', () => {
  const layout = { ...layouts.node, timestampBits: 43, clockBackBits: -0 };
  const zero = make({ datacenterId: -0, layout });
  assert.equal(zero.datacenterId, 0);
  assert.equal(zero.layout.clockBackBits, 0);
});

test('an error lists each option once', () => {
  for (const refused of [
    () => new CachedSnowFlake({ workerid: 3 }),
    () => SnowFlakeModule.forRoot({ workerid: 3 }),
  ]) {
    const [, list] = refuses(refused, CONFIG).message.split('It knows ');
    const names = list.split(', ');
    assert.equal(new Set(names).size, names.length, list);
  }
});

test('widths of more than 63 bits in all, and a counter without bits, are refused', () => {
  refuses(() => make({ layout: { ...layouts.node, timestampBits: 42 } }), CONFIG);
  refuses(() => make({ layout: 'twitter', clockBack: 'counter' }), CONFIG);
});

test('the node of an instance cannot be changed', () => {
  for (const name of ['datacenterId', 'workerId', 'layout']) {
    assert.throws(() => {
      flake[name] = 1;
    }, TypeError);
  }
  assert.throws(() => {
    flake.layout.epoch = 0;
  }, TypeError);
});
