'use strict';
// The class SnowFlake, and the default instance.

const { types } = require('node:util');

const {
  SnowFlakeError,
  argumentError,
  configError,
  describe,
  fromCaller,
  inCall,
} = require('./messages/errors.js');
const {
  Generator,
  checkLeaseCall,
  checkOverrides,
  functionsOf,
  isClosed,
  isGenerator,
  parse,
  replacedIn,
} = require('./generator/generator.js');
const { layouts } = require('./ids/presets.js');

// Compiled when the first instance is opened.
const openers = () => require('./generator/opening.js');
const readers = () => require('./generator/options.js');
/** @type {typeof import('./ids/layouts.js') | undefined} */
let loaded;
/** Kept, since it is for each call of parse(). */
const ofLayouts = () => (loaded ??= require('./ids/layouts.js'));
const urls = () => require('./stores/url.js');

/** @import { ReadSettings } from './generator/opening.js' */
/** @import { Functions, Instance } from './generator/generator.js' */
/** @typedef {{ default: () => Instance, [method: string]: Function }} Statics */
/** @import { OwnSettings } from './types.js' */

/**
 * This thread's default instance: a SnowFlake or a CachedSnowFlake. It stays set after close().
 * @type {Instance | undefined}
 */
let defaultFlake;
/**
 * The default instance's own functions, even if a test replaced its methods. The first call opens the instance.
 * @type {() => bigint}
 */
let defaultNextId = () => functionsOf(STATICS.default()).nextId();
/** @type {() => string} */
let defaultNextIdString = () => functionsOf(STATICS.default()).nextIdString();
/**
 * The promise of ready(). Until it settles, no other instance becomes the default one.
 * @type {Promise<Instance> | undefined}
 */
let opening;

/**
 * @template {Instance} F
 * @param {F} flake
 */
function setDefault(flake) {
  defaultFlake = flake;
  ({ nextId: defaultNextId, nextIdString: defaultNextIdString } = functionsOf(flake));
  return flake;
}

/**
 * Opens the default instance. It is set before subscribers are called, so they may use it.
 * @param {OwnSettings} settings
 */
function openDefault(settings) {
  const opened = openers().openNow(settings, { isCommon: true });
  return new SnowFlake(Object.assign(opened, { onCreated: setDefault }));
}

/**
 * Opens the default instance as the environment says: without options, or with a lease from a server.
 * @returns {Promise<Instance>}
 */
async function openDefaultByEnvironment() {
  return urls().environmentServer() === undefined
    ? openDefault(readers().readOptions())
    : setDefault(await SnowFlake.lease());
}

function hasDefault() {
  return defaultFlake !== undefined && !isClosed(defaultFlake);
}

/** The default instance, open or closed, if there is one. */
const presentDefault = () => defaultFlake;

function checkNoDefault() {
  if (opening !== undefined) {
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_CONFLICT',
      'SnowFlake.ready() is opening the default instance: await it and use SnowFlake.default, or do not call it',
    );
  }
  if (hasDefault()) {
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_CONFLICT',
      'there is a default instance already: call SnowFlake.configure(), SnowFlake.use() or SnowFlake.ready() once, before the first static call, or close SnowFlake.default first',
    );
  }
}

/**
 * The error that a static call throws.
 * @param {unknown} failure
 * @param {string} method
 */
function toDefaultError(failure, method) {
  const isClosedError =
    failure instanceof SnowFlakeError && failure.code === 'ERR_SNOWFLAKE_CLOSED';
  const error = isClosedError
    ? new SnowFlakeError(
        'ERR_SNOWFLAKE_CLOSED',
        'the default instance is closed: choose another one by SnowFlake.use(flake), SnowFlake.configure(options) or await SnowFlake.ready()',
      )
    : failure;
  return fromCaller(error, STATICS[method]);
}

/**
 * @template {keyof Functions} M
 * @param {M} method
 * @param {unknown} [count]
 */
function drawFromDefault(method, count) {
  try {
    const flake = STATICS.default();
    const draw = /** @type {(this: object, count: unknown) => unknown} */ (
      functionsOf(flake)[method]
    );
    return /** @type {ReturnType<Functions[M]>} */ (draw.call(flake, count));
  } catch (failure) {
    throw toDefaultError(failure, method);
  }
}

class SnowFlake extends Generator {
  /** @param {unknown} [options] */
  constructor(options) {
    const { prototype } = new.target;
    const open = () => {
      checkOverrides(prototype, SnowFlake.prototype);
      return openers().openNow(readers().readOptions(options));
    };
    super(openers().Opened.is(options) ? options : inCall(SnowFlake, open));
  }

  /**
   * @param {unknown} [store]
   * @param {unknown} [options]
   */
  static async lease(store, options) {
    checkLeaseCall(this, SnowFlake);
    /** @type {ReadSettings} */
    const read = (...place) => readers().readLeaseOptions(options, ...place);
    return await openers().openLease(store, read, (opened) => new SnowFlake(opened));
  }

  /** @returns {Instance} */
  static get default() {
    if (defaultFlake !== undefined) return defaultFlake;
    if (opening !== undefined) {
      throw configError(
        'SnowFlake.ready() has not opened the default instance yet: await SnowFlake.ready() before the first static call',
      );
    }
    return inCall(STATICS.default, () => openDefault(readers().readOptions()));
  }

  /** @param {unknown} options */
  static configure(options) {
    if (options === undefined)
      throw configError(
        'SnowFlake.configure() needs options: pass them, or call SnowFlake.ready() to use the environment',
      );
    return inCall(STATICS.configure, () => {
      const settings = readers().readOptions(options);
      // After readOptions(), since getters of the options may have opened the default instance.
      checkNoDefault();
      return openDefault(settings);
    });
  }

  /**
   * @template F
   * @param {F} flake
   */
  static use(flake) {
    if (!isGenerator(flake)) {
      const remedy = types.isPromise(flake) ? ': await it first' : '';
      throw argumentError(
        `SnowFlake.use() takes a SnowFlake or CachedSnowFlake of this thread and this copy of the package; it is ${describe(flake)}${remedy}`,
      );
    }
    if (isClosed(flake)) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CLOSED',
        'SnowFlake.use() takes an open instance, and this one is closed: open another one',
      );
    }
    if (flake === defaultFlake) return flake;
    const replaced = replacedIn(flake);
    if (replaced !== undefined) {
      throw argumentError(
        `SnowFlake.use() needs an instance with its own methods, and ${replaced} of this one was replaced: static calls would not follow. Put a mock in the place of SnowFlake.${replaced} instead; in a subclass, give the field another name`,
      );
    }
    inCall(STATICS.use, checkNoDefault);
    return setDefault(flake);
  }

  /**
   * @param {unknown} [options]
   * @returns {Promise<Instance>}
   */
  static async ready(options) {
    if (options !== undefined) {
      throw argumentError(
        'SnowFlake.ready() takes no options: call SnowFlake.use(await SnowFlake.lease(url, options)), or SnowFlake.configure(options)',
      );
    }
    if (defaultFlake !== undefined && hasDefault()) return defaultFlake;
    opening ??= openDefaultByEnvironment().finally(() => {
      opening = undefined;
    });
    return await opening;
  }

  static nextId() {
    try {
      return defaultNextId();
    } catch (failure) {
      throw toDefaultError(failure, 'nextId');
    }
  }

  static nextIdString() {
    try {
      return defaultNextIdString();
    } catch (failure) {
      throw toDefaultError(failure, 'nextIdString');
    }
  }

  static nextIdBase32() {
    return drawFromDefault('nextIdBase32');
  }

  static nextIdNumber() {
    return drawFromDefault('nextIdNumber');
  }

  /** @param {unknown} count */
  static nextIds(count) {
    return drawFromDefault('nextIds', count);
  }

  /** @param {unknown} count */
  static nextIdStrings(count) {
    return drawFromDefault('nextIdStrings', count);
  }

  static async nextIdAsync() {
    try {
      return await drawFromDefault('nextIdAsync');
    } catch (failure) {
      throw toDefaultError(failure, 'nextIdAsync');
    }
  }

  /** @param {unknown} time */
  static floorId(time) {
    return STATICS.default().floorId(time);
  }

  /**
   * @param {unknown} id
   * @param {unknown} [layout]
   */
  static parse(id, layout) {
    if (layout !== undefined) return parse(id, ofLayouts().readLayout(layout));
    return parse(id, defaultFlake?.layout ?? layouts.node);
  }
}

/**
 * The static members, before a test can replace them. The stacks of errors begin with their callers.
 */
const STATICS = /** @type {Statics} */ (/** @type {object} */ ({ __proto__: null }));
for (const [name, how] of Object.entries(Object.getOwnPropertyDescriptors(SnowFlake))) {
  STATICS[name] = how.value ?? how.get;
}

module.exports = { SnowFlake, presentDefault };
