'use strict';
// `snowdrift/nestjs`: a module that provides the generator of an application, and closes it when the
// application has shut down.

const { CachedSnowFlake } = require('./cached.js');
const { configError, shown } = require('./errors.js');
const { ASYNC_DISPOSE } = require('./instance.js');
const { SnowFlake } = require('./snowflake.js');

/** What the options of the generator were given as. */
const OPTIONS = Symbol('snowdrift options');

/** Gives up the slot when no request is being served any more. */
class Closing {
  constructor(flake) {
    this.flake = flake;
  }

  async onApplicationShutdown() {
    await this.flake[ASYNC_DISPOSE]();
  }
}

async function open(Class, { from, ...options }) {
  return from === undefined ? new Class(options) : await Class.lease(from, options);
}

/** Of what forRoot() and forRootAsync() are given, that which is about the module. */
function readModule({ cached = false, isGlobal = true, ...rest }, what) {
  for (const [name, value] of Object.entries({ cached, isGlobal })) {
    if (typeof value !== 'boolean') {
      throw configError(`${name} of ${what} must be true or false; it is ${shown(value)}`);
    }
  }
  return { Class: cached ? CachedSnowFlake : SnowFlake, isGlobal, rest };
}

class SnowFlakeModule {
  static forRoot(options = {}) {
    const { Class, isGlobal, rest } = readModule(options, 'forRoot()');
    return assemble(Class, isGlobal, [], { provide: OPTIONS, useValue: rest });
  }

  static forRootAsync(options) {
    const { Class, isGlobal, rest } = readModule(options ?? {}, 'forRootAsync()');
    const { imports = [], inject = [], useFactory } = rest;
    if (typeof useFactory !== 'function') {
      throw configError(
        `forRootAsync() needs useFactory, which returns the options; it is ${shown(useFactory)}`,
      );
    }
    return assemble(Class, isGlobal, imports, { provide: OPTIONS, inject, useFactory });
  }
}

function assemble(Class, isGlobal, imports, options) {
  return {
    module: SnowFlakeModule,
    global: isGlobal,
    imports,
    providers: [
      options,
      { provide: Class, inject: [OPTIONS], useFactory: (given) => open(Class, given ?? {}) },
      { provide: Closing, inject: [Class], useFactory: (flake) => new Closing(flake) },
    ],
    exports: [Class],
  };
}

module.exports = { SnowFlakeModule };
