'use strict';
// What every instance does, wherever its IDs come from.

const { argumentError, granted, warnOfEnd } = require('./errors.js');
const { leaseTeller } = require('./events.js');
const native = require('./native.js');
const { readCount, readFields, readId, unixMs } = require('./options.js');
const { openTurn } = require('./turn.js');

/** What `await using` calls; Node 18 has no such symbol. */
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

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

class Instance {
  #settings;
  #channel;
  #turn;
  #lastStats;
  /** What close() returned. */
  #closed;
  #lastLease;
  /** Of an engine, if there is one. */
  #lease;
  /** For a lease that native code keeps. */
  #tellLease;

  /**
   * @param opened what js/opening.js answered
   * @param onRejectedTake 'wait', 'throw' or a function that returns an ID: when there is none
   */
  constructor({ settings, channel, lease }, onRejectedTake) {
    this.#settings = settings;
    this.#channel = channel;
    this.#lease = lease;
    this.#turn = openTurn(this.#channel, this.#settings, onRejectedTake);
    const { layout, datacenterId, workerId } = settings;
    if (settings.clock === undefined) warnOfEnd(layout);
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
    if (lease === undefined && this.lease !== null) this.#tellLease = tellOfRenewals(channel, this);
  }

  nextIds(count) {
    return this.#turn.nextIds(readCount(count));
  }

  nextIdStrings(count) {
    return this.#turn.nextIdStrings(readCount(count));
  }

  nextIdAsync() {
    return this.#turn.nextIdAsync();
  }

  parse(id) {
    return parse(id, this.#settings.layout);
  }

  toUidString(id, options) {
    // Loaded by those who use it.
    const { uidString } = require('./uid-string.js');
    return uidString(this.parse(id), this.#settings.layout, options);
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
    if (this.isClosed) return this.#lastLease;
    const lease = this.#channel.lease();
    if (!lease) return null;
    const { store, owner, floor, ceiling, renewals, state, failure } = lease;
    const slot = { datacenterId: this.datacenterId, workerId: this.workerId };
    const info = { store, slot, owner, floor, ceiling, expires: null, renewals, state };
    return failure === undefined ? info : { ...info, failure };
  }

  get isClosed() {
    return this.#lastStats !== undefined;
  }

  close() {
    if (this.#closed === undefined) {
      let settle;
      // First: subscribers that hear of it may close it, too.
      this.#closed = new Promise((resolve) => {
        settle = () => resolve();
      });
      this.#end().then(settle, settle);
    }
    return this.#closed;
  }

  /** Ends the window in this turn. Settles when the store knows, or has not answered in time. */
  async #end() {
    this.#turn.close();
    const { lease } = this;
    this.#lastLease = lease && { ...lease, state: 'released' };
    this.#lastStats = this.#channel.stats();
    this.#tellLease?.(this.#lastLease);
    const released = this.#lease?.release();
    this.#channel.close();
    await released;
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close();
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }
}

/** @returns tells of the lease besides */
function tellOfRenewals(channel, flake) {
  const tell = leaseTeller();
  // An instance that nobody has any more is not kept by this.
  const whose = new WeakRef(flake);
  const tellAnew = () => {
    const lease = whose.deref()?.lease;
    if (lease) tell(lease);
  };
  channel.onRenewed(tellAnew);
  tellAnew();
  return tell;
}

module.exports = { ASYNC_DISPOSE, Instance, parse };
