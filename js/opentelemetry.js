'use strict';
// The exports of `snowdrift/opentelemetry`: registers the metrics of an instance with an application's OpenTelemetry.

/**
 * @import { BatchObservableResult, Meter, Observable } from '@opentelemetry/api'
 * @import { Flake } from './monitoring/list.js'
 *
 * @typedef {{ getMeter(name: string, version: string): Meter }} MeterProvider
 */

const { argumentError, configError, describe, needsPackage } = require('./messages/errors.js');
const { memberType, optionsOf } = require('./messages/checks.js');
const { NONE } = require('./ids/properties.js');
const { isFlake } = require('./monitoring/health.js');
const { METRICS, valuesOf } = require('./monitoring/list.js');
const { presentDefault } = require('./snowflake.js');
const { version } = require('../package.json');

/** @returns {MeterProvider} */
function globalProvider() {
  try {
    return require('@opentelemetry/api').metrics;
  } catch (cause) {
    throw needsPackage('snowdrift/opentelemetry', '@opentelemetry/api', cause);
  }
}

/** @param {unknown} [options] */
function instrument(options = NONE) {
  const given = optionsOf(options, 'options of instrument()', ['flake', 'meterProvider']);
  const { flake, meterProvider = globalProvider() } =
    /** @type {{ flake?: Flake, meterProvider?: MeterProvider }} */ (given);
  if (flake !== undefined && !isFlake(flake)) {
    throw argumentError(
      `the flake of instrument() must be a SnowFlake or CachedSnowFlake; it is ${describe(flake)}`,
    );
  }
  if (memberType(meterProvider, 'getMeter') !== 'function') {
    throw configError(
      `meterProvider must be a MeterProvider of OpenTelemetry; it is ${describe(meterProvider)}`,
    );
  }
  const meter = meterProvider.getMeter('snowdrift', version);
  /** @type {Observable[]} */
  const observables = METRICS.map(({ name, unit, type, help }) =>
    type === 'counter'
      ? meter.createObservableCounter(name, { unit, description: help })
      : meter.createObservableGauge(name, { unit, description: help }),
  );
  /** @param {BatchObservableResult} result */
  function observe(result) {
    const present = flake ?? presentDefault();
    if (present === undefined) return;
    const { datacenterId, workerId } = present;
    const attributes = {
      'snowdrift.datacenter.id': datacenterId,
      'snowdrift.worker.id': workerId,
    };
    for (const [at, value] of valuesOf(present).entries()) {
      if (value !== undefined) result.observe(observables[at], value, attributes);
    }
  }
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}

/** @satisfies {Record<keyof typeof import('./opentelemetry.js'), unknown>} */
module.exports = { instrument };
