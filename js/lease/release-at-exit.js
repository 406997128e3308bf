'use strict';
// Releases leases when the process ends: when the event loop is empty, or on SIGTERM or SIGINT. If the
// application listens for the signal, it may still need IDs, and closes its instances itself.
// process.exit() leaves the event loop no time to call a server: a lease expires then.
//
// Two libraries that each leave a signal to the other would keep the process alive. So copies of this package
// act as one, and listeners of `signal-exit`, which act only when alone, do not count as the application's.
// After the release, this package removes its listeners and sends the signal again.

const { ownOf, propertyOf } = require('../ids/properties.js');
const { runWithin } = require('../runtime/limits.js');
const { SIGNAL_MS } = require('./timing.js');

/** @type {NodeJS.Signals[]} */
const SIGNALS = ['SIGTERM', 'SIGINT'];

/** @typedef {(signal: NodeJS.Signals) => Promise<void>} Listener */

/**
 * State that copies of this package in one thread share. Its form never changes, since versions may differ.
 * @typedef {object} Shared
 * @property {Map<Listener, () => Promise<unknown>>} releases the function that releases a copy's leases, by the copy's listener
 * @property {boolean} isEnding
 */
const SHARED = Symbol.for('snowdrift.ending');
const holder = /** @type {typeof process & { [SHARED]?: Shared }} */ (process);
if (holder[SHARED] === undefined) {
  const value = { releases: new Map(), isEnding: false };
  Object.defineProperty(holder, SHARED, ownOf({ value }));
}
const shared = /** @type {Shared} */ (holder[SHARED]);

/** @typedef {{ release(): Promise<unknown> }} Registered */

/** @type {Set<Registered>} */
const leases = new Set();

/** @param {Registered} lease */
function register(lease) {
  if (leases.size === 0) {
    process.on('beforeExit', releaseAll);
    // Only the main thread receives signals.
    if (require('node:worker_threads').isMainThread) listen();
  }
  leases.add(lease);
}

/** @param {Registered} lease */
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

/** @param {Listener} listener */
function unlisten(listener) {
  shared.releases.delete(listener);
  for (const signal of SIGNALS) process.off(signal, listener);
}

function releaseAll() {
  return Promise.allSettled([...leases].map((lease) => lease.release()));
}

/** @type {Listener} */
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

/** @param {NodeJS.Signals} signal */
function hasApplicationListener(signal) {
  const listeners = /** @type {Listener[]} */ (process.listeners(signal));
  const others = listeners.filter((listener) => !shared.releases.has(listener));
  return others.length > countSignalExits();
}

/** The listeners of `signal-exit` 4 and 3, counted as the two count each other. */
function countSignalExits() {
  const emitters = /** @type {({ count?: unknown } | undefined)[]} */ ([
    Reflect.get(globalThis, Symbol.for('signal-exit emitter')),
    propertyOf(process, '__signal_exit_emitter__'),
  ]);
  return emitters.reduce((sum, emitter) => sum + (Number(emitter?.count) || 0), 0);
}

module.exports = { register, unregister };
