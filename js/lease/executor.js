'use strict';
// Does what the driver of a lease wants: makes its calls, one at a time, keeps one timer, and passes its reports on.

const { ownOf } = require('../ids/properties.js');
const { isFinal, isFormatConflict } = require('../stores/failures.js');
const { clearTimeout, hostMonotonic, setTimeout, unixNow } = require('../runtime/time.js');
const timing = require('./timing.js');

/**
 * @import { LeaseInput } from '../runtime/addon-types.d.ts'
 * @import { CallCommand, Command, LeaseDriver, LeaseInfo, LeaseReport } from '../types.js'
 */

/**
 * The lease that an executor is of.
 * @typedef {object} Executed
 * @property {() => Promise<void>} prepare called before each call
 * @property {(report: LeaseReport) => void} note throws where the slot's channel cannot be opened
 * @property {(failure: unknown) => void} fail
 * @property {() => 'opening' | LeaseInfo['state']} phase
 */

/** Of a call without a reply. */
const FAILED = Object.freeze({ __proto__: null, kind: 'failed' });
/** Of a record that is not snowdrift's. */
const FOREIGN = Object.freeze({ __proto__: null, kind: 'found', token: 'f'.repeat(16), text: '' });
const TIME = Object.freeze({ __proto__: null, kind: 'time' });
const WANTED = Object.freeze({ __proto__: null, kind: 'wanted' });
const RESTORED = Object.freeze({ __proto__: null, kind: 'restored' });
const CLOSE = Object.freeze({ __proto__: null, kind: 'close' });

class Executor {
  #driver;
  #calls;
  #lease;
  /** Why the last call failed. @type {unknown} */
  callFailure;
  /** Whether the call under way, or that is about to be made, counts as failed. */
  #isAbandoned = false;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  /** From an input of the driver until there is no call under way. */
  #isRunning = false;
  /** What the driver wants: a call stays until its reply. @type {Command | undefined} */
  #next;
  #hasEnded = false;
  /** Called when there is a slot, or the driver has ended. */
  #onSettled = () => {};
  /** Whether a caller waits for that. Then the process does not end before. */
  #isAwaited = true;

  /**
   * @param {LeaseDriver} driver
   * @param {InstanceType<typeof import('./calls.js').StoreCalls>} calls
   * @param {Executed} lease
   */
  constructor(driver, calls, lease) {
    this.#driver = driver;
    this.#calls = calls;
    this.#lease = lease;
  }

  /** Waits until the lease has a slot, or has found none. */
  begin() {
    /** @type {Promise<void>} */
    const settled = new Promise((resolve) => {
      this.#onSettled = () => {
        this.#isAwaited = false;
        resolve();
      };
    });
    this.#tell(TIME);
    return settled;
  }

  /** Ends that wait. */
  settle() {
    this.#onSettled();
  }

  /** Whether a call is under way. */
  get isRunning() {
    return this.#isRunning;
  }

  /** Renews early. */
  want() {
    this.#tell(WANTED);
  }

  /** This machine was restored from a snapshot. */
  restore() {
    this.#tell(RESTORED);
  }

  /** Stops the timer, before the end. */
  pause() {
    clearTimeout(this.#timer);
  }

  /** Frees the slot in the store. The driver gives that up after a time: then it expires. */
  async end() {
    if (this.#hasEnded) return;
    /** @type {Promise<void>} */
    const ended = new Promise((resolve) => {
      this.#onSettled = resolve;
    });
    this.#isAwaited = true;
    // A call that is abandoned takes its connection with it, and the release needs that: only for a call that it waits for.
    this.#isAbandoned = this.#next?.kind === 'call';
    this.#tell(CLOSE);
    if (this.#isAbandoned) this.#calls.abandon();
    await ended;
    // Abort calls whose results no longer matter.
    this.#calls.abandon();
  }

  /**
   * Tells the driver what happened, and does what it wants next. It never throws.
   * @param {LeaseInput} input
   */
  #tell(input) {
    // Within a call, or within a report of the driver: what it wants next follows there.
    if (this.#isRunning) {
      this.#step(input);
      return;
    }
    clearTimeout(this.#timer);
    this.#isRunning = true;
    this.#run(input).catch((failure) => {
      // A fault of this package.
      this.#next = undefined;
      this.#lease.fail(failure);
      if (['opening', 'released'].includes(this.#lease.phase())) this.#finish();
      // The driver may still wait for the reply of a call.
      else this.#wait(timing.POLL_MS, FAILED);
    });
  }

  /** @param {LeaseInput} input */
  async #run(input) {
    let next = this.#step(input);
    while (next.kind === 'call') {
      const reply = await this.#make(next);
      this.#next = undefined;
      this.#isAbandoned = false;
      next = this.#step(reply);
    }
    if (next.kind === 'end') this.#finish();
    else this.#wait(next.ms);
  }

  /** There is nothing more to do. */
  #finish() {
    this.#isRunning = false;
    this.#hasEnded = true;
    this.#onSettled();
  }

  /**
   * Goes on after a pause.
   * @param {number} ms
   * @param {LeaseInput} [input]
   */
  #wait(ms, input = TIME) {
    this.#isRunning = false;
    this.#timer = setTimeout(() => this.#tell(input), ms);
    // A lease that is held does not keep the event loop alive.
    if (!this.#isAwaited) this.#timer.unref();
  }

  /**
   * Has the driver take a step, notes what is next, and publishes the reports. A subscriber may close the lease meanwhile.
   * @param {LeaseInput} input
   * @returns {Command} what is next then
   */
  #step(input) {
    const { reports, next } = this.#driver.step(input, hostMonotonic(), unixNow());
    if (this.#next?.kind !== 'call') this.#next = ownOf(next);
    for (const report of reports) {
      try {
        this.#lease.note(ownOf(report));
      } catch (failure) {
        // The slot's channel cannot be opened.
        this.#lease.fail(failure);
        this.#onSettled();
      }
    }
    return this.#next;
  }

  /**
   * Makes a call. Returns the input that follows.
   * @param {CallCommand} wanted
   * @returns {Promise<LeaseInput>}
   */
  async #make(wanted) {
    try {
      // A number that it has lost may be another process's by now: there is no call before there is a new one.
      await this.#lease.prepare();
      if (this.#isAbandoned) return FAILED;
      return await this.#calls.make(wanted);
    } catch (failure) {
      this.callFailure = failure;
      // No wait for a slot changes a setting.
      if (this.#lease.phase() === 'opening' && isFinal(failure)) {
        this.#lease.fail(failure);
        this.#tell(CLOSE);
      }
      // Others may be usable. A slot that is held waits until a record can be read again.
      const isSearching = ['opening', 'lost'].includes(this.#lease.phase());
      return isSearching && isFormatConflict(failure) ? FOREIGN : FAILED;
    }
  }
}

module.exports = { Executor };
