'use strict';
// `thread: true`: a lease that is kept by a worker thread with a connection of its own, so that a main
// loop that is busy for longer than the ttl neither loses its slot nor stops. Generators belong to the
// process, so the thread raises the ceiling of the very generator that the other threads draw from.
// keeper.js is that thread.

const { Worker } = require('node:worker_threads');

const { isBundled } = require('../addon.js');
const { SnowFlakeError, configError, granted, shown } = require('../errors.js');
const native = require('../native.js');
const { clearTimeout, setTimeout, unixNow } = require('../time.js');
const ending = require('./ending.js');

/** How long the thread has to release its slot, which it bounds itself, and to end, ms. */
const RELEASE_MS = 3500;

/** How long after the thread has died another one is started, ms. */
const RESTART_MS = 1000;

class ThreadLease {
  #url;
  #settings;
  #channel;
  #thread;
  #report;
  #released;
  #changed;
  /** 1 when the thread has released its slot. */
  #isReleased = new Int32Array(new SharedArrayBuffer(4));

  constructor(url, settings, changed) {
    this.#url = url;
    this.#settings = settings;
    this.#changed = changed;
  }

  /** @param changed as EngineLease.take() */
  static async take(url, settings, changed) {
    // The file that it would start is the bundle.
    if (isBundled) {
      throw configError('thread: true does not work in a bundle: make snowdrift external to it');
    }
    const lease = new ThreadLease(url, settings, changed);
    await lease.#start();
    ending.add(lease);
    return lease;
  }

  get channel() {
    return this.#channel;
  }

  get workerId() {
    return this.#report.slot.workerId;
  }

  report() {
    // The thread may have raised it since it reported, and this thread not come to hear of it.
    const ceiling = Math.max(this.#report.ceiling, this.#channel.ceiling() ?? 0);
    const hasPassed = this.#report.state === 'held' && unixNow() > ceiling;
    return { ...this.#report, ceiling, ...(hasPassed ? { state: 'expired' } : {}) };
  }

  release() {
    this.#released ??= this.#giveUp();
    return this.#released;
  }

  /**
   * In an `exit` handler, where only other threads go on.
   * @returns what to wait on; undefined if the thread has ended
   */
  releaseAtExit() {
    const isAlive = this.#thread.threadId !== -1;
    this.release();
    return isAlive ? this.#isReleased : undefined;
  }

  async #giveUp() {
    const thread = this.#thread;
    this.#channel.endWindow();
    this.#learn({ ...this.#report, state: 'released' });
    // If it has died already, its slot expires.
    if (thread.threadId !== -1) {
      const ended = new Promise((resolve) => thread.once('exit', resolve));
      thread.ref();
      thread.postMessage('release');
      const timer = setTimeout(() => thread.terminate(), RELEASE_MS);
      await ended;
      clearTimeout(timer);
    }
    // Only now: a process that is ended meanwhile waits for it.
    ending.remove(this);
  }

  /** Starts a thread, and waits until it has a slot. */
  #start() {
    return new Promise((resolve, reject) => {
      const thread = new Worker(require.resolve('./keeper.js'), {
        workerData: { url: this.#url, settings: this.#settings, isReleased: this.#isReleased },
      });
      this.#thread = thread;
      thread.on('message', (message) => {
        try {
          this.#hear(message);
          // While it gives its slot up it is waited for.
          if (this.#released === undefined) thread.unref();
          resolve();
        } catch (failure) {
          reject(failure);
        }
      });
      thread.on('error', (failure) => this.#fail(failure, reject));
      thread.on('exit', () => {
        const ended = new Error('the thread that keeps the lease has ended');
        if (this.#channel === undefined) {
          // No-op if it has said why.
          reject(new SnowFlakeError('ERR_SNOWFLAKE_STORE', ended.message));
        }
        if (this.#released !== undefined || this.#channel === undefined) return;
        this.#fail(ended, reject);
        setTimeout(() => this.#restart(), RESTART_MS).unref();
      });
    });
  }

  #restart() {
    // What fails here ends that thread, too, which is then started again.
    if (this.#released === undefined) this.#start().catch(() => {});
  }

  #fail(failure, reject) {
    if (this.#report) this.#learn({ ...this.#report, state: 'failing', failure: shown(failure) });
    reject(failure);
  }

  #hear({ refused, report }) {
    if (refused) {
      const { code, message, holders } = refused;
      throw new SnowFlakeError(code, message, { holders });
    }
    if (this.#released !== undefined) return;
    const { workerId } = report.slot;
    const request = { ...this.#settings, leasing: undefined, workerId, ownClock: false };
    if (this.#channel === undefined) {
      this.#channel = granted(native.joinLeased(request));
      this.#channel.lease = () => this.report();
    } else if (workerId !== this.workerId || report.owner !== this.#report.owner) {
      granted(this.#channel.joinAnother(request));
    }
    this.#learn(report);
  }

  #learn(report) {
    this.#report = report;
    this.#changed(report);
  }
}

module.exports = { ThreadLease };
