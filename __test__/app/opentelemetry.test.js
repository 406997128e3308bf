'use strict';
// snowdrift/opentelemetry with the real SDK: which metrics it exports.

const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');

const { metrics: api } = require('@opentelemetry/api');
const sdk = require('@opentelemetry/sdk-metrics');

const { CachedSnowFlake, SnowFlake, refuses } = require('../support/support.js');
const { memory } = require('../../js/stores/memory.js');
const { metrics } = require('../../js/monitoring.js');
const { instrument } = require('../../js/opentelemetry.js');

const exporter = new sdk.InMemoryMetricExporter(sdk.AggregationTemporality.CUMULATIVE);
const reader = new sdk.PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
const provider = new sdk.MeterProvider({ readers: [reader] });

before(() => assert.ok(api.setGlobalMeterProvider(provider)));
after(() => provider.shutdown());

/** What is exported now, by name. */
async function exported() {
  exporter.reset();
  await reader.forceFlush();
  const [batch] = exporter.getMetrics();
  const all = (batch?.scopeMetrics ?? []).flatMap(({ metrics: each }) => each);
  const points = all.flatMap(({ descriptor, dataPoints }) =>
    dataPoints.map(({ value, attributes }) => [descriptor.name, { descriptor, value, attributes }]),
  );
  return Object.fromEntries(points);
}

/** How an exporter of OpenTelemetry names a metric in Prometheus. */
const inPrometheus = ({ name, unit, type }) =>
  name.replaceAll('.', '_') +
  (unit === 's' ? '_seconds' : '') +
  (type === sdk.InstrumentType?.OBSERVABLE_COUNTER || type === 'OBSERVABLE_COUNTER'
    ? '_total'
    : '');

test('by default it exports the default instance, which it does not open', async () => {
  const stop = instrument();
  assert.deepEqual(await exported(), {});
  const flake = SnowFlake.use(
    await CachedSnowFlake.lease(memory(), { datacenterId: 5, scope: 'process', boostPower: 1 }),
  );
  SnowFlake.nextIds(3);
  const found = await exported();
  const samples = metrics(flake);
  assert.deepEqual(
    Object.values(found).map(({ descriptor }) => inPrometheus(descriptor)),
    samples.map(({ name }) => name),
  );
  assert.equal(found['snowdrift.ids.issued'].value, 3);
  assert.deepEqual(found['snowdrift.ids.issued'].attributes, {
    'snowdrift.datacenter.id': 5,
    'snowdrift.worker.id': flake.workerId,
  });
  assert.equal(found['snowdrift.lease.held'].value, 1);
  const remaining = found['snowdrift.lease.remaining'].value;
  assert.ok(remaining > 0 && remaining <= 30, remaining);
  for (const { descriptor } of Object.values(found)) {
    assert.match(descriptor.name, /^snowdrift\.[a-z_]+(\.[a-z_]+)?$/);
    assert.match(descriptor.unit, /^(s|\{[a-z]+\})$/);
    assert.notEqual(descriptor.description, '');
  }
  await flake.close();
  const last = await exported();
  const values = ['lease.held', 'lease.remaining', 'ids.issued'].map(
    (name) => last[`snowdrift.${name}`].value,
  );
  assert.deepEqual(values, [0, 0, 3]);
  stop();
});

test('an instance and a MeterProvider can be given, and it can be stopped', async () => {
  const flake = new SnowFlake({ datacenterId: 5, workerId: 9 });
  const stop = instrument({ flake, meterProvider: provider });
  flake.nextId();
  assert.equal((await exported())['snowdrift.ids.issued'].value, 1);
  stop();
  flake.nextId();
  // The SDK exports the last values again.
  assert.equal((await exported())['snowdrift.ids.issued'].value, 1);
  await flake.close();
});

test('what is no instance and no MeterProvider is refused', () => {
  refuses(() => instrument({ flake: {} }), 'ERR_SNOWFLAKE_ARGUMENT');
  for (const options of [
    { flake: undefined },
    { meterProvider: {} },
    { meterProvider: 5 },
    { meter: provider },
    5,
  ]) {
    refuses(() => instrument(options), 'ERR_SNOWFLAKE_CONFIG');
  }
});
