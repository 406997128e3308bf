'use strict';
// The base class of all instances.

const { Codec } = require('../ids/codec.js');
const { NUMBER_BITS } = require('../ids/text.js');
const { argumentError, configError, fromCaller } = require('../messages/errors.js');
const { ownOf } = require('../ids/properties.js');
const { unixNow } = require('../runtime/time.js');

/** @type {typeof import('./arguments.js') | undefined} */
let loaded;
/** Kept, since it is for each call. */
const readers = () => (loaded ??= require('./arguments.js'));
const drawers = () => require('./draw.js');
const uids = () => require('../ids/uid-string.js');
const warnings = () => require('../messages/warnings.js');

/** @import { CachedStats } from '../../index.js' */
/** @import { Channel, ChannelStats, Layout, Lease, NodeIds, OpenSettings, ParsedId } from '../types.js' */
/** @import { OnRejected } from './draw.js' */
/** @import { Opening } from './opening.js' */
/**
 * The functions of an instance, which work without `this`, and the methods that the prototype has besides.
 * @typedef {Pick<Generator, 'nextIds' | 'nextIdStrings' | 'nextIdAsync'> & OwnFunctions} Functions
 * @typedef {object} OwnFunctions
 * @property {() => bigint} nextId
 * @property {() => string} nextIdString
 * @property {() => string} nextIdBase32
 * @property {() => number} nextIdNumber
 * @property {(id: unknown) => ParsedId} parse
 */
/**
 * An instance, with the properties that the constructor defines.
 * @typedef {Generator & NodeIds & { readonly layout: Layout }} Instance
 * @typedef {new (opened: Opening, onRejectedTake?: OnRejected) => Instance} GeneratorClass
 */
/**
 * The private parts of an instance.
 * @typedef {object} Parts
 * @property {OpenSettings} settings
 * @property {InstanceType<typeof Codec>} codec
 * @property {Channel} channel
 * @property {InstanceType<typeof import('./draw.js').Drawer>} drawer
 * @property {Lease | undefined} lease
 * @property {Functions} functions
 * @property {boolean} isClosed
 * @property {Promise<void> | undefined} closed the promise of close()
 */

/**
 * The method for `using`. Node 18 lacks the symbols.
 * @type {typeof Symbol.dispose}
 */
const DISPOSE = Symbol.dispose ?? Symbol.for('Symbol.dispose');
/**
 * The method for `await using`.
 * @type {typeof Symbol.asyncDispose}
 */
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

const YEAR_MS = 365 * 86_400_000;

/**
 * The time until a layout's timestamp overflows, in ms.
 * @type {(layout: Layout) => number}
 */
const timeLeft = ({ epoch, timestampBits, tickMs }) =>
  epoch + 2 ** timestampBits * tickMs - unixNow();

/**
 * Codecs by layout. The keys are frozen objects from readLayout().
 * @type {WeakMap<Layout, InstanceType<typeof Codec>>}
 */
const codecs = new WeakMap();

/** @param {Layout} layout */
function codecOf(layout) {
  let codec = codecs.get(layout);
  if (codec === undefined) {
    codec = new Codec(layout);
    codecs.set(layout, codec);
  }
  return codec;
}

/**
 * @param {unknown} id
 * @param {Layout} layout
 */
function parse(id, layout) {
  const codec = codecOf(layout);
  return codec.decode(readers().readId(id, codec.bits));
}

/**
 * nextIdNumber() of a layout whose IDs are too large for exact numbers.
 * @returns {never}
 */
function refuseNumbers() {
  throw configError(
    `nextIdNumber() needs a layout of at most ${NUMBER_BITS} bits, since a number holds no more exactly: choose layout: 'safe', or use nextId() or nextIdString()`,
  );
}

/** @type {(object: object) => { [name: string]: unknown }} */
const membersOf = (object) => /** @type {{ [name: string]: unknown }} */ (object);

/** The methods that generate IDs. None calls another, and the package never calls one that was replaced. */
const GENERATING = [
  'nextId',
  'nextIdString',
  'nextIdBase32',
  'nextIdNumber',
  'nextIds',
  'nextIdStrings',
  'nextIdAsync',
];

/**
 * Refuses a subclass that overrides one of them, since the others and static calls would not use its method.
 * @param {object} prototype the prototype of the new instance
 * @param {object} own the prototype of the package's class. It is not checked, since tests may put mocks there
 */
function checkOverrides(prototype, own) {
  for (let one = prototype; one && one !== own; one = Object.getPrototypeOf(one)) {
    const name = GENERATING.find((method) => Object.hasOwn(one, method));
    if (name !== undefined) {
      throw configError(
        `a subclass overrides ${name}(), and the other methods that generate IDs would not follow: give its method another name, which calls ${name}(), or write a class that has an instance instead of extending this one`,
      );
    }
  }
}

const { isPrototypeOf: isBeneath } = Object.prototype;

/**
 * Refuses the static lease() of a subclass, since it would return an instance of the base class.
 * @param {unknown} called its
 * `this`, if any
 * @param {Function} Class
 */
function checkLeaseCall(called, Class) {
  if (!isBeneath.call(Class, /** @type {object} */ (called))) return;
  throw configError(
    `lease() of a subclass would return a ${Class.name}, and no instance of the subclass: call ${Class.name}.lease(), and write a class that has an instance instead of extending this one`,
  );
}

/**
 * The error for a member that was used without an instance of this copy of the package.
 * @param {string} member
 */
function misused(member) {
  const write = `flake.${member}`;
  return argumentError(
    `${member} was used without its instance, or on a Proxy of it: write ${write} of the instance itself, and where a function is passed () => ${write}`,
  );
}

/**
 * Whether a value is an instance of this copy of the package, and not a proxy or an imitation.
 * @type {(value: unknown) => value is Instance}
 */
let isGenerator;
/**
 * Whether close() was called, even if a subclass overrides `isClosed`.
 * @type {(instance: Generator) => boolean}
 */
let isClosed;
/**
 * An instance's original functions, even if they were replaced.
 * @type {(instance: Generator) => Functions}
 */
let functionsOf;
/**
 * The private parts of an instance. Throws for any other value.
 * @type {(value: unknown, member: string) => Parts}
 */
let partsOf;

class Generator {
  static {
    isGenerator = /** @type {typeof isGenerator} */ (
      (value) => value !== null && typeof value === 'object' && #parts in value
    );
    isClosed = (instance) => instance.#parts.closed !== undefined;
    functionsOf = (instance) => instance.#parts.functions;
    partsOf = (value, member) => {
      if (!isGenerator(value)) throw fromCaller(misused(member), partsOf);
      return value.#parts;
    };
  }

  /** @type {Parts} */
  #parts;

  /**
   * @param {Opening} opened an Opened of js/generator/opening.js. `onCreated` is called with the instance before any subscriber
   * @param {OnRejected} [onRejectedTake] what to do if no ID is available: 'wait', 'throw', or a function that returns an ID
   */
  constructor({ settings, channel, lease, onCreated }, onRejectedTake) {
    const { layout, datacenterId, workerId } = settings;
    const codec = codecOf(layout);
    const { readId } = readers();
    const { Drawer } = drawers();
    const drawer = new Drawer(channel, settings, lease, onRejectedTake);
    /** @type {OwnFunctions & { __proto__: object }} */
    const functions = {
      __proto__: METHODS,
      nextId: drawer.nextId,
      nextIdString: drawer.nextIdString,
      nextIdBase32: drawer.nextIdBase32,
      nextIdNumber: codec.bits <= NUMBER_BITS ? drawer.nextIdNumber : refuseNumbers,
      parse: (/** @type {unknown} */ id) => codec.decode(readId(id, codec.bits)),
    };
    this.#parts = {
      settings,
      codec,
      channel,
      drawer,
      lease,
      functions: /** @type {Functions} */ (/** @type {object} */ (functions)),
      isClosed: false,
      closed: undefined,
    };
    if (settings.clock === undefined && timeLeft(layout) < YEAR_MS) {
      warnings().warnOfEnd(layout);
    }
    /** @type {(key: string, how: PropertyDescriptor) => void} */
    const define = (key, how) =>
      Object.defineProperty(this, key, ownOf({ enumerable: true, ...how }));
    // Own properties, so that they work without `this`. Spies and mocks can replace them, here or on the prototype.
    for (const [name, value] of Object.entries(functions)) {
      if (membersOf(this)[name] !== METHODS[name]) continue;
      // Defined, since an assignment fails if the prototype is frozen.
      define(name, { value, writable: true, configurable: true });
    }
    // Read-only properties.
    /** @type {(key: string, value: unknown) => void} */
    const fix = (key, value) => define(key, { value });
    fix('datacenterId', datacenterId);
    // After a loss, the lease may continue with another worker ID.
    if (lease === undefined) fix('workerId', workerId);
    else define('workerId', { get: () => lease.workerId });
    fix('layout', layout);
    onCreated?.(/** @type {Instance} */ (/** @type {object} */ (this)));
    lease?.publish?.();
  }

  // An instance's own functions shadow these five. They are for `super`, and for mocks that tools create from the
  // class.

  nextId() {
    return partsOf(this, 'nextId()').functions.nextId();
  }

  nextIdString() {
    return partsOf(this, 'nextIdString()').functions.nextIdString();
  }

  nextIdBase32() {
    return partsOf(this, 'nextIdBase32()').functions.nextIdBase32();
  }

  nextIdNumber() {
    return partsOf(this, 'nextIdNumber()').functions.nextIdNumber();
  }

  /** @param {unknown} id */
  parse(id) {
    return partsOf(this, 'parse()').functions.parse(id);
  }

  /**
   * @overload
   * @param {number} count
   * @returns {BigUint64Array}
   */
  /**
   * @template {BigUint64Array} T
   * @overload
   * @param {T} count
   * @returns {T}
   */
  /**
   * @param {unknown} count
   * @returns {BigUint64Array}
   */
  nextIds(count) {
    const { drawer } = partsOf(this, 'nextIds()');
    const { isTarget, readCount } = readers();
    // `count` is a number of IDs, or an array to fill.
    if (typeof count === 'object' && isTarget(count)) return drawer.fillIds(count);
    return drawer.nextIds(readCount(count));
  }

  /** @param {unknown} count */
  nextIdStrings(count) {
    return partsOf(this, 'nextIdStrings()').drawer.nextIdStrings(readers().readCount(count));
  }

  nextIdAsync() {
    if (!isGenerator(this)) return Promise.reject(misused('nextIdAsync()'));
    return this.#parts.drawer.nextIdAsync();
  }

  /**
   * @param {unknown} id
   * @param {unknown} [options]
   */
  toUidString(id, options) {
    const { settings, functions } = partsOf(this, 'toUidString()');
    return uids().uidString(functions.parse(id), settings.layout, options);
  }

  /** @param {unknown} fields */
  compose(fields) {
    const { codec } = partsOf(this, 'compose()');
    const { timestamp, datacenterId, workerId, clockBack, sequence } = readers().readFields(
      fields,
      /** @type {Instance} */ (/** @type {object} */ (this)),
    );
    return codec.encode(timestamp, datacenterId, workerId, clockBack, sequence);
  }

  /** @param {unknown} time */
  floorId(time) {
    const { codec } = partsOf(this, 'floorId()');
    return codec.encode(readers().readTime(time), 0, 0, 0, 0);
  }

  /** @returns {CachedStats} with `ring` only where there is one */
  stats() {
    const { drawer, channel, settings } = partsOf(this, 'stats()');
    drawer.drop();
    // A closed instance has the counters of the time of close().
    const stats = /** @type {ChannelStats} */ (channel.stats());
    return {
      ...stats,
      endOfTime: new Date(stats.endOfTime),
      clock: settings.clock === undefined ? 'system' : 'custom',
    };
  }

  get lease() {
    return partsOf(this, 'lease').lease?.report() ?? null;
  }

  afterRestore() {
    const parts = partsOf(this, 'afterRestore()');
    parts.drawer.drop();
    if (parts.isClosed) return;
    if (!parts.channel.restored()) {
      throw configError(
        'afterRestore() needs a lease from a store: nothing tells this machine from its original by a workerId of your own, or by a record on a disk that may be copied, too. Use SnowFlake.lease() with the URL of a server',
      );
    }
    parts.lease?.afterRestore?.();
  }

  get isClosed() {
    return partsOf(this, 'isClosed').isClosed;
  }

  close() {
    const parts = partsOf(this, 'close()');
    if (parts.closed === undefined) {
      let settle;
      // Set first, since subscribers to the release may call close(), too.
      parts.closed = new Promise((resolve) => {
        settle = () => resolve();
      });
      end(parts).then(settle, settle);
    }
    return parts.closed;
  }

  [DISPOSE]() {
    partsOf(this, 'close()');
    this.close();
  }

  [ASYNC_DISPOSE]() {
    partsOf(this, 'close()');
    return this.close();
  }
}

/**
 * The prototype's methods, before anything can replace them.
 * @type {Record<string, unknown>}
 */
const METHODS = { __proto__: null };
for (const name of [...GENERATING, 'parse']) METHODS[name] = membersOf(Generator.prototype)[name];

/**
 * The name of a generating method that a mock or a subclass's field has replaced; undefined if there is none.
 * @param {Generator} instance
 */
function replacedIn(instance) {
  const [members, functions] = [membersOf(instance), membersOf(functionsOf(instance))];
  return GENERATING.find((name) => members[name] !== functions[name]);
}

/**
 * Ends the window synchronously. Settles when the store has recorded the release, or after a timeout.
 * @param {Parts} parts
 */
async function end(parts) {
  const { drawer, lease, channel } = parts;
  drawer.close();
  parts.isClosed = true;
  let released;
  try {
    released = lease?.release();
  } finally {
    channel.close();
  }
  await released;
}

module.exports = {
  ASYNC_DISPOSE: /** @type {typeof Symbol.asyncDispose} */ (ASYNC_DISPOSE),
  Generator: /** @type {GeneratorClass} */ (Generator),
  checkLeaseCall,
  checkOverrides,
  functionsOf,
  isClosed,
  isGenerator,
  parse,
  replacedIn,
};
