'use strict';
// Timers, clocks and times as text. Timers and clocks are as they were when snowdrift was loaded. Test frameworks replace the global ones by fakes,
// and leases need renewals all the same.

const { clearTimeout, setTimeout } = require('node:timers');

const { AbortController } = globalThis;

/** Unix ms. */
const { now: unixNow } = Date;

/**
 * As unixNow(), for blocks of IDs that live as long as its ms. Undefined where it may be, or become, a fake
 * that stands still: Date.now of a test framework, or Bun's, which `setSystemTime` sets.
 */
const isNative =
  /\[native code\]/.test(Function.prototype.toString.call(unixNow)) &&
  process.versions.bun === undefined;
const blockNow = isNative ? unixNow : undefined;

// The global `performance` would take 2 ms to load.
const { bigint: monotonicNs } = process.hrtime;

/** ms since some moment. Runs evenly, also when the wall clock is set. */
const monotonic = () => Number(monotonicNs()) / 1e6;

/** Whole ms since some moment, the same for all processes of the machine. */
const hostMonotonic = () => Number(monotonicNs() / 1_000_000n);

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

/**
 * Runs a call until it settles or its signal aborts, which it does after `ms`.
 * @param limit the signal's controller, for a call that is also abandoned for other reasons
 */
async function runWithin(ms, call, limit = new AbortController()) {
  const { signal } = limit;
  const timer = setTimeout(() => limit.abort(new CallTimeout(ms)), ms);
  try {
    return await untilAborted(signal, () => call(signal));
  } finally {
    clearTimeout(timer);
  }
}

module.exports = {
  CallTimeout,
  blockNow,
  callAtEndOfTurn,
  clearTimeout,
  hostMonotonic,
  moment,
  monotonic,
  pause,
  runWithin,
  setTimeout,
  unixNow,
  untilAborted,
};
