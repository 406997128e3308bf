'use strict';
// Like UidGenerator's CachedUidGenerator: IDs from a ring that a native thread fills ahead of demand.

/**
 * @import { OwnSettings, StoreSettings } from './types.js'
 * @import { OnRejected } from './generator/draw.js'
 * @import { Rejected } from './generator/opening.js'
 */

const { configError, inCall } = require('./messages/errors.js');
const { Generator, checkLeaseCall, checkOverrides, parse } = require('./generator/generator.js');
const { layouts } = require('./ids/presets.js');
const { NONE } = require('./ids/properties.js');

// Compiled when the first instance is opened.
const checks = () => require('./messages/checks.js');
const openers = () => require('./generator/opening.js');
const readers = () => require('./generator/options.js');
const ofLayouts = () => require('./ids/layouts.js');

const RING_KEYS = [
  'boostPower',
  'paddingFactor',
  'scheduleIntervalMs',
  'maxAge',
  'onRejectedPut',
  'onRejectedTake',
];

/** The defaults of UidGenerator. */
const BOOST_POWER = 3;
const PADDING_FACTOR = 50;

/** The default and the largest values, in ms. */
const USUAL_MAX_AGE = 1000;
const MOST_MAX_AGE = 31_536_000_000;
const MOST_INTERVAL = 86_400_000;

/**
 * Returns settings with a ring.
 * @template {OwnSettings | StoreSettings} Settings
 * @param {unknown} options
 * @param {(others: object) => Settings} read returns the settings of the other options
 * @returns {{ settings: Settings, rejected: Rejected }}
 */
function readCached(options = NONE, read) {
  const { choice, optionsOf, wholeNumber } = checks();
  const keys = [...readers().ALL_KEYS, ...RING_KEYS];
  const {
    boostPower = BOOST_POWER,
    paddingFactor = PADDING_FACTOR,
    scheduleIntervalMs = 0,
    maxAge: ownMaxAge,
    onRejectedPut = 'discard',
    onRejectedTake = 'wait',
    ...others
  } = optionsOf(options, 'options', keys);
  const settings = read(others);
  if (settings.clock !== undefined) {
    throw configError(
      'a CachedSnowFlake cannot use the option clock, since it counts its ticks: leave out clock, or use SnowFlake',
    );
  }
  const power = wholeNumber('boostPower', boostPower, 0, 24);
  const usual = Math.max(USUAL_MAX_AGE, settings.layout.tickMs * 2 ** power);
  const ring = {
    boostPower: power,
    paddingFactor: wholeNumber('paddingFactor', paddingFactor, 0, 100),
    scheduleInterval: wholeNumber('scheduleIntervalMs', scheduleIntervalMs, 0, MOST_INTERVAL),
    maxAge: wholeNumber('maxAge', ownMaxAge === undefined ? usual : ownMaxAge, 0, MOST_MAX_AGE),
  };
  if (typeof onRejectedPut !== 'function') choice('onRejectedPut', onRejectedPut, ['discard']);
  if (typeof onRejectedTake !== 'function') {
    choice('onRejectedTake', onRejectedTake, ['throw', 'wait']);
  }
  return {
    settings: { __proto__: null, ...settings, ring },
    rejected: { onRejectedPut, onRejectedTake: /** @type {OnRejected} */ (onRejectedTake) },
  };
}

class CachedSnowFlake extends Generator {
  /** @param {unknown} [options] */
  constructor(options) {
    const { prototype } = new.target;
    const open = () => {
      checkOverrides(prototype, CachedSnowFlake.prototype);
      return openCached(options);
    };
    const opened = openers().Opened.is(options) ? options : inCall(CachedSnowFlake, open);
    const { onRejectedPut, onRejectedTake } = /** @type {Rejected} */ (opened.rejected);
    super(opened, onRejectedTake);
    if (typeof onRejectedPut === 'function') {
      opened.channel.onRejectedPut(() => onRejectedPut(this.stats()));
    }
  }

  /**
   * @param {unknown} [store]
   * @param {unknown} [options]
   */
  static async lease(store, options) {
    checkLeaseCall(this, CachedSnowFlake);
    /** @type {Rejected | undefined} */
    let rejected;
    /** @type {(directory?: unknown, isOfEnvironment?: boolean, usualTtl?: unknown) => OwnSettings | StoreSettings} */
    const read = (...place) => {
      const cached = readCached(options, (rest) => readers().readLeaseOptions(rest, ...place));
      rejected = cached.rejected;
      return cached.settings;
    };
    return await openers().openLease(store, read, (opened) => {
      opened.rejected = rejected;
      return new CachedSnowFlake(opened);
    });
  }

  /**
   * @param {unknown} id
   * @param {unknown} [layout]
   */
  static parse(id, layout) {
    return parse(id, layout === undefined ? layouts.node : ofLayouts().readLayout(layout));
  }
}

/** @param {unknown} options */
function openCached(options) {
  const { settings, rejected } = readCached(options, readers().readOptions);
  const opened = openers().openNow(settings);
  opened.rejected = rejected;
  return opened;
}

module.exports = { CachedSnowFlake, RING_KEYS };
