'use strict';
// Common parts of the commands that read or change the record of a namespace.

const { SnowFlakeError, configError, unwrap } = require('../errors.js');
const { LIMIT_RANGES, readLeaseOptions } = require('../generator/options.js');
const { parseLayoutKey } = require('../ids/layout-key.js');
const { StoreCalls } = require('../lease/calls.js');
const { LIMITS } = require('../lease/namespace.js');
const native = require('../native.js');
const { connect } = require('../stores/connect.js');
const { isServer } = require('../stores/url.js');
const { moment } = require('../time.js');
const { readWholeNumber } = require('./flags.js');
const { STORE_OPTIONS, readStoreUrl } = require('./store-url.js');
const { table } = require('./terminal.js');

/** Time limit of a call to a store, ms. */
const CALL_MS = 10_000;

const LIMIT_OPTIONS = {
  ...STORE_OPTIONS,
  ...Object.fromEntries(Object.values(LIMITS).map((flag) => [flag, { type: 'string' }])),
};

const LIMIT_HELP = `  --ttl MS              the largest ttl of a holder
  --max-clock-skew MS   the largest maxClockSkew of a holder
  --max-ahead MS        the largest maxAhead of a holder`;

/** Reads the URL of a namespace. Refuses a directory, which has none. */
function readNamespaceUrl(name, positionals, usage) {
  const url = readStoreUrl(name, positionals, usage, 'postgres://127.0.0.1/app');
  if (isServer(url)) return url;
  throw configError(
    `${name} is for namespaces of postgres:, mysql:, redis:, etcd: and zookeeper: URLs. A directory has none; snowdrift reset repairs its slots`,
  );
}

/** Reads the limits that the flags set. */
function readLimitFlags(flags) {
  const limits = {};
  for (const [name, flag] of Object.entries(LIMITS)) {
    if (flags[flag] === undefined) continue;
    limits[name] = readWholeNumber(`--${flag}`, flags[flag], ...LIMIT_RANGES[name]);
  }
  return limits;
}

/** Adds a lease's defaults to limits. */
function withDefaultLimits(limits) {
  const { leasing, maxAhead = 0 } = readLeaseOptions({ ...limits, datacenterId: 0 });
  return { ttl: leasing.ttl, maxClockSkew: leasing.maxClockSkew, maxAhead };
}

/** Connects a store for `use`, which receives its name and its calls, and closes it afterwards. */
async function withStore(url, use) {
  const store = await connect(url);
  const calls = new StoreCalls(store, CALL_MS);
  try {
    return await use(store.name, calls);
  } finally {
    await calls.close();
  }
}

/** The namespace's record; undefined if there is none. */
async function readRecord(calls) {
  const { namespace } = await calls.call('slots');
  return namespace;
}

function noRecordError(name, advice) {
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} has no record of a namespace. ${advice}`,
  );
}

/** The last ms of a tick, Unix ms; null for no tick (-1). */
function endOf(key, tick) {
  return tick < 0 ? null : unwrap(native.tickEnd(parseLayoutKey(key), tick));
}

/** A record with its floor in Unix ms. */
function asJson({ floor, ...namespace }) {
  return { ...namespace, floor: endOf(namespace.layout, floor) };
}

function recordLines({ id, layout, ttl, maxClockSkew, maxAhead, floor }) {
  const end = endOf(layout, floor);
  return table([
    ['namespace', id],
    ['layout', layout],
    ['ttl', `${ttl} ms`],
    ['maxClockSkew', `${maxClockSkew} ms`],
    ['maxAhead', `${maxAhead} ms`],
    ['floor', end === null ? 'none' : moment(end)],
  ]);
}

/** Shows a record, in text followed by `notes`. */
function showRecord(show, record, notes = []) {
  show(asJson(record), () => [...recordLines(record), ...notes].join('\n'));
}

module.exports = {
  LIMIT_HELP,
  LIMIT_OPTIONS,
  asJson,
  endOf,
  noRecordError,
  readLimitFlags,
  readNamespaceUrl,
  readRecord,
  recordLines,
  showRecord,
  withDefaultLimits,
  withStore,
};
