'use strict';
// Leases are given up when the process ends: when nothing is left to do, or by SIGTERM or SIGINT
// unless the application listens to that itself (then it may still need IDs, and closes them itself).
// process.exit() leaves the main loop no time to tell an engine anything: there a lease expires, unless
// it is kept by a thread, which has its own loop.

const SIGNALS = ['SIGTERM', 'SIGINT'];

const leases = new Set();

function add(lease) {
  if (leases.size === 0) {
    process.on('beforeExit', releaseAll);
    process.on('exit', releaseAtExit);
    // Signals are the main thread's.
    if (isMainThread()) for (const signal of SIGNALS) process.on(signal, onSignal);
  }
  leases.add(lease);
}

function remove(lease) {
  if (!leases.delete(lease) || leases.size > 0) return;
  process.off('beforeExit', releaseAll);
  process.off('exit', releaseAtExit);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function releaseAll() {
  return Promise.allSettled([...leases].map((lease) => lease.release()));
}

function releaseAtExit() {
  for (const lease of leases) lease.releaseAtExit?.();
}

async function onSignal(signal) {
  if (process.listenerCount(signal) > 1) return;
  await releaseAll();
  // As if nobody had listened.
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}

function isMainThread() {
  return require('node:worker_threads').isMainThread;
}

module.exports = { add, remove };
