'use strict';
// UidGenerator's CachedUidGenerator: IDs by a ring that a native thread fills ahead.

const { configError } = require('./errors.js');
const { Instance, parse } = require('./instance.js');
const { openLease, openNow, openedFor, prepare } = require('./opening.js');
const {
  ENGINE_KEYS,
  OPTION_KEYS,
  choice,
  layouts,
  propertiesOf,
  readEngineOptions,
  readLayout,
  readLeaseOptions,
  readOptions,
  wholeNumber,
} = require('./options.js');

const RING_KEYS = [
  'boostPower',
  'paddingFactor',
  'scheduleInterval',
  'maxAge',
  'onRejectedPut',
  'onRejectedTake',
];

/** UidGenerator's. */
const BOOST_POWER = 3;
const PADDING_FACTOR = 50;

/** ms. */
const USUAL_MAX_AGE = 1000;
const MOST_MAX_AGE = 31_536_000_000;
const MOST_INTERVAL = 86_400_000;

/**
 * Settings with a ring.
 * @param read makes settings of the options that are not about the ring
 */
function readCached(options = {}, read) {
  const keys = [...OPTION_KEYS, ...ENGINE_KEYS, ...RING_KEYS];
  const given = Object.entries(propertiesOf(options, 'options', keys, configError)).filter(
    ([, value]) => value !== undefined,
  );
  const isOfRing = ([key]) => RING_KEYS.includes(key);
  const settings = read(Object.fromEntries(given.filter((entry) => !isOfRing(entry))));
  if (settings.clock !== undefined) {
    throw configError(
      'a CachedSnowFlake counts its ticks, which no clock option can tell: leave out clock, or use SnowFlake',
    );
  }
  const { boostPower = BOOST_POWER, ...ring } = Object.fromEntries(given.filter(isOfRing));
  wholeNumber('boostPower', boostPower, 0, 24);
  const {
    paddingFactor = PADDING_FACTOR,
    scheduleInterval = 0,
    maxAge = Math.max(USUAL_MAX_AGE, settings.layout.tickMs * 2 ** boostPower),
    onRejectedPut = 'discard',
    onRejectedTake = 'wait',
  } = ring;
  wholeNumber('paddingFactor', paddingFactor, 0, 100);
  wholeNumber('scheduleInterval', scheduleInterval, 0, MOST_INTERVAL);
  wholeNumber('maxAge', maxAge, 0, MOST_MAX_AGE);
  if (typeof onRejectedPut !== 'function') choice('onRejectedPut', onRejectedPut, ['discard']);
  if (typeof onRejectedTake !== 'function') {
    choice('onRejectedTake', onRejectedTake, ['throw', 'wait']);
  }
  return {
    settings: { ...settings, ring: { boostPower, paddingFactor, scheduleInterval, maxAge } },
    rejected: { onRejectedPut, onRejectedTake },
  };
}

class CachedSnowFlake extends Instance {
  constructor(options) {
    const { opened, rejected } = openedFor(options) ?? openCached(options);
    super(opened, rejected.onRejectedTake);
    if (typeof rejected.onRejectedPut === 'function') {
      const { onRejectedPut } = rejected;
      opened.channel.onRejectedPut(() => onRejectedPut(this.stats()));
    }
  }

  static async lease(store, options) {
    let rejected;
    const withRing = (read) => {
      const cached = readCached(options, read);
      rejected = cached.rejected;
      return cached.settings;
    };
    const opened = await openLease(
      store,
      (directory) => withRing((rest) => readLeaseOptions(directory, rest)),
      () => withRing(readEngineOptions),
    );
    return new CachedSnowFlake(prepare({ opened, rejected }));
  }

  static parse(id, layout) {
    return parse(id, layout === undefined ? layouts.node : readLayout(layout));
  }
}

function openCached(options) {
  const { settings, rejected } = readCached(options, readOptions);
  return { opened: openNow(settings), rejected };
}

module.exports = { CachedSnowFlake };
