'use strict';
// Timers, clocks and times as text. Timers and clocks are as they were when snowdrift was loaded. Test frameworks replace the global ones by fakes,
// and leases need renewals all the same. Where snowdrift was loaded after that, it finds the real ones when the fakes are gone.

const timers = require('node:timers');

const { AbortController } = globalThis;

const { now } = Date;

/** Not by `process.versions.bun`, which Object.prototype may have. */
const isRuntime = (name) => Object.hasOwn(process.versions, name);

/** Whether Date.now is real. A test framework's fake may not advance. */
const isNative = /\[native code\]/.test(Function.prototype.toString.call(now));

const systemNow = isNative ? now : () => Date.now();

/**
 * As unixNow() without injectTime(), for blocks of IDs that live as long as its ms. Undefined where it may be, or become, a fake
 * that stands still: Date.now of a test framework, or Bun's, which `setSystemTime` sets.
 */
const blockNow = isNative && !isRuntime('bun') ? now : undefined;

// The global `performance` would take 2 ms to load.
const { bigint: monotonicNs } = process.hrtime;
// Test frameworks replace process.hrtime and performance.now, and not this.
const { uptime } = process;

/** The timers of this moment, which may be fakes already. */
const found = { setTimeout: timers.setTimeout, clearTimeout: timers.clearTimeout };
/** The real ones, once they are known. */
let real;

const isNode = !isRuntime('bun') && !isRuntime('deno');

/** How many timers Node has. */
const countTimers = () =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

/** Whether Node counts a timer that this makes. It does not count fake ones. Other runtimes count none. */
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

const system = {
  unixNow: systemNow,
  monotonic: () => uptime() * 1000,
  hostMonotonic: () => Number(monotonicNs() / 1_000_000n),
  setTimeout: (callback, ms) => (findTimers() ?? timers).setTimeout(callback, ms),
  clearTimeout: (timer) => (findTimers() ?? timers).clearTimeout(timer),
};
let source = system;

/** For tests of this package: clocks and timers for all of it but the draws, or without a value the system's again. */
function injectTime(other = system) {
  source = other;
}

/** Unix ms. */
const unixNow = () => source.unixNow();
/** ms since some moment. Runs evenly, also when the wall clock is set. */
const monotonic = () => source.monotonic();
/** Whole ms since some moment, the same for all processes of the machine. */
const hostMonotonic = () => source.hostMonotonic();
const setTimeout = (callback, ms) => source.setTimeout(callback, ms);
const clearTimeout = (timer) => source.clearTimeout(timer);

/** Whether timers fire only when a test of the application advances them. */
const areTimersFake = () => source === system && findTimers() === undefined;

/** Unix ms in ISO 8601, within the range of Date. */
function moment(unixMs) {
  const date = new Date(unixMs);
  return Number.isNaN(date.getTime()) ? `${unixMs} (Unix ms)` : date.toISOString();
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const { nextTick } = process;

/**
 * Calls a function at the end of this turn: of a callback of the event loop with the microtasks that follow it.
 * Test frameworks replace timers and queueMicrotask by fakes. So an await, which nothing can replace, detects
 * that, together with process.nextTick. The tick comes first where the turn is a plain callback: before
 * microtasks that wait already.
 */
async function callAtEndOfTurn(callback) {
  nextTick(callback);
  await undefined;
  callback();
}

class CallTimeout extends Error {
  constructor(ms) {
    super(`no answer within ${ms} ms`);
    this.ms = ms;
  }
}

/** Runs a call until it settles or its signal aborts. */
async function untilAborted(signal, call) {
  signal.throwIfAborted();
  let abort;
  const aborted = new Promise((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
  });
  try {
    return await Promise.race([call(), aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** The parts of a time limit. */
const PARTS = 10;

/**
 * Calls `end` after `ms` in which this process ran. A time in which it was stopped, or its event loop busy, counts as one
 * part: after it, Node runs timers before it reads the replies that have arrived.
 * @param by the timers, or none for those of this file
 * @returns cancels that
 */
function startLimit(ms, end, by = { setTimeout, clearTimeout }) {
  let left = PARTS;
  let timer;
  const next = () => {
    timer = by.setTimeout(() => (--left > 0 ? next() : end()), ms / PARTS);
  };
  next();
  return () => by.clearTimeout(timer);
}

/**
 * Runs a call until it settles or its signal aborts, which it does after `ms`, as startLimit() counts them.
 * @param limit the signal's controller, for a call that is also abandoned for other reasons
 */
async function runWithin(ms, call, limit = new AbortController()) {
  const { signal } = limit;
  const cancel = startLimit(ms, () => limit.abort(new CallTimeout(ms)));
  try {
    return await untilAborted(signal, () => call(signal));
  } finally {
    cancel();
  }
}

module.exports = {
  CallTimeout,
  areTimersFake,
  blockNow,
  callAtEndOfTurn,
  clearTimeout,
  hostMonotonic,
  injectTime,
  moment,
  monotonic,
  pause,
  runWithin,
  setTimeout,
  startLimit,
  unixNow,
  untilAborted,
};
