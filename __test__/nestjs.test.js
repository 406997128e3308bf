'use strict';
// snowdrift/nestjs: what a module gives, and that it is closed.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('reflect-metadata');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');

const { CachedSnowFlake, SnowFlake, refuses, rejects } = require('./support.js');
const { memory } = require('../js/lease/memory.js');
const { SnowFlakeModule } = require('../js/nestjs.js');

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

test('forRootAsync() waits for a lease, and has given it up when close() has ended', async () => {
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

test('what is wrong stops the application, and says so', async () => {
  refuses(() => SnowFlakeModule.forRoot({ cached: 'yes' }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => SnowFlakeModule.forRootAsync({}), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => SnowFlakeModule.forRootAsync(), 'ERR_SNOWFLAKE_CONFIG');
  await rejects(start(SnowFlakeModule.forRoot({ datacenterId: 99 })), 'ERR_SNOWFLAKE_CONFIG');
  const failing = SnowFlakeModule.forRootAsync({
    useFactory: () => ({ from: 'gopher://x', datacenterId: 1 }),
  });
  await rejects(start(failing), 'ERR_SNOWFLAKE_CONFIG');
});
