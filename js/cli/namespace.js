'use strict';
// Common parts of the commands that read or change the records of a namespace. Rust makes and reads the records, and the rules by
// which they change are those of src/lease.

const { SnowFlakeError, configError, unwrap } = require('../messages/errors.js');
const { LIMIT_RANGES, readLeaseOptions } = require('../generator/options.js');
const { layoutKey } = require('../ids/layout-key.js');
const { StoreCalls } = require('../lease/calls.js');
const { LIMITS } = require('../messages/faults.js');
const native = require('../runtime/native.js');
const { connect } = require('../stores/connect.js');
const { formatConflict } = require('../stores/failures.js');
const { isServer } = require('../stores/url.js');
const { hostMonotonic, moment, runWithin } = require('../runtime/time.js');
const { readWholeNumber } = require('./flags.js');
const { STORE_OPTIONS, readStoreUrl } = require('./store-url.js');
const { table } = require('./table.js');
const { NONE } = require('../ids/properties.js');

/** Time limit of a call to a store, ms. */
const CALL_MS = 10_000;

/** The most tries of a change while other processes change the same record. A holder renews thrice in a ttl. */
const MAX_TRIES = 20;

/** The most names of other namespaces in an error, and what a name is. */
const MOST_NAMES = 20;
const NAME = /^[\w.-]{1,64}$/;

/** The key of the namespace's own record. */
const KEY = 'namespace';

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

/** The higher of each limit. */
const largerLimits = (one, other) =>
  Object.fromEntries(
    Object.keys(LIMITS).map((name) => [name, Math.max(one[name], other[name] ?? 0)]),
  );

/** As leases draw it: the number of a write, which no other writer has. */
const newId = () => native.newToken().padStart(32, '0');

function namespaceOf([record]) {
  if (record === undefined) return {};
  const [, token, text] = record;
  const values = native.readRecord(KEY, text);
  return values === null ? { isDamaged: true } : { namespace: { ...values, token, text } };
}

/** The records of a namespace. */
class Records {
  #register;
  #calls;

  constructor(register) {
    this.name = register.name;
    this.#register = register;
    this.#calls = new StoreCalls(register, CALL_MS);
  }

  #make(call) {
    return this.#calls.make(call, CALL_MS);
  }

  /** Reads the latest time that the store's clock can show now, Unix ms. */
  async latestNow() {
    const { now, called } = await this.#make({ call: 'now' });
    return now + hostMonotonic() - called;
  }

  /** The namespace: its values, and the token of its record; undefined if there is none. */
  async read() {
    return this.#checked(await this.look());
  }

  /** As read(), but where the record cannot be read, `isDamaged` says so. */
  async look() {
    let isDamaged = false;
    const noteFault = () => (isDamaged = true);
    const { records } = await this.#make({ call: 'read', key: KEY, noteFault });
    return isDamaged ? { isDamaged } : namespaceOf(records);
  }

  #checked({ namespace, isDamaged }) {
    if (isDamaged) throw formatConflict(this.name, `the key ${KEY}`);
    return namespace;
  }

  /**
   * Writes the namespace in the place of the one with the token `before`; undefined where there must be none.
   * @returns what it has written, or with `isFound` what it found instead: undefined for nothing
   */
  async write(namespace, before) {
    const { id, layout, ttl, maxClockSkew, maxAhead, floor } = namespace;
    const text = native.namespaceText(id, layout, ttl, maxClockSkew, maxAhead, String(floor));
    const token = native.newToken();
    const call = { call: 'write', key: KEY, token, text, before };
    const { isWritten, records } = await this.#make(call);
    if (!isWritten) return { isWritten: false, found: this.#checked(namespaceOf(records)) };
    return { isWritten: true, found: { ...namespace, token } };
  }

  /**
   * Changes the namespace.
   * @param change returns the new values for those that were found
   * @param advice what to do if there is no namespace
   */
  async change(change, advice) {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const before = await this.read();
      if (before === undefined) throw await this.missing(advice);
      const { isWritten, found } = await this.write(await change(before), before.token);
      if (isWritten) return found;
    }
    throw this.#busy(`the record of the namespace`);
  }

  /**
   * All records of slots and buckets: key, values and text of each; and the store's clock, Unix ms. A damaged one has values
   * of the kind 'damaged', and null if its key is none of a slot.
   */
  async list() {
    const damaged = [];
    const noteFault = (key) => damaged.push([key, undefined, '']);
    const { records, now } = await this.#make({ call: 'list', prefix: 'slots/', noteFault });
    return {
      now: now ?? (await this.latestNow()),
      records: [...records, ...damaged].map(([key, token, text]) => ({
        ...{ key, token, text },
        values: native.readRecord(key, text),
      })),
    };
  }

  /** The other namespaces of the store, as far as it tells. */
  async #others() {
    const find = (signal) => this.#register.namespaces({ signal });
    const names = await runWithin(CALL_MS, find).catch(() => []);
    return names.filter((name) => NAME.test(name)).sort();
  }

  /**
   * Frees a held slot for a namespace, with a ceiling that is not below the namespace's floor. Its holder finds at its next
   * renewal that the slot is not its own any more.
   */
  async free({ key, token, text }, { id, floor }) {
    let found = [key, token, text];
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const [, before, held] = found;
      const freed = native.freedSlotText(held, id, Number(floor));
      if (freed === null) return;
      const call = { call: 'write', key, token: native.newToken(), text: freed, before };
      const { isWritten, records } = await this.#make(call);
      if (isWritten) return;
      // Its holder has renewed it meanwhile, another one has taken it, or it was deleted.
      [found] = records;
      if (found === undefined || native.readRecord(key, found[2])?.namespace === id) return;
    }
    throw this.#busy(`the record ${key}`);
  }

  async missing(advice) {
    const names = await this.#others();
    const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '';
    const others = `: this store has ${names.slice(0, MOST_NAMES).join(', ')}${more}`;
    const what = `${this.name} has no record of a namespace. Check its name${names.length > 0 ? others : ''}. ${advice}`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  }

  #busy(record) {
    const what = `${this.name}: other processes keep changing ${record}. Run the command again`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  }

  close() {
    return this.#calls.close();
  }
}

/** Opens the records of a URL for `use`, and closes the store afterwards. */
async function withRecords(url, use) {
  const records = new Records(await connect(url));
  try {
    return await use(records);
  } finally {
    await records.close();
  }
}

/** The last ms of a tick, Unix ms; null for no tick: of -1, or a floor that the next lease sets. */
function endOf(layout, tick) {
  const number = Number(tick);
  return number >= 0 ? unwrap(native.tickEnd(layout, number)) : null;
}

/** A namespace with its floor in Unix ms. */
function asJson({ id, layout, ttl, maxClockSkew, maxAhead, floor }) {
  const limits = { ttl, maxClockSkew, maxAhead };
  return { id, layout: layoutKey(layout), ...limits, floor: endOf(layout, floor) };
}

function namespaceLines(namespace) {
  const { id, layout, ttl, maxClockSkew, maxAhead, floor } = asJson(namespace);
  const isLost = namespace.floor === 'lost';
  const open = isLost ? 'not yet: the next lease sets it, above all earlier IDs' : 'none';
  return table([
    ['namespace', id],
    ['layout', layout],
    ['ttl', `${ttl} ms`],
    ['maxClockSkew', `${maxClockSkew} ms`],
    ['maxAhead', `${maxAhead} ms`],
    ['floor', floor === null ? open : moment(floor)],
  ]);
}

/** Shows a namespace, in text followed by `notes`, in JSON with `more` values. */
function showNamespace(show, namespace, notes = [], more = NONE) {
  show({ ...asJson(namespace), ...more }, () =>
    [...namespaceLines(namespace), ...notes].join('\n'),
  );
}

module.exports = {
  LIMIT_HELP,
  LIMIT_OPTIONS,
  Records,
  asJson,
  endOf,
  largerLimits,
  namespaceLines,
  newId,
  readLimitFlags,
  readNamespaceUrl,
  showNamespace,
  withDefaultLimits,
  withRecords,
};
