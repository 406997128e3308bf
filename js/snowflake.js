'use strict';
// The class as applications see it.

const { SnowFlakeError, configError } = require('./errors.js');
const { Instance, parse } = require('./instance.js');
const { openLease, openNow, openedFor, prepare } = require('./opening.js');
const {
  layouts,
  readEngineOptions,
  readLayout,
  readLeaseOptions,
  readOptions,
} = require('./options.js');

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

class SnowFlake extends Instance {
  constructor(options) {
    super(openedFor(options) ?? openNow(readOptions(options)));
  }

  static async lease(store, options) {
    const opened = await openLease(
      store,
      (directory) => readLeaseOptions(directory, options),
      () => readEngineOptions(options),
    );
    return new SnowFlake(prepare(opened));
  }

  static get default() {
    return (
      byDefault ?? setDefault(new SnowFlake(prepare(openNow(readOptions(), { common: true }))))
    );
  }

  static configure(options) {
    if (options === undefined) throw configError('SnowFlake.configure() needs options');
    const settings = readOptions(options);
    // Looked at after the options, whose getters may have drawn by it.
    if (byDefault !== undefined && !byDefault.isClosed) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_CONFLICT',
        'the default instance is in use already: call SnowFlake.configure() once, before the first static call, or close SnowFlake.default first',
      );
    }
    return setDefault(new SnowFlake(prepare(openNow(settings, { common: true }))));
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
