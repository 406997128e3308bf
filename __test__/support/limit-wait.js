'use strict';
// An end for waits. Without one, a test that fails hangs until its whole file is killed, and nothing says what it
// waited for.

const timers = require('node:timers');

const { startLimit } = require('../../js/runtime/limits.js');

/** Longer than any busy machine takes for what a test waits for. */
const LIMIT_MS = 300_000;

/**
 * What a promise resolves with.
 * @param what is missing if it does not settle, or a function that returns that
 * @param giveUp is called then, for example to kill what keeps the test waiting
 */
async function limitWait(promise, what, { ms = LIMIT_MS, giveUp = () => {} } = {}) {
  let cancel;
  const late = new Promise((_, reject) => {
    const end = () => {
      const missing = typeof what === 'function' ? what() : what;
      reject(new Error(`not within ${ms / 1000} s: ${missing}`));
      giveUp();
    };
    // Real ones, also where a test injects time.
    cancel = startLimit(ms, end, timers);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    cancel();
  }
}

module.exports = { limitWait };
