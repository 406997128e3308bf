'use strict';
// The health indicator of snowdrift/nestjs, with the @nestjs/terminus that is installed: nestjs-oldest and nestjs-newest have one.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('reflect-metadata');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');

const { SnowFlake, refuses, rejects } = require('../support/support.js');
const { memory } = require('../../js/stores/memory.js');
const { SnowFlakeHealthIndicator, SnowFlakeModule } = require('../../js/nestjs.js');

function installed() {
  try {
    return require('@nestjs/terminus');
  } catch {
    return undefined;
  }
}

const terminus = installed();

/** An application with a lease. `check(...)` is what its health check answers for an indicator's call. */
async function start() {
  const { HealthCheckService, TerminusModule } = terminus;
  class App {}
  const from = memory();
  Module({
    imports: [
      TerminusModule.forRoot({ logger: false }),
      SnowFlakeModule.forRoot({ from, datacenterId: 4, scope: 'process' }),
    ],
    providers: [SnowFlakeHealthIndicator],
  })(App);
  const app = await NestFactory.createApplicationContext(App, {
    logger: false,
    abortOnError: false,
  });
  const service = await app.resolve(HealthCheckService, undefined, { strict: false });
  const indicator = app.get(SnowFlakeHealthIndicator);
  const check = async (...args) => {
    try {
      return await service.check([() => indicator.isHealthy(...args)]);
    } catch (failure) {
      assert.equal(failure.getStatus?.(), 503, failure);
      return failure.getResponse();
    }
  };
  return { app, check, ids: app.get(SnowFlake) };
}

if (terminus === undefined) {
  test('without @nestjs/terminus an error says what to install', () => {
    const { message } = refuses(() => new SnowFlakeHealthIndicator(), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /SnowFlakeHealthIndicator needs .*npm install @nestjs\/terminus/);
  });
} else {
  test('a check is up with a lease that is held, and down with the reason afterwards', async () => {
    const { app, check, ids } = await start();
    const { status, info } = await check();
    assert.equal(status, 'ok');
    const { remainingMs } = info.snowdrift.lease;
    assert.ok(remainingMs > 0 && remainingMs <= 30_000);
    const { workerId } = ids;
    assert.deepEqual(info, {
      snowdrift: {
        ...{ status: 'up', datacenterId: 4, workerId },
        lease: { state: 'held', remainingMs },
      },
    });
    await ids.close();
    const { status: after, error, details } = await check('ids');
    assert.equal(after, 'error');
    assert.deepEqual(error.ids, {
      ...{ status: 'down', reason: 'the instance is closed', datacenterId: 4, workerId },
      lease: { state: 'released', remainingMs: 0 },
    });
    assert.deepEqual(details, error);
    await app.close();
  });

  test('another instance can be asked', async () => {
    const { app, check } = await start();
    const other = new SnowFlake({ datacenterId: 4, workerId: 2 });
    assert.equal((await check('other', other)).info.other.workerId, 2);
    await other.close();
    assert.equal((await check('other', other)).error.other.status, 'down');
    assert.equal((await check()).status, 'ok');
    await app.close();
  });

  test('a wrong key or instance is an error of the caller, and not a health', async () => {
    const indicator = new SnowFlakeHealthIndicator();
    for (const args of [[''], [5], ['ids', {}]]) {
      await rejects(indicator.isHealthy(...args), 'ERR_SNOWFLAKE_ARGUMENT');
    }
  });
}
