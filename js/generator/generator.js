'use strict';
// The base of all instances, whatever the source of their IDs.

const { Codec } = require('../ids/codec.js');
const { NUMBER_BITS } = require('../ids/text.js');
const { uidString } = require('../ids/uid-string.js');
const { argumentError, configError } = require('../errors.js');
const { isTarget, readCount, readFields, readId } = require('./arguments.js');
const { unixMs } = require('../checks.js');
const { Drawer } = require('./draw.js');
const { unixNow } = require('../time.js');
const { warnOfEnd } = require('../warnings.js');

/** The method for `await using`; Node 18 has no such symbol. */
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

const YEAR_MS = 365 * 86_400_000;

/** ms until a layout's timestamp overflows. */
const timeLeft = ({ epoch, timestampBits, tickMs }) =>
  epoch + 2 ** timestampBits * tickMs - unixNow();

/** Codecs by layout: frozen objects that readLayout() made. */
const codecs = new WeakMap();

function codecOf(layout) {
  let codec = codecs.get(layout);
  if (codec === undefined) {
    codec = new Codec(layout);
    codecs.set(layout, codec);
  }
  return codec;
}

function parse(id, layout) {
  const codec = codecOf(layout);
  return codec.decode(readId(id, codec.bits));
}

/** nextIdNumber() of a layout whose IDs no number holds. */
function refuseNumbers() {
  throw configError(
    `nextIdNumber() needs a layout of at most ${NUMBER_BITS} bits, since a number holds no more exactly: choose layout: 'safe', or use nextId() or nextIdString()`,
  );
}

/** Whether a value is an instance of this copy of the package. A proxy or a look-alike is none. */
let isGenerator;
/** Whether close() was called, whatever a subclass makes of `isClosed`. */
let isClosed;

class Generator {
  static {
    isGenerator = (value) => value !== null && typeof value === 'object' && #drawer in value;
    isClosed = (instance) => instance.#closed !== undefined;
  }

  #settings;
  #codec;
  #channel;
  #drawer;
  #isClosed = false;
  /** The promise of close(). */
  #closed;
  #lease;

  /**
   * @param opened an Opened of js/generator/opening.js; `onCreated` is called with the instance before any
   *   subscriber
   * @param onRejectedTake when no ID is available: 'wait', 'throw' or a function that returns an ID
   */
  constructor({ settings, channel, lease, onCreated }, onRejectedTake) {
    this.#settings = settings;
    this.#channel = channel;
    this.#lease = lease;
    this.#drawer = new Drawer(channel, settings, lease, onRejectedTake);
    const { layout, datacenterId, workerId } = settings;
    this.#codec = codecOf(layout);
    if (settings.clock === undefined && timeLeft(layout) < YEAR_MS) {
      warnOfEnd(layout);
    }
    // Own properties, so that they work detached. Fixed, so that nobody replaces them.
    const define = (key, how) =>
      Object.defineProperty(this, key, { __proto__: null, enumerable: true, ...how });
    const fix = (key, value) => define(key, { value });
    fix('nextId', this.#drawer.nextId);
    fix('nextIdString', this.#drawer.nextIdString);
    fix('nextIdBase32', this.#drawer.nextIdBase32);
    const isExact = this.#codec.bits <= NUMBER_BITS;
    fix('nextIdNumber', isExact ? this.#drawer.nextIdNumber : refuseNumbers);
    fix('datacenterId', datacenterId);
    // A lost lease may continue under another worker ID.
    if (lease === undefined) fix('workerId', workerId);
    else define('workerId', { get: () => lease.workerId });
    fix('layout', layout);
    onCreated?.(this);
    lease?.publish?.();
  }

  nextIds(count) {
    // A number of IDs, or an array to fill.
    if (typeof count === 'object' && isTarget(count)) return this.#drawer.fillIds(count);
    return this.#drawer.nextIds(readCount(count));
  }

  nextIdStrings(count) {
    return this.#drawer.nextIdStrings(readCount(count));
  }

  nextIdAsync() {
    return this.#drawer.nextIdAsync();
  }

  parse(id) {
    return this.#codec.decode(readId(id, this.#codec.bits));
  }

  toUidString(id, options) {
    return uidString(this.parse(id), this.#settings.layout, options);
  }

  compose(fields) {
    const { timestamp, datacenterId, workerId, clockBack, sequence } = readFields(fields, this);
    return this.#codec.encode(timestamp, datacenterId, workerId, clockBack, sequence);
  }

  floorId(time) {
    return this.#codec.encode(unixMs('time', time, argumentError), 0, 0, 0, 0);
  }

  stats() {
    this.#drawer.drop();
    // A closed instance shows the counters at the time of close().
    const stats = this.#channel.stats();
    return {
      ...stats,
      endOfTime: new Date(stats.endOfTime),
      clock: this.#settings.clock === undefined ? 'system' : 'custom',
    };
  }

  get lease() {
    return this.#lease?.report() ?? null;
  }

  afterRestore() {
    this.#drawer.drop();
    if (this.#isClosed) return;
    if (!this.#channel.restored()) {
      throw configError(
        'afterRestore() needs a lease from a store: nothing tells this machine from its original by a workerId of your own, or by a record on a disk that may be copied, too. Use SnowFlake.lease() with the URL of a server',
      );
    }
    this.#lease.wantRenewal?.();
  }

  get isClosed() {
    return this.#isClosed;
  }

  close() {
    if (this.#closed === undefined) {
      let settle;
      // First: subscribers to the release may close it, too.
      this.#closed = new Promise((resolve) => {
        settle = () => resolve();
      });
      this.#end().then(settle, settle);
    }
    return this.#closed;
  }

  /** Ends the window in this turn. Settles when the store has recorded the release, or after a timeout. */
  async #end() {
    this.#drawer.close();
    this.#isClosed = true;
    let released;
    try {
      released = this.#lease?.release();
    } finally {
      this.#channel.close();
    }
    await released;
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close();
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }
}

module.exports = { ASYNC_DISPOSE, Generator, isClosed, isGenerator, parse };
