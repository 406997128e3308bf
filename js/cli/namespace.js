'use strict';
// What commands share that change the record of a namespace.

const { randomBytes } = require('node:crypto');

const { SnowFlakeError, configError, moment } = require('../errors.js');
const { layoutKey, parseLayoutKey } = require('../layout-key.js');
const { readEngineOptions } = require('../options.js');
const { readAnswer } = require('../lease/answers.js');
const { connect, isEngine } = require('../lease/connect.js');
const { storeFailure } = require('../lease/failures.js');
const { table } = require('./colours.js');
const { LAYOUT, layoutOf, wholeNumber } = require('./flags.js');
const { placeOf } = require('./place.js');

/** What a namespace bounds, by the flag for it. */
const TERMS = { ttl: 'ttl', maxClockSkew: 'max-clock-skew', maxAhead: 'max-ahead' };

const TERM_OPTIONS = {
  ttl: { type: 'string' },
  'max-clock-skew': { type: 'string' },
  'max-ahead': { type: 'string' },
};

const TERM_HELP = `  --ttl MS              the largest that a holder may have
  --max-clock-skew MS   the same
  --max-ahead MS        the same`;

/** The URL of a namespace: directories have none. */
function namespaceUrl(name, positionals, usage) {
  const url = placeOf(name, positionals, usage);
  if (isEngine(url)) return url;
  throw configError(
    `${name} is for namespaces of postgres:, mysql:, redis:, etcd: and zookeeper: URLs. A directory has none; its slots are put right with snowdrift reset`,
  );
}

/** What was given of ttl, maxClockSkew and maxAhead, checked as of a lease. */
function givenTerms(flags) {
  const given = Object.entries(TERMS).flatMap(([term, flag]) => {
    const ms = wholeNumber(flag, flags[flag]);
    return ms === undefined ? [] : [[term, ms]];
  });
  checkedTerms(Object.fromEntries(given));
  return Object.fromEntries(given);
}

/** All three, with the defaults of a lease for those that were not given. */
function checkedTerms(given) {
  const { leasing, maxAhead = 0 } = readEngineOptions({ ...given, datacenterId: 0 });
  return { ttl: leasing.ttl, maxClockSkew: leasing.maxClockSkew, maxAhead };
}

/** The key of the layout that was named, or of the default one. */
function givenLayout(flags) {
  return layoutKey(readEngineOptions({ ...layoutOf(flags), datacenterId: 0 }).layout);
}

/** Runs `use` with a store whose calls are bounded and checked. Its connection is closed in any case. */
async function withStore(url, use) {
  const store = await connect(url);
  const call = async (name, request = {}) => {
    try {
      const answer = await store[name](request);
      return name === 'slots' ? answer : readAnswer(name, answer, request);
    } catch (cause) {
      if (cause instanceof SnowFlakeError) throw cause;
      throw storeFailure(store.server, name, cause);
    }
  };
  try {
    return await use({ name: store.name, call });
  } finally {
    await store.close();
  }
}

/** The record that is there, if there is one. Creates nothing. */
async function recorded({ call, name }) {
  const { namespace } = await call('slots');
  if (namespace !== undefined && parseLayoutKey(namespace.layout) === undefined) {
    throw new SnowFlakeError('ERR_SNOWFLAKE_STORE', `${name} has no record that can be read`);
  }
  return namespace;
}

function noNamespace(name, advice) {
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} has no record of a namespace. ${advice}`,
  );
}

const newId = () => randomBytes(16).toString('hex');

/** The first tick of a layout that begins at a time (Unix ms) or later. */
function tickAfter(key, unixMs) {
  const { tickMs, epoch } = parseLayoutKey(key);
  return Math.max(-1, Math.ceil((unixMs - epoch) / tickMs));
}

/** The last ms of a tick, Unix ms; null for none. */
function endOf(key, tick) {
  const { tickMs, epoch } = parseLayoutKey(key);
  return tick < 0 ? null : epoch + (tick + 1) * tickMs - 1;
}

/** A record as a command prints it in JSON: its floor as Unix ms. */
function asJson({ floor, ...namespace }) {
  return { ...namespace, floor: endOf(namespace.layout, floor) };
}

function rows({ id, layout, ttl, maxClockSkew, maxAhead, floor }) {
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

module.exports = {
  LAYOUT,
  TERMS,
  TERM_HELP,
  TERM_OPTIONS,
  asJson,
  checkedTerms,
  endOf,
  givenLayout,
  givenTerms,
  namespaceUrl,
  newId,
  noNamespace,
  recorded,
  rows,
  tickAfter,
  withStore,
};
