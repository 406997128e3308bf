'use strict';
// snowdrift/nestjs: what a module gives, and that it is closed.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

require('reflect-metadata');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');

const { storm } = require('../support/amount.js');
const { CachedSnowFlake, SnowFlake, refuses, rejects } = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { Server, missing } = require('../support/lease/servers.js');
const { memory } = require('../../js/stores/memory.js');
const { SnowFlakeModule } = require('../../js/nestjs.js');

/** An application of that module alone, and one that uses it without importing it. */
async function start(imported, Class = SnowFlake) {
  class Service {
    constructor(ids) {
      this.ids = ids;
    }
  }
  Reflect.defineMetadata('design:paramtypes', [Class], Service);
  class Feature {}
  Module({ providers: [Service], exports: [Service] })(Feature);
  class App {}
  Module({ imports: [imported, Feature] })(App);
  const app = await NestFactory.createApplicationContext(App, {
    logger: false,
    abortOnError: false,
  });
  return { app, ids: app.get(Service, { strict: false }).ids };
}

test('forRoot() provides one generator everywhere, by its options, and closes it', async () => {
  const { app, ids } = await start(SnowFlakeModule.forRoot({ datacenterId: 7, workerId: 9 }));
  assert.ok(ids instanceof SnowFlake);
  const { datacenterId, workerId } = ids.parse(ids.nextId());
  assert.deepEqual([datacenterId, workerId], [7, 9]);
  assert.equal(app.get(SnowFlake), ids);
  await app.close();
  refuses(ids.nextId, 'ERR_SNOWFLAKE_CLOSED');
});

test('with cached: true it is a CachedSnowFlake', async () => {
  const options = { cached: true, datacenterId: 7, workerId: 10, boostPower: 1 };
  const { app, ids } = await start(SnowFlakeModule.forRoot(options), CachedSnowFlake);
  assert.equal(ids.stats().ring.size, 8192);
  await app.close();
  assert.ok(ids.isClosed);
});

test('forRootAsync() waits for a lease, and has released it when close() has settled', async () => {
  const store = memory();
  const layout = { workerBits: 0, timestampBits: 41, datacenterBits: 3, clockBackBits: 2 };
  const options = {
    from: store,
    datacenterId: 1,
    layout: { ...layout, sequenceBits: 12, tickMs: 1, epoch: 0 },
  };
  for (let n = 0; n < 2; n++) {
    const { app, ids } = await start(
      SnowFlakeModule.forRootAsync({ useFactory: async () => options }),
    );
    assert.equal(ids.lease.state, 'held');
    await app.close();
    assert.equal(ids.lease.state, 'released', 'the one slot is free for the next');
  }
});

test('static calls draw from its instance until the application is closed', async () => {
  const { nextId } = SnowFlake;
  for (const [cached, Class] of [
    [false, SnowFlake],
    [true, CachedSnowFlake],
  ]) {
    const { app, ids } = await start(
      SnowFlakeModule.forRoot({ cached, datacenterId: 7, workerId: 11 }),
      Class,
    );
    assert.equal(SnowFlake.default, ids);
    assert.equal(ids.parse(nextId()).workerId, 11);
    await app.close();
    const { message } = refuses(nextId, 'ERR_SNOWFLAKE_CLOSED');
    assert.match(message, /default instance is closed/);
  }
});

test('a second default instance stops the application, and releases its lease', async () => {
  const { app, ids } = await start(SnowFlakeModule.forRoot({ datacenterId: 7, workerId: 12 }));
  const store = faulty();
  const second = SnowFlakeModule.forRoot({ from: store, datacenterId: 7 });
  const { message } = await rejects(start(second), 'ERR_SNOWFLAKE_CONFLICT');
  assert.match(message, /default instance already.*isDefault: false/);
  assert.equal(store.count('release'), 1);
  assert.equal(SnowFlake.default, ids);
  await app.close();
});

test('with isDefault: false it leaves the default instance alone', async () => {
  const { app, ids } = await start(SnowFlakeModule.forRoot({ datacenterId: 7, workerId: 13 }));
  for (const make of [
    (options) => SnowFlakeModule.forRoot({ ...options, isDefault: false }),
    (options) => SnowFlakeModule.forRootAsync({ useFactory: () => options, isDefault: false }),
  ]) {
    const other = await start(make({ datacenterId: 7, workerId: 14 }));
    assert.equal(other.ids.parse(other.ids.nextId()).workerId, 14);
    assert.equal(SnowFlake.default, ids);
    await other.app.close();
    assert.equal(ids.parse(SnowFlake.nextId()).workerId, 13);
  }
  await app.close();
});

describe('a start that fails', () => {
  const options = { datacenterId: 7, workerId: 15 };

  /** Starts an application of that module, whose other provider fails there. */
  function startFailing(imported, at) {
    const fail = () => Promise.reject(new Error('the other provider'));
    const failing =
      at === 'useFactory'
        ? { provide: 'other', inject: [SnowFlake], useFactory: fail }
        : { provide: 'other', useValue: { [at]: fail } };
    class App {}
    Module({ imports: [imported], providers: [failing] })(App);
    return NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  }

  for (const at of ['useFactory', 'onModuleInit']) {
    test(`at ${at} leaves room for the next one, which closes its instance`, async () => {
      for (let n = 0; n < 2; n++) {
        const store = memory();
        await assert.rejects(
          startFailing(SnowFlakeModule.forRoot({ from: store, datacenterId: 7 }), at),
          /the other provider/,
        );
        const left = SnowFlake.default;
        assert.equal(left.lease.state, 'held');
        const { app, ids } = await start(SnowFlakeModule.forRoot(options));
        assert.equal(left.lease.state, 'released');
        assert.equal(SnowFlake.default, ids);
        assert.equal(ids.parse(SnowFlake.nextId()).workerId, 15);
        // One that has finished is not closed.
        await rejects(start(SnowFlakeModule.forRoot(options)), 'ERR_SNOWFLAKE_CONFLICT');
        assert.equal(ids.isClosed, false);
        await app.close();
        await app.close();
        assert.ok(ids.isClosed);
      }
    });
  }

  test('in its own factory opens nothing', async () => {
    const failing = SnowFlakeModule.forRootAsync({
      useFactory: () => Promise.reject(new Error('no options')),
    });
    await assert.rejects(start(failing), /no options/);
    const { app } = await start(SnowFlakeModule.forRoot(options));
    await app.close();
  });

  test('of two modules of one application the second one is refused, and the next start is not', async () => {
    class App {}
    const imports = [8, 9].map((workerId) => SnowFlakeModule.forRoot({ ...options, workerId }));
    Module({ imports })(App);
    const quiet = { logger: false, abortOnError: false };
    const { message } = await rejects(
      NestFactory.createApplicationContext(App, quiet),
      'ERR_SNOWFLAKE_CONFLICT',
    );
    assert.match(message, /isDefault: false/);
    const { app, ids } = await start(SnowFlakeModule.forRoot(options));
    assert.equal(ids.workerId, 15);
    await app.close();
  });

  test('a start that another one overtook is refused at its end', async () => {
    let first;
    let proceed;
    const waiting = new Promise((resolve) => {
      proceed = resolve;
    });
    const isOpen = new Promise((resolve) => {
      const useFactory = () => resolve() ?? waiting;
      class App {}
      Module({
        imports: [SnowFlakeModule.forRoot({ ...options, workerId: 14 })],
        providers: [{ provide: 'slow', inject: [SnowFlake], useFactory }],
      })(App);
      const quiet = { logger: false, abortOnError: false };
      first = NestFactory.createApplicationContext(App, quiet);
    });
    await isOpen;
    const { app, ids } = await start(SnowFlakeModule.forRoot(options));
    proceed();
    const { message } = await rejects(first, 'ERR_SNOWFLAKE_CONFLICT');
    assert.match(message, /began before this one had finished/);
    assert.equal(ids.parse(SnowFlake.nextId()).workerId, 15);
    await app.close();
  });
});

describe('where the environment names a server', { skip: storm ?? missing('postgres') }, () => {
  let server;
  before(async () => {
    server = await Server.start('postgres');
    process.env.datacenterId = '7';
    process.env.SNOWDRIFT_LEASE = server.url;
  });
  after(async () => {
    delete process.env.datacenterId;
    delete process.env.SNOWDRIFT_LEASE;
    await server.stop();
  });

  test('forRoot() takes a lease of it, with and without being the default', async () => {
    for (const options of [undefined, { isDefault: false, ttl: 20_000 }]) {
      const { app, ids } = await start(SnowFlakeModule.forRoot(options));
      assert.equal(ids.lease.state, 'held');
      assert.equal(ids.parse(ids.nextId()).datacenterId, 7);
      assert.equal(SnowFlake.default === ids, options === undefined);
      await app.close();
      assert.equal(ids.lease.state, 'released');
    }
  });

  test('a workerId beside it is a claim', async () => {
    const { app, ids } = await start(SnowFlakeModule.forRoot({ workerId: 3 }));
    assert.deepEqual(ids.lease.slot, { datacenterId: 7, workerId: 3 });
    await app.close();
    process.env.workerId = '4';
    const other = await start(SnowFlakeModule.forRoot());
    delete process.env.workerId;
    assert.equal(other.ids.workerId, 4);
    await other.app.close();
  });
});

test('listed after the module of a connection, it releases its lease before that is closed', async () => {
  // As TypeOrmModule of @nestjs/typeorm, whose DataSource is a global module's.
  let isOpen = true;
  const writes = [];
  const store = memory();
  class Connection {}
  class Closing {
    onApplicationShutdown() {
      isOpen = false;
    }
  }
  const connections = {
    ...{ module: class {}, global: true, exports: [Connection] },
    providers: [
      { provide: Connection, useValue: store },
      { provide: Closing, useValue: new Closing() },
    ],
  };
  const leasing = SnowFlakeModule.forRootAsync({
    isDefault: false,
    inject: [Connection],
    useFactory: (connection) => ({
      datacenterId: 1,
      from: {
        ...connection,
        write(...args) {
          writes.push(isOpen);
          return connection.write(...args);
        },
      },
    }),
  });
  class App {}
  Module({ imports: [{ module: class {}, imports: [connections] }, leasing] })(App);
  const app = await NestFactory.createApplicationContext(App, {
    ...{ logger: false, abortOnError: false },
  });
  const before = writes.length;
  await app.close();
  assert.ok(!isOpen && writes.length > before);
  assert.deepEqual(new Set(writes), new Set([true]));
});

test('a mock in its place, as of overrideProvider(), stops no shutdown', async () => {
  let closed = 0;
  const closing = { close: async () => closed++ };
  for (const mock of [{ nextId: () => 1n }, { close: 'no function' }, null, undefined, closing]) {
    for (const [cached, Class] of [
      [false, SnowFlake],
      [true, CachedSnowFlake],
    ]) {
      const { providers, ...rest } = SnowFlakeModule.forRoot({ cached, workerId: 5 });
      const overridden = providers.map((one) =>
        one.provide === Class ? { provide: Class, useValue: mock } : one,
      );
      const { app, ids } = await start({ ...rest, providers: overridden }, Class);
      assert.equal(ids, mock);
      await app.close();
    }
  }
  assert.equal(closed, 2);
});

test('wrong options stop the application with an error', async () => {
  refuses(() => SnowFlakeModule.forRoot({ cached: 'yes' }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => SnowFlakeModule.forRoot({ isDefault: 1 }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => SnowFlakeModule.forRootAsync({}), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => SnowFlakeModule.forRootAsync(), 'ERR_SNOWFLAKE_CONFIG');
  const misspelt = refuses(
    () => SnowFlakeModule.forRoot({ isglobal: false }),
    'ERR_SNOWFLAKE_CONFIG',
  );
  assert.match(
    misspelt.message,
    /^options of forRoot\(\) has no 'isglobal'\. Did you mean isGlobal\?/,
  );
  await rejects(start(SnowFlakeModule.forRoot({ datacenterId: 99 })), 'ERR_SNOWFLAKE_CONFIG');
  const failing = SnowFlakeModule.forRootAsync({
    useFactory: () => ({ from: 'gopher://x', datacenterId: 1 }),
  });
  await rejects(start(failing), 'ERR_SNOWFLAKE_CONFIG');
});
