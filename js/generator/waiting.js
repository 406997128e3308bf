'use strict';
// Draws that wait in JavaScript: of nextIdAsync(), and of an instance with a clock of its own.

const native = require('../native.js');
const { clearTimeout, setTimeout } = require('../time.js');
const { readClock } = require('./arguments.js');

/** The pause before another try while a lease is being renewed, ms. */
const RENEWAL_MS = 5;

function mayWaitFor({ kind, retryAfterMs }, ms, { clockBack }) {
  return retryAfterMs <= ms && !(kind === 'clock-back' && clockBack === 'throw');
}

/**
 * Reserves blocks by the application's clock.
 * @param drop gives back the rest of the block
 * @returns `refill` reserves once; `refillOrWait` waits in real time, since the clock may be any clock
 */
function createOwnClock(channel, settings, drop, getReporter) {
  function refill() {
    const now = readClock(settings.clock);
    // The clock itself may have drawn from this instance.
    drop();
    channel.setClock(now);
    return channel.tryRefill(channel.memory);
  }

  function refillOrWait() {
    let reason;
    let waits = 0;
    for (; ; waits++) {
      const length = refill();
      const refusal = length === 0 ? channel.refusal() : undefined;
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
 * @param drawing `tryDraw` makes the next ID available or returns the refusal, `take` returns that ID,
 *   `refuse` throws or returns an ID of the application; `getReporter` returns the instance's reporter
 * @returns `add` takes the functions that settle a call's promise; `wake` has the calls try again at once
 */
function createQueue(settings, lease, { tryDraw, take, refuse, getReporter }) {
  const queue = { isServing: false, add, wake: () => {} };
  /** In the order of their arrival. */
  const calls = new Set();
  /** All waits so far: number, time, and the part of the time that counts towards maxWait. */
  const sum = { reason: undefined, waits: 0, ms: 0, spent: 0 };

  function add(resolve, reject) {
    calls.add({ resolve, reject, before: { ...sum } });
    if (!queue.isServing) serve();
  }

  /** Serves waiting calls, first come first served. */
  async function serve() {
    queue.isServing = true;
    // Also visits calls added meanwhile.
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

  /** Gives a call its ID or its error. Returns the wait that must come first, if there is one. */
  function settle({ resolve, reject, before }) {
    try {
      const refusal = tryDraw();
      const wait = refusal && waitFor(refusal, settings.maxWait - (sum.spent - before.spent));
      if (wait !== undefined) return wait;
      resolve(refusal === undefined ? take() : refuse(refusal));
    } catch (failure) {
      reject(failure);
    }
    getReporter().noteWaits(sum.reason, sum.waits - before.waits, sum.ms - before.ms, false);
    return undefined;
  }

  /** The wait until the next try; undefined if it is too long. */
  function waitFor(refusal, left) {
    // A lease that has lost its slot, and has no other yet, has no open generator.
    const isLost = refusal.kind === 'closed' && lease?.report().state === 'lost';
    const kind = isLost ? 'ceiling' : refusal.kind;
    // The time that a store takes is unknown.
    if (kind === 'ceiling' && lease?.wantRenewal) refusal.retryAfterMs ??= RENEWAL_MS;
    const ms = refusal.retryAfterMs;
    // An exhausted tick ends by itself. Anything else follows the rules of nextId().
    if (kind === 'exhausted' && ms !== undefined) return { kind, ms, spent: 0 };
    return mayWaitFor(refusal, left, settings) ? { kind, ms, spent: ms } : undefined;
  }

  async function pause({ kind, ms, spent }) {
    sum.reason = kind;
    sum.waits++;
    sum.ms += ms;
    sum.spent += spent;
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      queue.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  return queue;
}

module.exports = { createOwnClock, createQueue };
