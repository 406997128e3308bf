'use strict';
// Leases are released when the process ends: when nothing is left to do, or by SIGTERM or SIGINT unless
// the application listens to that itself (then it may still need IDs, and closes them itself).
// process.exit() leaves the main loop no time to call a server: there a lease expires, unless a thread
// keeps it, which has its own loop.
//
// Two libraries that each leave a signal to the other would keep the process alive. So copies of this
// package act as one, and the listeners of `signal-exit` are no application's: they only act when they
// are alone. When all is released, this package's listeners are gone and the signal is sent again, as if
// nobody had listened.

const { setTimeout, clearTimeout } = require('node:timers');

const SIGNALS = ['SIGTERM', 'SIGINT'];

/** How long all stores together have to release what ends with the process, ms. */
const END_MS = 4000;

/** How long process.exit() waits for threads to release their slots, all together, ms. */
const EXIT_MS = 1000;

/** What copies of this package in one thread share. Versions may differ, so it never changes. */
const SHARED = Symbol.for('snowdrift.ending');
if (process[SHARED] === undefined) {
  Object.defineProperty(process, SHARED, {
    // `releases`: by a copy's listener, releases what that copy holds.
    value: { releases: new Map(), isEnding: false },
  });
}
const shared = process[SHARED];

const leases = new Set();

function add(lease) {
  if (leases.size === 0) {
    process.on('beforeExit', releaseAll);
    process.on('exit', releaseAtExit);
    // Signals are the main thread's.
    if (isMainThread()) listen();
  }
  leases.add(lease);
}

function remove(lease) {
  if (!leases.delete(lease) || leases.size > 0) return;
  process.off('beforeExit', releaseAll);
  process.off('exit', releaseAtExit);
  unlisten(onSignal);
}

function listen() {
  shared.releases.set(onSignal, releaseAll);
  // First, while an application's once-listeners are still to be seen.
  for (const signal of SIGNALS) process.prependListener(signal, onSignal);
}

function unlisten(listener) {
  shared.releases.delete(listener);
  for (const signal of SIGNALS) process.off(signal, listener);
}

function releaseAll() {
  return Promise.allSettled([...leases].map((lease) => lease.release()));
}

function releaseAtExit() {
  const flags = [...leases].map((lease) => lease.releaseAtExit?.()).filter(Boolean);
  const deadline = performance.now() + EXIT_MS;
  for (const flag of flags) Atomics.wait(flag, 0, 0, Math.max(0, deadline - performance.now()));
}

async function onSignal(signal) {
  if (shared.isEnding || isListenedTo(signal)) return;
  shared.isEnding = true;
  const releases = [...shared.releases];
  // Not before all listeners were called: others count them.
  await undefined;
  // A second signal ends the process at once.
  for (const [listener] of releases) unlisten(listener);
  let timer;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, END_MS);
  });
  await Promise.race([Promise.allSettled(releases.map(([, release]) => release())), limit]);
  clearTimeout(timer);
  shared.isEnding = false;
  process.kill(process.pid, signal);
}

/** Whether the application listens to a signal. */
function isListenedTo(signal) {
  const others = process.listeners(signal).filter((listener) => !shared.releases.has(listener));
  return others.length > signalExits();
}

/** How many listeners `signal-exit` has: version 4 and version 3, as they count each other. */
function signalExits() {
  const emitters = [globalThis[Symbol.for('signal-exit emitter')], process.__signal_exit_emitter__];
  return emitters.reduce((sum, emitter) => sum + (Number(emitter?.count) || 0), 0);
}

function isMainThread() {
  return require('node:worker_threads').isMainThread;
}

module.exports = { add, remove };
