'use strict';
// The real js/lease/lease.js in virtual time, on a model of the addon, by any number of simulated processes.

const { AsyncLocalStorage } = require('node:async_hooks');
const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { compileFunction } = require('node:vm');

// With the real addon, which the modules below do without.
require('../../../js/index.js');
const { modelOfNative } = require('./addon-model.js');

/** The simulated process that runs. */
const here = new AsyncLocalStorage();
/** The fleet that runs: it has `now`, and `after(ms, run, life)` for what happens later. */
let fleet;

function runFleet(one) {
  fleet = one;
}

function replaceModule(path, exports) {
  const id = require.resolve(path);
  require.cache[id] = { id, filename: id, loaded: true, exports };
}

/** Replaces functions; returns what puts them back. */
function replaceFunctions(functions) {
  const restores = functions.map(([object, name, value]) => {
    const descriptor = Object.getOwnPropertyDescriptor(object, name);
    Object.defineProperty(object, name, { value, configurable: true, writable: true });
    return () => {
      if (descriptor) Object.defineProperty(object, name, descriptor);
      else delete object[name];
    };
  });
  return () => restores.forEach((restore) => void restore());
}

// As Node's.
const timers = {
  setTimeout: (run, ms) => fleet.after(Math.max(Math.trunc(ms), 1), run, here.getStore()),
  clearTimeout: (event = {}) => Object.assign(event, { isCleared: true }),
};
const time = {};
const TIME = require.resolve('../../../js/time.js');
compileFunction(readFileSync(TIME, 'utf8'), ['module', 'require'])(time, () => timers);
replaceModule('../../../js/time.js', {
  ...time.exports,
  unixNow: () => here.getStore()?.now() ?? fleet.now,
  monotonic: () => fleet.now,
  hostMonotonic: () => fleet.now,
});
const { tickAt, tickEnd } = require('../../../js/native.js');
replaceModule('../../../js/native.js', { tickAt, tickEnd, ...modelOfNative(here) });
// Loaded with the real addon above.
for (const path of Object.keys(require.cache)) {
  if (/[\\/]js[\\/](channel\.js$|lease[\\/])/.test(path)) delete require.cache[path];
}
// Processes end when the simulation says so.
replaceModule('../../../js/lease/release-at-exit.js', { register() {}, unregister() {} });

const LEASE = require.resolve('../../../js/lease/lease.js');
const compiled = compileFunction(readFileSync(LEASE, 'utf8'), ['module', 'require'], {
  filename: LEASE,
});

/** The class, as a process of its own has it: what it keeps beside its objects is no other process's. */
function newStoreLease() {
  const module = {};
  compiled(module, createRequire(LEASE));
  return module.exports.StoreLease;
}

const { value: realPid } = Object.getOwnPropertyDescriptor(process, 'pid');
Object.defineProperty(process, 'pid', {
  get: () => here.getStore()?.pid ?? realPid,
  configurable: true,
});

module.exports = { here, newStoreLease, replaceFunctions, runFleet };
