'use strict';
// The class as applications see it.

const { SnowFlakeError, argumentError, configError, granted, shown } = require('./errors.js');
const native = require('./native.js');
const {
  layouts,
  readCount,
  readEngineOptions,
  readFields,
  readId,
  readLayout,
  readLeaseOptions,
  readOptions,
  unixMs,
} = require('./options.js');
const { openLater, openLeased, openNow } = require('./opening.js');
const { openTurn } = require('./turn.js');

/** An ID's fields. JSON has no bigint, so there the ID is a string. */
class ParsedId {
  constructor(id, fields) {
    this.id = id;
    this.timestamp = fields.timestamp;
    this.date = new Date(fields.timestamp);
    this.datacenterId = fields.datacenterId;
    this.workerId = fields.workerId;
    this.clockBack = fields.clockBack;
    this.sequence = fields.sequence;
  }

  toJSON() {
    return { ...this, id: String(this.id) };
  }
}

function parse(id, layout) {
  const read = readId(id);
  return new ParsedId(read, granted(native.decode(layout, read)));
}

/** Opened generators, by the object that is passed to the constructor for them. */
const prepared = new WeakMap();

function instanceOf(opened) {
  const options = {};
  prepared.set(options, opened);
  return new SnowFlake(options);
}

/** The LeaseStore or the engine's URL that SnowFlake.lease() was given; undefined for files. */
function engineOf(place) {
  if (place === undefined) {
    throw configError(
      "SnowFlake.lease() needs a store, such as 'file:///var/lib/app/ids' or postgres(pool), or one in the environment variable SNOWDRIFT_LEASE",
    );
  }
  if (place !== null && typeof place === 'object' && !(place instanceof URL)) {
    const missing = ['acquire', 'renew', 'release', 'now'].filter(
      (name) => typeof place[name] !== 'function',
    );
    if (missing.length === 0) return place;
    throw configError(`a LeaseStore has ${missing.join(', ')}; this is ${shown(place)}`);
  }
  let url;
  try {
    url = new URL(place);
  } catch {
    return undefined;
  }
  const { isEngine, unknownEngine } = require('./lease/connect.js');
  if (isEngine(url)) return url;
  if (url.protocol !== 'file:') throw unknownEngine(place);
  return undefined;
}

/** The process's default instance, as this thread sees it. */
let byDefault;
/** Draws from it; makes it first, if need be. */
let nextIdByDefault = () => SnowFlake.default.nextId();
let nextIdStringByDefault = () => SnowFlake.default.nextIdString();

function setDefault(flake) {
  byDefault = flake;
  nextIdByDefault = flake.nextId;
  nextIdStringByDefault = flake.nextIdString;
  return flake;
}

class SnowFlake {
  #settings;
  #channel;
  #turn;
  #lastStats;
  #lastLease;
  /** Of an engine, if there is one. */
  #lease;

  constructor(options) {
    // What the static functions have opened; an object that applications cannot make.
    const { settings, channel, lease } = prepared.get(options) ?? openNow(readOptions(options));
    this.#settings = settings;
    this.#channel = channel;
    this.#lease = lease;
    this.#turn = openTurn(this.#channel, this.#settings);
    const { layout, datacenterId, workerId } = settings;
    // Own properties, so that they work detached, and fixed, so that they are what they seem.
    const fixed = (value) => ({ value, enumerable: true });
    Object.defineProperties(this, {
      nextId: fixed(this.#turn.nextId),
      nextIdString: fixed(this.#turn.nextIdString),
      datacenterId: fixed(datacenterId),
      // A lease that was lost goes on under another.
      workerId: { get: () => (lease === undefined ? workerId : lease.workerId), enumerable: true },
      layout: fixed(layout),
    });
  }

  nextIds(count) {
    return this.#turn.nextIds(readCount(count));
  }

  nextIdStrings(count) {
    const { nextIdString } = this;
    return Array.from({ length: readCount(count) }, nextIdString);
  }

  nextIdAsync() {
    return this.#turn.nextIdAsync();
  }

  parse(id) {
    return parse(id, this.#settings.layout);
  }

  compose(fields) {
    const { layout, datacenterId } = this.#settings;
    const { workerId } = this;
    const otherwise = {
      timestamp: layout.epoch,
      datacenterId,
      workerId,
      clockBack: 0,
      sequence: 0,
    };
    return granted(native.encode(layout, readFields(fields, otherwise, layout)));
  }

  floorId(time) {
    const fields = { datacenterId: 0, workerId: 0, clockBack: 0, sequence: 0 };
    const timestamp = unixMs('time', time, argumentError);
    return granted(native.encode(this.#settings.layout, { timestamp, ...fields }));
  }

  stats() {
    this.#turn.drop();
    // What a closed instance shows is how things stood when it was closed.
    const stats = this.#channel.stats() ?? this.#lastStats;
    return {
      ...stats,
      endOfTime: new Date(stats.endOfTime),
      clock: this.#settings.clock === undefined ? 'system' : 'custom',
    };
  }

  get lease() {
    if (this.#lease !== undefined) return this.#lease.report();
    if (this.#lastStats !== undefined) return this.#lastLease;
    const lease = this.#channel.lease();
    if (!lease) return null;
    const { store, owner, floor, ceiling, renewals, state, failure } = lease;
    const slot = { datacenterId: this.datacenterId, workerId: this.workerId };
    const info = { store, slot, owner, floor, ceiling, expires: null, renewals, state };
    return failure === undefined ? info : { ...info, failure };
  }

  close() {
    if (this.#lastStats !== undefined) return;
    this.#turn.drop();
    const { lease } = this;
    this.#lastLease = lease && { ...lease, state: 'released' };
    this.#lastStats = this.#channel.stats();
    // Ends the window at once; the engine is told meanwhile.
    this.#lease?.release();
    this.#channel.close();
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close();
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    this.close();
    await this.#lease?.release();
  }

  static async lease(store, options) {
    const place = store === undefined ? process.env.SNOWDRIFT_LEASE : store;
    const engine = engineOf(place);
    return instanceOf(
      engine === undefined
        ? await openLater(readLeaseOptions(place, options))
        : await openLeased(engine, readEngineOptions(options)),
    );
  }

  static get default() {
    return byDefault ?? setDefault(instanceOf(openNow(readOptions(), { common: true })));
  }

  static configure(options) {
    if (byDefault !== undefined && byDefault.#lastStats === undefined) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CONFLICT',
        'the default instance is in use already: call SnowFlake.configure() once, before the first static call, or close SnowFlake.default first',
      );
    }
    if (options === undefined) throw configError('SnowFlake.configure() needs options');
    return setDefault(instanceOf(openNow(readOptions(options), { common: true })));
  }

  static nextId() {
    return nextIdByDefault();
  }

  static nextIdString() {
    return nextIdStringByDefault();
  }

  static nextIds(count) {
    return SnowFlake.default.nextIds(count);
  }

  static nextIdStrings(count) {
    return SnowFlake.default.nextIdStrings(count);
  }

  static parse(id, layout) {
    if (layout !== undefined) return parse(id, readLayout(layout));
    return parse(id, byDefault?.layout ?? layouts.node);
  }
}

module.exports = { SnowFlake };
