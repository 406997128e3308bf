'use strict';
// Limits of the time that calls may take.

const { clearTimeout, setTimeout } = require('./time.js');

/** @import { Timers } from '../types.js' */

const { AbortController } = globalThis;

class CallTimeout extends Error {
  /** @param {number} ms */
  constructor(ms) {
    super(`no answer within ${ms} ms`);
    this.ms = ms;
  }
}

/**
 * Runs a call until it settles or the signal aborts.
 * @template T
 * @param {AbortSignal} signal
 * @param {() => Promise<T> | T} call
 */
async function untilAborted(signal, call) {
  signal.throwIfAborted();
  let abort = () => {};
  /** @type {Promise<never>} */
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

/** The number of parts of a time limit. */
const PARTS = 10;

/**
 * Calls `end` after this process has run for `ms`. A time in which the process was stopped, or its event loop was busy,
 * counts as one part, since after it Node runs timers before it reads the replies that have arrived.
 * @param {number} ms
 * @param {() => void} end
 * @param {Timers} [by] the timers; of js/runtime/time.js by default
 * @returns a function that cancels the limit
 */
function startLimit(ms, end, by = { setTimeout, clearTimeout }) {
  let left = PARTS;
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const next = () => {
    timer = by.setTimeout(() => (--left > 0 ? next() : end()), ms / PARTS);
  };
  next();
  return () => by.clearTimeout(timer);
}

/**
 * Runs a call until it settles or its signal aborts: after `ms`, as startLimit() counts them.
 * @template T
 * @param {number} ms
 * @param {(signal: AbortSignal) => Promise<T> | T} call
 * @param {AbortController} [limit] the signal's controller, for callers that abort it for other reasons, too
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

module.exports = { CallTimeout, runWithin, startLimit, untilAborted };
