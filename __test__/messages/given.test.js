'use strict';
// An option that decides which IDs there are, or what protects them, and whose value is missing: it is refused, since
// leaving it out means something weaker.

const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');

const { CachedSnowFlake, SnowFlake, layouts, refuses, rejects } = require('../support/support.js');
const { compose } = require('../../js/id.js');
const { SnowFlakeModule } = require('../../js/nestjs.js');
const { withSnowFlake } = require('../../js/orm/prisma.js');
const { PrimarySnowFlakeColumn } = require('../../js/orm/typeorm.js');
const { etcd } = require('../../js/stores/etcd.js');
const { kubernetes } = require('../../js/stores/kubernetes.js');
const { memory } = require('../../js/stores/memory.js');
const { postgres } = require('../../js/stores/postgres.js');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const node = { datacenterId: 1, workerId: 1 };
const VARIABLES = ['SNOWDRIFT_LEASE', 'SNOWDRIFT_STATE', 'SNOWDRIFT_SHARED'];
const { SNOWDRIFT_SHARED } = process.env;

afterEach(() => {
  for (const name of VARIABLES) delete process.env[name];
  process.env.SNOWDRIFT_SHARED = SNOWDRIFT_SHARED;
});

const OF_GENERATORS = ['lease', 'state', 'layout', 'epoch', 'scope'];
const OF_ALL = ['layout', 'epoch', 'scope'];
const OF_ACCESS = ['namespace', 'user', 'password', 'tls'];

/** By what is called: the options whose values it needs where they are given, and the call with options. */
const CALLS = {
  'new SnowFlake': [OF_GENERATORS, (options) => new SnowFlake({ ...node, ...options })],
  'SnowFlake.configure': [OF_GENERATORS, (options) => SnowFlake.configure({ ...node, ...options })],
  'new CachedSnowFlake': [OF_GENERATORS, (options) => new CachedSnowFlake({ ...node, ...options })],
  'SnowFlake.lease': [OF_ALL, (options) => SnowFlake.lease(memory(), options)],
  'SnowFlake.lease of a directory': [OF_ALL, (options) => SnowFlake.lease('file:///ids', options)],
  'CachedSnowFlake.lease': [OF_ALL, (options) => CachedSnowFlake.lease(memory(), options)],
  'SnowFlakeModule.forRoot': [
    ['from', ...OF_GENERATORS],
    (options) => SnowFlakeModule.forRoot({ ...node, ...options }),
  ],
  'the result of useFactory()': [
    ['from', ...OF_GENERATORS],
    (options) => {
      const useFactory = async () => ({ ...node, ...options });
      return SnowFlakeModule.forRootAsync({ useFactory }).providers[0].useFactory();
    },
  ],
  withSnowFlake: [['flake'], withSnowFlake],
  PrimarySnowFlakeColumn: [['nextIdString'], PrimarySnowFlakeColumn],
  'PrimarySnowFlakeColumn.forSchema': [['nextIdString'], PrimarySnowFlakeColumn.forSchema],
  postgres: [
    ['namespace', 'schema'],
    (options) => postgres({ connect() {}, totalCount: 0 }, options),
  ],
  etcd: [OF_ACCESS, (options) => etcd('https://localhost:2379', options)],
  kubernetes: [['namespace', 'server', 'token', 'ca', 'kubernetesNamespace'], kubernetes],
};

for (const [name, [options, call]] of Object.entries(CALLS)) {
  test(`${name}: ${options.join(', ')}`, async () => {
    for (const option of options) {
      for (const [value, shown] of [
        [undefined, 'undefined'],
        [null, 'null'],
        ['', "''"],
      ]) {
        const { message } = await rejects((async () => call({ [option]: value }))(), CONFIG);
        const start = `${option} is ${shown}: check that the variable it comes from is set, or leave ${option} out`;
        assert.equal(message, start);
      }
    }
  });
}

test('an inherited getter is an option that is given, and so is one of a proxy', () => {
  class Options {
    datacenterId = 1;
    workerId = 1;
    get lease() {
      return undefined;
    }
  }
  assert.match(refuses(() => new SnowFlake(new Options()), CONFIG).message, /^lease is undefined/);
  const values = { datacenterId: 1, lease: 'gopher://x' };
  const proxy = new Proxy({}, { get: (_, name) => values[name], has: () => false });
  assert.match(
    refuses(() => new SnowFlake(proxy), CONFIG).message,
    /^lease must be a URL such as /,
  );
});

test('an inherited name that is no option is refused as an own one is', () => {
  class Base {
    get wokerId() {
      return 3;
    }
  }
  class Options extends Base {
    datacenterId = 1;
    toString() {
      return 'a method is no option';
    }
  }
  /** Of a class that was compiled to a function. */
  function Old() {}
  Old.prototype.validate = () => {};
  for (const [name, options] of Object.entries({
    wokerId: new Options(),
    workerID: Object.create({ datacenterId: 1, workerID: 3 }),
    leese: Object.create(Object.assign(Object.create(null), { leese: 'file:///ids' })),
    stat: Object.setPrototypeOf({ ...node }, { stat: '/ids' }),
  })) {
    const { message } = refuses(() => new SnowFlake(options), CONFIG);
    assert.match(message, new RegExp(`^options has no '${name}'`));
  }
  assert.equal(new SnowFlake(Object.create(node)).workerId, 1);
  assert.equal(new SnowFlake(Object.assign(new Old(), node)).workerId, 1);
  const fields = Object.create({ sequenze: 1 });
  assert.match(
    refuses(() => compose(fields), 'ERR_SNOWFLAKE_ARGUMENT').message,
    /^fields has no 'sequenze'/,
  );
});

test('prototypes without an end are refused', () => {
  const endless = () => new Proxy({}, { getPrototypeOf: endless });
  assert.match(
    refuses(() => new SnowFlake(endless()), CONFIG).message,
    /^options cannot be read: RangeError/,
  );
});

test('an option of a polluted Object.prototype is not given, and hides none that is inherited from another object', () => {
  Object.assign(Object.prototype, { workerId: 7, lease: undefined });
  try {
    const flake = new SnowFlake(Object.create(node));
    assert.deepEqual([flake.workerId, flake.lease], [1, null]);
  } finally {
    for (const name of ['workerId', 'lease']) delete Object.prototype[name];
  }
});

test('undefined means the environment for a node, and the default for all that weakens nothing', () => {
  process.env.datacenterId = '2';
  process.env.workerId = '3';
  try {
    const flake = new SnowFlake({ datacenterId: undefined, workerId: undefined });
    assert.deepEqual([flake.datacenterId, flake.workerId], [2, 3]);
  } finally {
    delete process.env.datacenterId;
    delete process.env.workerId;
  }
  const others = [
    'clockBack',
    'maxWait',
    'maxAhead',
    'sequenceStart',
    'clock',
    'ttl',
    'waitForSlot',
  ];
  const options = Object.fromEntries(others.map((name) => [name, undefined]));
  assert.equal(new SnowFlake({ ...node, ...options }).layout, layouts.node);
  const ring = { boostPower: undefined, maxAge: undefined, onRejectedTake: undefined };
  assert.equal(new CachedSnowFlake({ ...node, ...ring }).workerId, 1);
});

test('SnowFlake.lease() without a store takes that of the environment, and refuses an empty one', async () => {
  const options = { datacenterId: 1 };
  for (const Class of [SnowFlake, CachedSnowFlake]) {
    for (const store of [null, '']) {
      const { message } = await rejects(Class.lease(store, options), CONFIG);
      assert.match(message, /^the store of lease\(\) is (null|''): check that the var/);
    }
    const { message } = await rejects(Class.lease(undefined, options), CONFIG);
    assert.match(message, /needs a store.*SNOWDRIFT_LEASE$/);
  }
});

test('an empty variable of the environment is refused, and one that was set to undefined or null', async () => {
  for (const name of VARIABLES) {
    for (const [value, shown] of [
      ['', 'empty'],
      [undefined, "'undefined'"],
      [null, "'null'"],
    ]) {
      // Node turns undefined and null into texts, which would name a directory.
      process.env[name] = value;
      const { message } = refuses(() => new SnowFlake(node), CONFIG);
      assert.equal(
        message,
        `the environment variable ${name} is ${shown}: give it a value, or unset it`,
      );
      delete process.env[name];
    }
  }
  process.env.SNOWDRIFT_LEASE = '';
  await rejects(SnowFlake.lease(undefined, { datacenterId: 1 }), CONFIG);
  await rejects(SnowFlake.ready(), CONFIG);
});

test('a factory of NestJS that returns nothing is refused', async () => {
  for (const nothing of [undefined, null]) {
    const { providers } = SnowFlakeModule.forRootAsync({ useFactory: () => nothing });
    const { message } = await rejects(providers[0].useFactory(), CONFIG);
    assert.match(
      message,
      /^the result of useFactory\(\) must be an object; it is (undefined|null)/,
    );
  }
  const beside = { from: 'postgres://db/app', useFactory: () => ({}) };
  assert.match(refuses(() => SnowFlakeModule.forRootAsync(beside), CONFIG).message, /no 'from'/);
});
