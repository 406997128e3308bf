'use strict';
// Timers, clocks, and times as text. The timers and clocks are those of the time when snowdrift was loaded: test
// frameworks replace the global ones by fakes, but leases need renewals. If snowdrift was loaded after such a
// replacement, it finds the real ones once the fakes are gone.

const timers = require('node:timers');

/** @import { Clocks, Timers } from '../types.js' */

const { now } = Date;

/**
 * Not `process.versions.bun`, since Object.prototype may be polluted.
 * @type {(name: string) => boolean}
 */
const isRuntime = (name) => Object.hasOwn(process.versions, name);

/** Whether Date.now is real. A test framework's fake may be stopped. */
const isNative = Function.prototype.toString.call(now).includes('[native code]');

const systemNow = isNative ? now : () => Date.now();

/**
 * Like unixNow(), but ignores injectTime(), for blocks of IDs, which are valid for one ms. Undefined if it is, or may
 * become, a stopped fake: Date.now of a test framework, or Bun's, which `setSystemTime` sets.
 */
const blockNow = isNative && !isRuntime('bun') ? now : undefined;

// The global `performance` would take 2 ms to load.
const { bigint: monotonicNs } = process.hrtime;
// Test frameworks replace process.hrtime and performance.now, but not this.
const { uptime } = process;

/** The timers at this time, which may be fakes already. */
const found = { setTimeout: timers.setTimeout, clearTimeout: timers.clearTimeout };
/**
 * The real timers, once they are known.
 * @type {Timers | undefined}
 */
let real;

const isNode = !isRuntime('bun') && !isRuntime('deno');

/** The number of active timers of Node. */
const countTimers = () =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

/**
 * Whether timers are real: then Node counts a new one. It does not count fake timers. Other runtimes count none.
 * @param {Timers} timers
 */
function areReal({ setTimeout, clearTimeout }) {
  if (!isNode) return true;
  const before = countTimers();
  const timer = setTimeout(() => {}, 1000);
  const count = countTimers();
  clearTimeout(timer);
  return count > before;
}

/** Real timers; undefined if all that can be found are fakes. */
function findTimers() {
  real ??= areReal(found) ? found : undefined;
  if (real === undefined && timers.setTimeout !== found.setTimeout) {
    const { setTimeout, clearTimeout } = timers;
    if (areReal({ setTimeout, clearTimeout })) real = { setTimeout, clearTimeout };
  }
  return real;
}

/** @type {Clocks} */
const system = {
  unixNow: systemNow,
  monotonic: () => uptime() * 1000,
  hostMonotonic: () => Number(monotonicNs() / 1_000_000n),
  setTimeout: (callback, ms) => (findTimers() ?? timers).setTimeout(callback, ms),
  clearTimeout: (timer) => (findTimers() ?? timers).clearTimeout(timer),
};
let source = system;

/**
 * For tests of this package: replaces all clocks and timers except blockNow(). Without an argument, restores the
 * system's.
 */
function injectTime(other = system) {
  source = other;
}

/** Unix ms. */
const unixNow = () => source.unixNow();
/** Monotonic ms of this process. Setting the wall clock does not change it. */
const monotonic = () => source.monotonic();
/** Monotonic whole ms, equal in all processes of the machine. */
const hostMonotonic = () => source.hostMonotonic();
/** @type {Timers['setTimeout']} */
const setTimeout = (callback, ms) => source.setTimeout(callback, ms);
/** @type {Timers['clearTimeout']} */
const clearTimeout = (timer) => source.clearTimeout(timer);

/** Whether timers fire only when a test of the application advances them. */
const areTimersFake = () => source === system && findTimers() === undefined;

/**
 * A time in ISO 8601. Outside the range of Date, the number.
 * @param {number} unixMs
 */
function moment(unixMs) {
  const date = new Date(unixMs);
  return Number.isNaN(date.getTime()) ? `${unixMs} (Unix ms)` : date.toISOString();
}

/** @type {(ms: number) => Promise<void>} */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const { nextTick } = process;

/**
 * Calls a function at the end of this turn: a callback of the event loop with the microtasks that follow it. Test
 * frameworks replace timers and queueMicrotask by fakes. So this uses an await, which cannot be replaced, together with
 * process.nextTick. If the turn is a plain callback, the tick runs first, before microtasks that wait already.
 * @param {() => void} callback
 */
async function callAtEndOfTurn(callback) {
  nextTick(callback);
  await undefined;
  callback();
}

module.exports = {
  areTimersFake,
  blockNow,
  callAtEndOfTurn,
  clearTimeout,
  hostMonotonic,
  injectTime,
  moment,
  monotonic,
  pause,
  setTimeout,
  unixNow,
};
