'use strict';
// Releases leases when the process ends: when the event loop is empty, or on SIGTERM or SIGINT. If the
// application listens for the signal, it may still need IDs, and closes its instances itself.
// process.exit() leaves the event loop no time to call a server: a lease expires then.
//
// Two libraries that each leave a signal to the other would keep the process alive. So copies of this package
// act as one, and listeners of `signal-exit`, which act only when alone, do not count as the application's.
// After the release, this package removes its listeners and sends the signal again.

const { propertyOf } = require('../ids/properties.js');
const { runWithin } = require('../runtime/time.js');
const { SIGNAL_MS } = require('./timing.js');

const SIGNALS = ['SIGTERM', 'SIGINT'];

/** State that copies of this package in one thread share. Its form never changes, since versions may differ. */
const SHARED = Symbol.for('snowdrift.ending');
if (process[SHARED] === undefined) {
  Object.defineProperty(process, SHARED, {
    __proto__: null,
    // `releases`: the function that releases a copy's leases, by the copy's listener.
    value: { releases: new Map(), isEnding: false },
  });
}
const shared = process[SHARED];

const leases = new Set();

function register(lease) {
  if (leases.size === 0) {
    process.on('beforeExit', releaseAll);
    // Only the main thread receives signals.
    if (require('node:worker_threads').isMainThread) listen();
  }
  leases.add(lease);
}

function unregister(lease) {
  if (!leases.delete(lease) || leases.size > 0) return;
  process.off('beforeExit', releaseAll);
  unlisten(onSignal);
}

function listen() {
  shared.releases.set(onSignal, releaseAll);
  // Before the application's once-listeners are removed: onSignal counts them.
  for (const signal of SIGNALS) process.prependListener(signal, onSignal);
}

function unlisten(listener) {
  shared.releases.delete(listener);
  for (const signal of SIGNALS) process.off(signal, listener);
}

function releaseAll() {
  return Promise.allSettled([...leases].map((lease) => lease.release()));
}

async function onSignal(signal) {
  if (shared.isEnding || hasApplicationListener(signal)) return;
  shared.isEnding = true;
  const releases = [...shared.releases];
  // After all listeners were called, since others count them.
  await undefined;
  // Then a second signal ends the process at once.
  for (const [listener] of releases) unlisten(listener);
  const releaseEach = () => Promise.allSettled(releases.map(([, release]) => release()));
  await runWithin(SIGNAL_MS, releaseEach).catch(() => {});
  shared.isEnding = false;
  process.kill(process.pid, signal);
}

function hasApplicationListener(signal) {
  const others = process.listeners(signal).filter((listener) => !shared.releases.has(listener));
  return others.length > countSignalExits();
}

/** The listeners of `signal-exit` 4 and 3, counted as the two count each other. */
function countSignalExits() {
  const emitters = [
    globalThis[Symbol.for('signal-exit emitter')],
    propertyOf(process, '__signal_exit_emitter__'),
  ];
  return emitters.reduce((sum, emitter) => sum + (Number(emitter?.count) || 0), 0);
}

module.exports = { register, unregister };
