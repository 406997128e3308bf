'use strict';
// snowdrift/monitoring: whether an instance is healthy, and its metrics.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');

const { CachedSnowFlake, SnowFlake, refuses, runScript } = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { health, metrics, prometheus } = require('../../js/monitoring.js');

const node = { datacenterId: 6, workerId: 1 };

/** Resolves at the next event of a lease. */
const heard = (event) =>
  new Promise((resolve) => {
    const name = `snowdrift:lease-${event}`;
    const listener = (info) => {
      unsubscribe(name, listener);
      resolve(info);
    };
    subscribe(name, listener);
  });

/** By name: the values that an instance has. */
const valuesOf = (flake) =>
  Object.fromEntries(
    metrics(flake)
      .filter(({ value }) => value !== undefined)
      .map(({ name, value }) => [name.replace('snowdrift_', ''), value]),
  );

test('an instance without a lease is up until it is closed', async () => {
  const flake = new SnowFlake(node);
  assert.deepEqual(health(flake), { status: 'up', ...node });
  await flake.close();
  assert.deepEqual(health(flake), { status: 'down', reason: 'the instance is closed', ...node });
});

test('a lease is up while renewals fail, and down with the reason when IDs have stopped', async () => {
  const store = faulty();
  const alive = setInterval(() => {}, 1000);
  const flake = await SnowFlake.lease(store, { datacenterId: 6, ttl: 1500, scope: 'process' });
  const held = health(flake);
  assert.deepEqual([held.status, held.lease.state], ['up', 'held']);
  assert.ok(held.lease.remainingMs > 0 && held.lease.remainingMs <= 1500);
  assert.equal(valuesOf(flake).lease_held, 1);

  const failing = heard('failing');
  store.fault = ({ name }) => {
    if (name === 'write') throw new Error('the store at db.internal is away');
  };
  await failing;
  const { status, lease } = health(flake);
  // On a busy machine the ceiling may have passed.
  if (lease.state === 'failing') {
    assert.equal(status, 'up');
    assert.equal(valuesOf(flake).lease_held, 0);
    assert.ok(valuesOf(flake).lease_remaining_seconds > 0);
  }
  while (flake.lease.state === 'failing') await new Promise((resolve) => setTimeout(resolve, 20));
  const expired = health(flake);
  const { workerId } = flake;
  assert.deepEqual(expired, {
    ...{ status: 'down', reason: 'the lease was not renewed before its ceiling' },
    ...{ datacenterId: 6, workerId, lease: { state: 'expired', remainingMs: 0 } },
  });
  assert.equal(valuesOf(flake).lease_remaining_seconds, 0);
  store.fault = undefined;
  await flake.close();
  clearInterval(alive);
  assert.equal(health(flake).status, 'down');
});

test('the default instance is asked; health() opens it by the environment, metrics do not', async () => {
  const script = `
    const { SnowFlake } = require(${JSON.stringify(require.resolve('../../js/index.js'))});
    const { health, metrics, prometheus } = require(${JSON.stringify(require.resolve('../../js/monitoring.js'))});
    const has = () => metrics().some(({ value }) => value !== undefined);
    const seen = [health().reason, has(), prometheus()];
    process.env.datacenterId = '6';
    process.env.workerId = '2';
    seen.push(has(), health().status, has(), prometheus() !== '');
    SnowFlake.default.close().then(() => {
      seen.push(health().status, has(), prometheus() !== '');
      console.log(JSON.stringify(seen));
    });`;
  const { stdout, stderr } = await runScript(script, { env: { datacenterId: '', workerId: '' } });
  assert.equal(stderr, '');
  const none = 'there is no default instance: ERR_SNOWFLAKE_CONFIG';
  assert.deepEqual(JSON.parse(stdout), [
    ...[none, false, ''],
    ...[false, 'up', true, true],
    ...['down', true, true],
  ]);
});

test('metrics are one list, whose values are those of stats() and the lease', async () => {
  const plain = new SnowFlake({ datacenterId: 6, workerId: 3 });
  const cached = new CachedSnowFlake({ datacenterId: 6, workerId: 4, boostPower: 1 });
  plain.nextIds(5);
  cached.nextIds(7);
  const names = metrics().map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const flake of [undefined, plain, cached]) {
    assert.deepEqual(
      metrics(flake).map(({ name, type, help }) => [name, type, typeof help]),
      metrics().map(({ name, type }) => [name, type, 'string']),
    );
  }
  const ofPlain = valuesOf(plain);
  assert.equal(ofPlain.ids_issued_total, 5);
  assert.equal(ofPlain.overflow_seconds, Number(plain.stats().endOfTime) / 1000);
  assert.ok(!Object.keys(ofPlain).some((name) => /^(lease|ring)/.test(name)));
  const { ring } = cached.stats();
  const ofCached = valuesOf(cached);
  assert.deepEqual([ofCached.ids_issued_total, ofCached.ring_limit], [7, ring.size]);
  assert.ok(ofCached.ring_usage <= ring.size);
  const { labels } = metrics(cached)[0];
  assert.deepEqual(labels, { datacenter: '6', worker: '4' });
  await plain.close();
  await cached.close();
});

test('Prometheus’s text has each metric that has a value, once', async () => {
  const flake = new CachedSnowFlake({ datacenterId: 6, workerId: 5, boostPower: 1 });
  const text = prometheus(flake);
  assert.match(text, /^(# HELP \w+ .+\n# TYPE \w+ (counter|gauge)\n\w+\{[^}]*\} [\d.e+]+\n)+$/);
  const names = Array.from(text.matchAll(/^# TYPE (\w+)/gm), ([, name]) => name);
  assert.deepEqual(
    names,
    metrics(flake)
      .filter(({ value }) => value !== undefined)
      .map(({ name }) => name),
  );
  await flake.close();
});

test('what is no instance is refused', () => {
  for (const ask of [health, metrics, prometheus]) {
    for (const value of [null, 5, 'x', {}, Promise.resolve()]) {
      refuses(() => ask(value), 'ERR_SNOWFLAKE_ARGUMENT');
    }
  }
});
