'use strict';
// The metrics of an instance: one list, for OpenTelemetry, for Prometheus's text and for its clients. Names and units are those
// of OpenTelemetry, whose rules give the names in Prometheus.

/**
 * @import { CachedStats } from '../../index.js'
 * @import { Metric as Sample } from '../monitoring.js'
 * @import { LeaseInfo } from '../types.js'
 *
 * @typedef {CachedStats['ring']} Ring
 * @typedef {Omit<CachedStats, 'ring'> & { ring?: Ring }} AnyStats
 *
 * What is read of an instance.
 * @typedef {{
 *   isClosed: boolean,
 *   lease: LeaseInfo | null,
 *   datacenterId: number,
 *   workerId: number,
 *   stats(): AnyStats,
 * }} Flake
 *
 * Its figures. `remainingMs` is undefined without a lease.
 * @typedef {AnyStats & { lease: LeaseInfo | null, remainingMs: number | undefined }} Figures
 *
 * A metric. `read` returns its value, or undefined for an instance that has none.
 * @typedef {object} Metric
 * @property {string} name
 * @property {string} unit of UCUM; in braces for what is counted
 * @property {'counter' | 'gauge'} type
 * @property {string} help
 * @property {(figures: Figures) => number | undefined} read
 */

const { healthOf } = require('./health.js');

/** @type {(pick: (lease: LeaseInfo) => number) => Metric['read']} */
const ofLease =
  (pick) =>
  ({ lease }) =>
    lease === null ? undefined : pick(lease);

/** @type {(pick: (ring: Ring) => number) => Metric['read']} */
const ofRing =
  (pick) =>
  ({ ring }) =>
    ring === undefined ? undefined : pick(ring);

/** @type {Metric[]} */
const METRICS = [
  {
    ...{ name: 'snowdrift.ids.issued', unit: '{id}', type: 'counter', help: 'IDs issued.' },
    read: ({ issued }) => issued,
  },
  {
    ...{ name: 'snowdrift.waits', unit: '{wait}', type: 'counter' },
    help: 'Waits for the clock or the store.',
    read: ({ waits }) => waits,
  },
  {
    ...{ name: 'snowdrift.wait.time', unit: 's', type: 'counter' },
    help: 'Time spent in these waits.',
    read: ({ waitedMs }) => waitedMs / 1000,
  },
  {
    ...{ name: 'snowdrift.clock.rollbacks', unit: '{rollback}', type: 'counter' },
    help: 'Clock rollbacks.',
    read: ({ clockRollbacks }) => clockRollbacks,
  },
  {
    ...{ name: 'snowdrift.overflow', unit: 's', type: 'gauge' },
    help: 'Unix time at which the timestamp overflows.',
    read: ({ endOfTime }) => Number(endOfTime) / 1000,
  },
  {
    ...{ name: 'snowdrift.lease.held', unit: '{lease}', type: 'gauge' },
    help: '1 while the slot is held and renewed in time.',
    read: ofLease(({ state }) => Number(state === 'held')),
  },
  {
    ...{ name: 'snowdrift.lease.remaining', unit: 's', type: 'gauge' },
    help: 'Time until IDs stop unless the slot is renewed; 0 if they have stopped.',
    read: ({ remainingMs }) => (remainingMs === undefined ? undefined : remainingMs / 1000),
  },
  {
    ...{ name: 'snowdrift.lease.ceiling', unit: 's', type: 'gauge' },
    help: 'Unix time of the last ID that may be issued.',
    read: ofLease(({ ceiling }) => ceiling / 1000),
  },
  {
    ...{ name: 'snowdrift.lease.renewals', unit: '{renewal}', type: 'counter' },
    help: 'Renewals of the slot.',
    read: ofLease(({ renewals }) => renewals),
  },
  {
    ...{ name: 'snowdrift.ring.limit', unit: '{id}', type: 'gauge' },
    help: 'IDs that the ring has room for.',
    read: ofRing(({ size }) => size),
  },
  {
    ...{ name: 'snowdrift.ring.usage', unit: '{id}', type: 'gauge' },
    help: 'IDs that the ring holds.',
    read: ofRing(({ left }) => left),
  },
  {
    ...{ name: 'snowdrift.ring.dropped', unit: '{id}', type: 'counter' },
    help: 'IDs of the ring that were dropped: too old, or later than the clock.',
    read: ofRing(({ dropped }) => dropped),
  },
  {
    ...{ name: 'snowdrift.ring.rejected_takes', unit: '{call}', type: 'counter' },
    help: 'Calls that found the ring empty.',
    read: ofRing(({ rejectedTakes }) => rejectedTakes),
  },
];

/**
 * The values of an instance, in the order of METRICS; undefined for those that it has not.
 * @param {Flake} flake
 */
function valuesOf(flake) {
  const { lease } = flake;
  const figures = { ...flake.stats(), lease, remainingMs: healthOf(flake).lease?.remainingMs };
  return METRICS.map(({ read }) => {
    const value = read(figures);
    return Number.isFinite(value) ? value : undefined;
  });
}

/**
 * A metric's name in Prometheus, as exporters of OpenTelemetry make it.
 * @param {Metric} metric
 */
function prometheusName({ name, unit, type }) {
  const ending = (unit === 's' ? '_seconds' : '') + (type === 'counter' ? '_total' : '');
  return name.replaceAll('.', '_') + ending;
}

/**
 * The metrics by their names in Prometheus, each with its value: none without an instance.
 * @param {Flake | undefined} flake
 * @returns {Sample[]}
 */
function samplesOf(flake) {
  const values = flake === undefined ? [] : valuesOf(flake);
  const labels = { datacenter: String(flake?.datacenterId), worker: String(flake?.workerId) };
  return METRICS.map((metric, at) => {
    const { type, help } = metric;
    const sample = { name: prometheusName(metric), type, help };
    return values[at] === undefined ? sample : { ...sample, labels, value: values[at] };
  });
}

/**
 * Prometheus's text of an instance.
 * @param {Flake | undefined} flake
 */
function textOf(flake) {
  const lines = samplesOf(flake).flatMap(({ name, type, help, labels, value }) => {
    if (labels === undefined || value === undefined) return [];
    const of = `datacenter="${labels.datacenter}",worker="${labels.worker}"`;
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}{${of}} ${value}\n`;
  });
  return lines.join('');
}

module.exports = { METRICS, samplesOf, textOf, valuesOf };
