'use strict';
// `snowdrift/nestjs`: a module that opens an application's generator, makes it the default instance, and closes it
// at shutdown.

const { CachedSnowFlake } = require('./cached.js');
const { SnowFlakeError, configError, describe } = require('./errors.js');
const { ASYNC_DISPOSE } = require('./generator/generator.js');
const { OWN_KEYS } = require('./generator/options.js');
const { environmentServer } = require('./stores/url.js');
const { SnowFlake } = require('./snowflake.js');

/** The provider of the generator's options. */
const OPTIONS = Symbol('snowdrift options');

/** Closes the generator after the last request. */
class Closer {
  constructor(flake) {
    this.flake = flake;
  }

  async onApplicationShutdown() {
    await this.flake[ASYNC_DISPOSE]();
  }
}

async function open(Class, { from, ...options }) {
  const mayLease = OWN_KEYS.every((name) => options[name] === undefined);
  const store = from === undefined && mayLease ? environmentServer() : from;
  return store === undefined ? new Class(options) : await Class.lease(store, options);
}

async function provide(Class, isDefault, options) {
  const flake = await open(Class, options);
  if (!isDefault) return flake;
  try {
    return SnowFlake.use(flake);
  } catch (failure) {
    await flake.close();
    if (failure.code !== 'ERR_SNOWFLAKE_CONFLICT') throw failure;
    throw new SnowFlakeError(
      failure.code,
      `SnowFlakeModule cannot make its instance the default one: ${failure.message}. If that default instance is intended, or several modules have one each, pass isDefault: false`,
    );
  }
}

/** Separates the module's options from the generator's. */
function readModuleOptions({ cached = false, isGlobal = true, isDefault = true, ...rest }, caller) {
  for (const [name, value] of Object.entries({ cached, isGlobal, isDefault })) {
    if (typeof value !== 'boolean') {
      throw configError(`${name} of ${caller} must be true or false; it is ${describe(value)}`);
    }
  }
  return { Class: cached ? CachedSnowFlake : SnowFlake, isDefault, isGlobal, rest };
}

class SnowFlakeModule {
  static forRoot(options = {}) {
    const { rest, ...module } = readModuleOptions(options, 'forRoot()');
    return createModule(module, [], { provide: OPTIONS, useValue: rest });
  }

  static forRootAsync(options) {
    const { rest, ...module } = readModuleOptions(options ?? {}, 'forRootAsync()');
    const { imports = [], inject = [], useFactory } = rest;
    if (typeof useFactory !== 'function') {
      throw configError(
        `forRootAsync() needs useFactory, which returns the options; it is ${describe(useFactory)}`,
      );
    }
    return createModule(module, imports, { provide: OPTIONS, inject, useFactory });
  }
}

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
        useFactory: (given) => provide(Class, isDefault, given ?? {}),
      },
      { provide: Closer, inject: [Class], useFactory: (flake) => new Closer(flake) },
    ],
    exports: [Class],
  };
}

module.exports = { SnowFlakeModule };
