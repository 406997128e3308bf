'use strict';
// Calls that wait in JavaScript: nextIdAsync(), and those of an instance with the clock option.

const { ownOf } = require('../ids/properties.js');
const native = require('../runtime/native.js');
const time = require('../runtime/time.js');
const { readClock } = require('./arguments.js');

/** @import { Reporter } from '../runtime/events.js' */
/** @import { Channel, Lease, OpenSettings, Refusal, Timers } from '../types.js' */

/** @typedef {ReturnType<typeof createOwnClock>} OwnClock */
/** @typedef {{ kind: Refusal['kind'], ms: number, spent: number }} Wait */
/** @typedef {{ waits: number, ms: number, spent: number, reason: Refusal['kind'] | undefined }} Sum */
/**
 * @typedef {object} Drawing
 * @property {() => Refusal | undefined} tryDraw
 * @property {() => bigint} take
 * @property {(refusal: Refusal) => bigint} refuse
 * @property {() => Reporter} getReporter
 */
/**
 * @typedef {object} Call
 * @property {(id: bigint) => void} resolve
 * @property {(failure: unknown) => void} reject
 * @property {Sum & { at: number }} before
 */
/**
 * @typedef {object} Queue
 * @property {boolean} isServing
 * @property {(resolve: Call['resolve'], reject: Call['reject']) => void} add
 * @property {() => void} wake
 */

/** The pause before a retry while a lease is being renewed, ms. */
const RENEWAL_MS = 5;

/** The longest pause before a retry, ms. The clock may be set at any time. */
const LONGEST_PAUSE_MS = 1000;

/** The shortest time that shows whether a clock of whole ms runs, ms. */
const SURE_MS = 3;

/**
 * @param {Refusal} refusal
 * @param {number} ms
 * @param {Pick<OpenSettings, 'clockBack'>} settings
 */
function mayWaitFor({ kind, retryAfterMs = Number.POSITIVE_INFINITY }, ms, { clockBack }) {
  return retryAfterMs <= ms && !(kind === 'clock-back' && clockBack === 'throw');
}

/**
 * Reserves blocks by the application's clock.
 * @param {Channel} channel
 * @param {OpenSettings} settings
 * @param {Float64Array} reserved the ms of the block. Native code takes the clock's reading from it
 * @param {() => void} drop gives back the rest of the block
 * @param {() => Reporter} getReporter
 * @returns `refill` reserves once; `refillOrWait` may wait first, in real time, since the clock need not follow real
 *   time
 */
function createOwnClock(channel, settings, reserved, drop, getReporter) {
  function refill() {
    const now = readClock(/** @type {() => unknown} */ (settings.clock));
    // The clock function may have called this instance.
    drop();
    reserved[0] = now;
    return channel.tryRefill(channel.memory);
  }

  function refillOrWait() {
    /** @type {Refusal['kind'] | undefined} */
    let reason;
    let waits = 0;
    for (; ; waits++) {
      const length = refill();
      const refusal = length === 0 ? ownOf(channel.refusal()) : undefined;
      if (refusal === undefined || !mayWaitFor(refusal, settings.maxWait - waits, settings)) {
        if (waits > 0) getReporter().noteWaits(reason, waits, waits, true);
        return waits > 0 ? -Math.abs(length) : length;
      }
      reason = refusal.kind;
      native.sleep(1);
    }
  }

  return { refill, refillOrWait };
}

/**
 * The waiting calls of one instance's nextIdAsync().
 * @param {OpenSettings} settings
 * @param {Lease | undefined} lease
 * @param {Drawing} drawing `tryDraw` makes the next ID available, or returns the refusal; `take` returns that ID; `refuse`
 *   throws, or returns an ID of the application; `getReporter` returns the instance's reporter
 * @param {Pick<Timers, 'setTimeout' | 'clearTimeout'> & Pick<typeof time, 'areTimersFake' | 'monotonic'>} [timers] the functions
 *   of js/runtime/time.js
 * @returns {Queue} `add` takes the functions that settle a call's promise; `wake` makes the calls retry at once
 */
function createQueue(settings, lease, drawing, timers = time) {
  const { tryDraw, take, refuse, getReporter } = drawing;
  const { areTimersFake, clearTimeout, monotonic, setTimeout } = timers;
  /** @type {Queue} */
  const queue = { isServing: false, add, wake: () => {} };
  /**
   * The waiting calls, in the order of their arrival.
   * @type {Set<Call>}
   */
  const calls = new Set();
  /**
   * All waits so far: their number, their time, and the part of the time that counts towards maxWait.
   * @type {Sum}
   */
  const sum = { reason: undefined, waits: 0, ms: 0, spent: 0 };
  /**
   * The last look at the clock, all in ms: `at`, the monotonic time after it; `clock`, its reading; `next`, its reading
   * when the next tick begins; `paused`, the pauses since then that `spent` does not include.
   * @type {{ at: number, clock: number, next: number, paused: number } | undefined}
   */
  let look;

  /**
   * @param {Call['resolve']} resolve
   * @param {Call['reject']} reject
   */
  function add(resolve, reject) {
    calls.add({ resolve, reject, before: { ...sum, at: monotonic() } });
    if (!queue.isServing) serve();
  }

  /** Serves waiting calls in the order of their arrival. */
  async function serve() {
    queue.isServing = true;
    look = undefined;
    // This also visits calls that are added meanwhile.
    for (const call of calls) {
      for (let wait = settle(call); wait !== undefined; wait = settle(call)) {
        getReporter().report();
        await pause(wait);
      }
      calls.delete(call);
    }
    queue.isServing = false;
    getReporter().report();
  }

  /**
   * Settles a call with its ID or its error. If it must wait first, returns the wait.
   * @param {Call} call
   * @returns {Wait | undefined}
   */
  function settle({ resolve, reject, before }) {
    try {
      const began = monotonic();
      const refusal = tryDraw();
      const wait = refusal && waitFor(refusal, before, began);
      if (wait !== undefined) return wait;
      resolve(refusal === undefined ? take() : refuse(refusal));
    } catch (failure) {
      reject(failure);
    }
    getReporter().noteWaits(sum.reason, sum.waits - before.waits, sum.ms - before.ms, false);
    return undefined;
  }

  /**
   * The wait until the next try; undefined if it is too long. `began` is the time at which the last try began.
   * @param {Refusal} refusal
   * @param {Call['before']} before
   * @param {number} began
   * @returns {Wait | undefined}
   */
  function waitFor(refusal, before, began) {
    // A lease that lost its slot, and has no other one yet, has no open generator.
    const isLost = refusal.kind === 'closed' && lease?.report().state === 'lost';
    const kind = isLost ? 'ceiling' : refusal.kind;
    // The duration of a renewal is unknown.
    if (kind === 'ceiling' && lease?.wantRenewal) refusal.retryAfterMs ??= RENEWAL_MS;
    const isTick = kind === 'exhausted' && refusal.retryAfterMs !== undefined;
    if (isTick) lookAt(refusal, began);
    // A call has not spent more than its age: a pause may have begun before the call was added.
    const spent = Math.min(sum.spent - before.spent, monotonic() - before.at);
    const left = settings.maxWait - spent;
    const ms = Math.min(refusal.retryAfterMs ?? LONGEST_PAUSE_MS, LONGEST_PAUSE_MS);
    // An exhausted tick ends by itself while the clock runs. All other waits follow the rules of nextId().
    if (!isTick) return mayWaitFor(refusal, left, settings) ? { kind, ms, spent: ms } : undefined;
    if (left >= 0) return { kind, ms, spent: 0 };
    refusal.isStanding = true;
    return undefined;
  }

  /**
   * Pauses for an exhausted tick count towards maxWait if the clock ran at less than a quarter of the speed of the
   * monotonic time: it is stopped, or was set back within the tick. Timers and whole ms are too inexact for a stricter
   * check. After a clock rollback under another counter value, the next tick is an earlier one. A process that is
   * stopped next to a look at the clock loses no time between two looks.
   * @param {Refusal} refusal
   * @param {number} began
   */
  function lookAt({ now: clock, retryAfterMs = 0 }, began) {
    const at = monotonic();
    const next = clock + retryAfterMs;
    if (look === undefined || next < look.next) look = { at, clock, next, paused: 0 };
    const passed = began - look.at;
    if (passed < SURE_MS) return;
    const behind = passed - (clock - look.clock);
    if (behind > passed * 0.75) sum.spent += Math.min(behind, look.paused);
    look = { at, clock, next, paused: 0 };
  }

  /** @param {Wait} wait */
  async function pause({ kind, ms, spent }) {
    sum.reason = kind;
    sum.waits++;
    sum.ms += ms;
    sum.spent += spent;
    if (look !== undefined) look.paused += ms - spent;
    // Fake timers would fire only if the test advanced them. The test replaced the timers before it loaded snowdrift.
    if (areTimersFake()) {
      native.sleep(ms);
      return;
    }
    await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), ms);
      queue.wake = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }

  return queue;
}

module.exports = { createOwnClock, createQueue };
