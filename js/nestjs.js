'use strict';
// The exports of `snowdrift/nestjs`: a module that opens an application's generator, makes it the default instance, and
// closes it at shutdown; pipes; and a health indicator.

/**
 * @import { SnowFlakeErrorCode } from './types.js'
 *
 * An instance of either class, and what opens one.
 * @typedef {typeof SnowFlake | typeof CachedSnowFlake} FlakeClass
 * @typedef {InstanceType<FlakeClass>} Flake
 *
 * The module's own options, once read; and those of the generator, which its class checks.
 * @typedef {{ Class: FlakeClass, isDefault: boolean, isGlobal: boolean }} Module
 * @typedef {{ [name: string]: unknown }} Options
 *
 * The options of forRootAsync(), and a provider of NestJS.
 * @typedef {{ imports?: unknown[], inject?: unknown[], useFactory?: unknown }} Factory
 * @typedef {{ provide: unknown, inject?: unknown[], useFactory?: Function, useValue?: unknown }} Provider
 */

const { CachedSnowFlake, RING_KEYS } = require('./cached.js');
const { optionsOf } = require('./messages/checks.js');
const { SnowFlakeError, configError, describe } = require('./messages/errors.js');
const { ALL_KEYS } = require('./generator/options.js');
const { NONE, ownOf, propertyOf } = require('./ids/properties.js');
const { SnowFlakeHealthIndicator } = require('./nestjs/health.js');
const { ParsePublicIdPipe, ParseSnowFlakePipe } = require('./nestjs/pipes.js');
const { environmentServer } = require('./stores/url.js');
const { SnowFlake } = require('./snowflake.js');

/** The provider of the generator's options. */
const OPTIONS = Symbol('snowdrift options');

const MODULE_KEYS = ['cached', 'isGlobal', 'isDefault'];
const FACTORY_KEYS = ['imports', 'inject', 'useFactory'];
/** The options of SnowFlake.lease() and of both constructors, each of which checks its own. */
const GENERATOR_KEYS = ['from', ...ALL_KEYS, ...RING_KEYS];

/**
 * The default instance of a start that has not finished. NestJS does not report a failed start. So if another start
 * begins, this one counts as failed; if it goes on nevertheless, it is refused at its end.
 * @type {Flake | undefined}
 */
let starting;
/** The instances that were closed because their start counts as failed. */
const ofFailed = new WeakSet();

/** Closes the default instance of an unfinished start, before another start opens one. */
async function closeUnfinished() {
  const flake = starting;
  starting = undefined;
  if (flake === undefined) return;
  ofFailed.add(flake);
  await flake.close();
}

/** The provider that closes the generator after the last request. */
class Closer {
  /** @param {Flake} flake */
  constructor(flake) {
    this.flake = flake;
  }

  onModuleInit() {
    if (!ofFailed.has(this.flake)) return;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_CONFLICT',
      'another start of a SnowFlakeModule began before this one had finished, and its instance is the default one: start one application after the other, or pass isDefault: false to all but one',
    );
  }

  onApplicationBootstrap() {
    if (starting === this.flake) starting = undefined;
  }

  async onApplicationShutdown() {
    // A test may have replaced the instance by null, or by a mock without this method.
    const { flake } = this;
    if (Object(flake) === flake && typeof propertyOf(flake, 'close') === 'function')
      await flake.close();
  }
}

/**
 * @param {FlakeClass} Class
 * @param {Options} given
 * @returns {Promise<Flake>}
 */
async function open(Class, given) {
  const { from, ...rest } = ownOf(given);
  const options = ownOf(rest);
  const mayLease = ['state', 'lease', 'clock'].every((name) => options[name] === undefined);
  const isLeased = from !== undefined || (mayLease && environmentServer() !== undefined);
  return isLeased ? await Class.lease(from, options) : new Class(options);
}

/**
 * @param {FlakeClass} Class
 * @param {boolean} isDefault
 * @param {Options} options
 */
async function provide(Class, isDefault, options) {
  if (!isDefault) return await open(Class, options);
  // All modules of one application start in one turn, so a second module is refused below.
  await closeUnfinished();
  const flake = await open(Class, options);
  try {
    starting = SnowFlake.use(flake);
    return flake;
  } catch (failure) {
    await flake.close();
    const { code, message } = /** @type {{ code?: SnowFlakeErrorCode, message: string }} */ (
      failure
    );
    if (code !== 'ERR_SNOWFLAKE_CONFLICT') throw failure;
    throw new SnowFlakeError(
      code,
      `SnowFlakeModule cannot make its instance the default one: ${message}. If that default instance is intended, or several modules have one each, pass isDefault: false`,
    );
  }
}

/**
 * Separates the module's own options from the others, whose names are `keys`.
 * @param {unknown} options
 * @param {string} caller
 * @param {string[]} keys
 * @returns {Module & { rest: Options }}
 */
function readModuleOptions(options, caller, keys) {
  const given = optionsOf(options, `options of ${caller}`, [...MODULE_KEYS, ...keys]);
  const { cached = false, isGlobal = true, isDefault = true, ...rest } = given;
  for (const [name, value] of Object.entries({ cached, isGlobal, isDefault })) {
    if (typeof value !== 'boolean') {
      throw configError(`${name} of ${caller} must be true or false; it is ${describe(value)}`);
    }
  }
  const Class = cached ? CachedSnowFlake : SnowFlake;
  return { Class, isDefault: isDefault === true, isGlobal: isGlobal === true, rest };
}

class SnowFlakeModule {
  /** @param {unknown} [options] */
  static forRoot(options = NONE) {
    const { rest, ...module } = readModuleOptions(options, 'forRoot()', GENERATOR_KEYS);
    return createModule(module, [], { provide: OPTIONS, useValue: rest });
  }

  /** @param {unknown} options */
  static forRootAsync(options) {
    const { rest, ...module } = readModuleOptions(options, 'forRootAsync()', FACTORY_KEYS);
    const { imports = [], inject = [], useFactory } = /** @type {Factory} */ (ownOf(rest));
    if (typeof useFactory !== 'function') {
      throw configError(
        `forRootAsync() needs useFactory, which returns the options; it is ${describe(useFactory)}`,
      );
    }
    const read = async (/** @type {unknown[]} */ ...injected) =>
      optionsOf(await useFactory(...injected), 'the result of useFactory()', GENERATOR_KEYS);
    return createModule(module, imports, { provide: OPTIONS, inject, useFactory: read });
  }
}

/**
 * @param {Module} module
 * @param {unknown[]} imports
 * @param {Provider} options
 */
function createModule({ Class, isDefault, isGlobal }, imports, options) {
  return {
    module: SnowFlakeModule,
    global: isGlobal,
    imports,
    providers: [
      options,
      {
        provide: Class,
        inject: [OPTIONS],
        useFactory: (/** @type {Options} */ given) => provide(Class, isDefault, given),
      },
      {
        provide: Closer,
        inject: [Class],
        useFactory: (/** @type {Flake} */ flake) => new Closer(flake),
      },
    ],
    exports: [Class],
  };
}

/** @satisfies {Record<keyof typeof import('./nestjs.js'), unknown>} */
module.exports = {
  ParsePublicIdPipe,
  ParseSnowFlakePipe,
  SnowFlakeHealthIndicator,
  SnowFlakeModule,
};
