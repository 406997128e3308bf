'use strict';
// `thread: true`: a worker thread (thread-main.js) renews the lease on a connection of its own, so that a main
// loop that is busy for longer than the ttl keeps its slot. The process has one generator per node, so the
// thread raises the ceiling of the generator from which the other threads draw.

const { isBundled } = require('../addon.js');
const { moveChannel, openChannel } = require('../channel.js');
const { SnowFlakeError, configError, describe } = require('../errors.js');
const { lackOf } = require('../faults.js');
const { ownOf } = require('../ids/properties.js');
const { clearTimeout, setTimeout, unixNow } = require('../time.js');
const atExit = require('./release-at-exit.js');
const { RESTART_MS, THREAD_MS } = require('./timing.js');

/** The file of the thread. */
function findThread() {
  try {
    return require.resolve('./thread-main.js');
  } catch (cause) {
    throw configError(
      `cannot read ${__dirname}/thread-main.js, which thread: true runs: let the user of this process read it, or open the lease before process.setuid()`,
      { cause },
    );
  }
}

/** Starts the thread. */
function startThread(file, data) {
  const { Worker } = require('node:worker_threads');
  const workerData = { 'snowdrift:lease': data };
  try {
    return new Worker(file, { __proto__: null, workerData });
  } catch (cause) {
    throw configError(
      `cannot start the thread of thread: true (with --permission, Node needs --allow-worker): ${describe(cause)}`,
      { cause },
    );
  }
}

class ThreadLease {
  #file = findThread();
  #url;
  #settings;
  #channel;
  #thread;
  #report;
  #released;
  #onChange;
  /** Own properties: somebody may have put others on Object.prototype. */
  publish;
  wantRenewal;
  /** 1 after the thread has released its slot. */
  #isReleased = new Int32Array(new SharedArrayBuffer(4));

  constructor(url, settings, onChange) {
    this.#url = url;
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /** As StoreLease.take(). */
  static async take(url, settings, onChange) {
    // A bundle has no file to start as the thread.
    if (isBundled) {
      throw configError('thread: true does not work in a bundle: make snowdrift external to it');
    }
    const lease = new ThreadLease(url, settings, onChange);
    await lease.#start();
    atExit.register(lease);
    return lease;
  }

  get channel() {
    return this.#channel;
  }

  get workerId() {
    return this.#report.slot.workerId;
  }

  report() {
    // The thread may have raised the ceiling since the last report that this thread received.
    const ceiling = Math.max(this.#report.ceiling, this.#channel.ceiling() ?? 0);
    const hasPassed = this.#report.state === 'held' && unixNow() > ceiling;
    return { ...this.#report, ceiling, ...(hasPassed ? { state: 'expired' } : {}) };
  }

  release() {
    this.#released ??= this.#release();
    return this.#released;
  }

  /**
   * For an `exit` handler, during which only other threads run.
   * @returns memory for Atomics.wait(); undefined if the thread has ended
   */
  releaseAtExit() {
    const isAlive = this.#thread.threadId !== -1;
    this.release();
    return isAlive ? this.#isReleased : undefined;
  }

  async #release() {
    const thread = this.#thread;
    // Before the thread's channel, since only the last user of a slot releases it.
    this.#channel.close();
    this.#publish({ ...this.#report, state: 'released' });
    // The slot of a thread that has died expires.
    if (thread.threadId !== -1) {
      const ended = new Promise((resolve) => thread.once('exit', resolve));
      thread.ref();
      thread.postMessage('release');
      const timer = setTimeout(() => thread.terminate(), THREAD_MS);
      await ended;
      clearTimeout(timer);
    }
    // Last, since a process that ends waits for all registered leases.
    atExit.unregister(this);
  }

  /** Starts a thread and waits until it has a slot. */
  #start() {
    return new Promise((resolve, reject) => {
      const thread = startThread(this.#file, {
        url: this.#url,
        settings: this.#settings,
        isReleased: this.#isReleased,
      });
      this.#thread = thread;
      let failure = new SnowFlakeError(
        'ERR_SNOWFLAKE_STORE',
        'the thread that renews the lease has ended',
      );
      thread.on('message', (message) => {
        try {
          this.#receive(message);
          thread.postMessage('merge');
          // A thread that is releasing its slot keeps the process alive.
          if (this.#released === undefined) thread.unref();
          resolve();
        } catch (refusal) {
          failure = refusal;
          // It may have a slot that this thread cannot draw from. Then it ends.
          thread.postMessage('release');
        }
      });
      thread.on('error', (cause) => {
        const lack = lackOf(cause);
        failure = new SnowFlakeError(
          'ERR_SNOWFLAKE_STORE',
          `the thread that renews the lease has ended: ${describe(cause)}${lack ? `. ${lack}` : ''}`,
          { cause },
        );
      });
      thread.on('exit', () => {
        // Has no effect once it had a slot.
        reject(failure);
        if (this.#released !== undefined || this.#channel === undefined) return;
        // A lost or released slot stays so.
        const state = this.#report.state === 'held' ? 'failing' : this.#report.state;
        this.#publish({ ...this.#report, state, failure: describe(failure) });
        setTimeout(() => this.#restart(), RESTART_MS).unref();
      });
    });
  }

  #restart() {
    // A failure ends the new thread, too, and its exit schedules the next restart.
    if (this.#released === undefined) this.#start().catch(() => {});
  }

  #receive(message) {
    const { refused, report } = ownOf(message);
    if (refused) {
      const { code, message, holders } = refused;
      throw new SnowFlakeError(code, message, { holders });
    }
    if (this.#released !== undefined) return;
    const { workerId } = report.slot;
    const settings = { __proto__: null, ...this.#settings, workerId };
    if (this.#channel === undefined) {
      this.#channel = openChannel(settings, { ofThread: true });
    } else if (workerId !== this.workerId || report.owner !== this.#report.owner) {
      moveChannel(this.#channel, settings, { ofThread: true });
    }
    this.#publish(report);
  }

  #publish(report) {
    this.#report = report;
    this.#onChange(report);
  }
}

module.exports = { ThreadLease };
