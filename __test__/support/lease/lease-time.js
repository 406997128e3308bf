'use strict';
// The time of leases in this process, which passes when a test says so. Only the draws stay by the machine's clock, so that
// IDs end at a ceiling when that has passed it.

const assert = require('node:assert/strict');
const { afterEach, beforeEach } = require('node:test');
const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');

const { hostMonotonic, injectTime } = require('../../../js/runtime/time.js');
const { SnowFlake } = require('../support.js');

/** How much time until() lets pass, and how long it waits for something other than time, ms. */
const MOST_MS = 600_000;
const LIMIT_MS = 120_000;
/** So little passes at a time: what takes some turns of the event loop meanwhile takes no time. */
const STEP_MS = 10;

class LeaseTime {
  /** ms that have passed since the start. */
  passed = 0;
  #timers = new Set();
  #start;
  /** The condition of who has time pass. */
  #passing;

  constructor(behind) {
    this.begin(behind);
  }

  /**
   * From now on time passes by this. Its earlier timers are gone.
   * @param behind how much its clock is behind the machine's now, ms
   */
  begin(behind = 0) {
    this.#start = Date.now() - behind;
    const before = hostMonotonic();
    const timers = this.#timers;
    timers.clear();
    this.passed = 0;
    this.#passing = undefined;
    injectTime({
      unixNow: this.now,
      monotonic: () => before + this.passed,
      hostMonotonic: () => before + this.passed,
      setTimeout: (callback, ms) => {
        const timer = { at: this.passed + Math.max(1, Math.ceil(ms)), callback };
        timers.add(timer);
        return Object.assign(timer, { unref() {} });
      },
      clearTimeout: (timer) => timers.delete(timer),
    });
  }

  /** How many timers wait. */
  get waiting() {
    return this.#timers.size;
  }

  /** From now on time passes by itself. */
  end() {
    injectTime();
  }

  /** Unix ms. */
  now = () => this.#start + this.passed;

  sleep = (ms) =>
    new Promise((resolve) => this.#timers.add({ at: this.passed + ms, callback: resolve }));

  /** Runs the next timer, if one is due until then. */
  #step(until) {
    const [next] = [...this.#timers].sort((a, b) => a.at - b.at);
    if (next === undefined || next.at > until) return false;
    this.passed = Math.max(this.passed, next.at);
    this.#timers.delete(next);
    next.callback();
    return true;
  }

  /** Has so many ms pass. */
  async advance(ms) {
    const end = this.passed + ms;
    do await turn();
    while (this.#step(end));
    this.passed = end;
  }

  /** Has time pass until something holds, or a promise of it. Of several that wait at once, one has it pass, and all see each step. */
  until = async (condition) => {
    const [end, limit] = [this.passed + MOST_MS, performance.now() + LIMIT_MS];
    try {
      for (;;) {
        await turn();
        if (await condition()) return;
        assert.ok(this.passed < end && performance.now() < limit, `never: ${condition}`);
        this.#passing ??= condition;
        if (this.#passing !== condition) continue;
        await turn();
        // Without a timer, something other than time is waited for.
        if (this.#timers.size === 0) await sleep(1);
        else if (!this.#step(this.passed + STEP_MS)) this.passed += STEP_MS;
      }
    } finally {
      if (this.#passing === condition) this.#passing = undefined;
    }
  };

  /** What a promise settles with, while time passes. */
  async run(promise) {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    await this.until(() => isSettled);
    return promise;
  }
}

/**
 * Leases of a file of tests: each test begins with a time of its own, and its leases are closed after it.
 * @param defaults options of its leases
 */
function leasesInTime(defaults) {
  const open = [];
  const time = new LeaseTime();
  time.end();
  beforeEach(() => time.begin());
  afterEach(async () => {
    await time.run(Promise.all(open.splice(0).map((flake) => flake.close())));
    time.end();
  });

  async function lease(store, options) {
    const flake = await time.run(SnowFlake.lease(store, { ...defaults, ...options }));
    open.push(flake);
    return flake;
  }
  return { lease, open, time };
}

module.exports = { LeaseTime, leasesInTime };
