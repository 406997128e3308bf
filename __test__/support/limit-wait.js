'use strict';
// An end for waits. Without one, a test that fails hangs until its whole file is killed, and nothing says what it
// waited for.

const { clearTimeout, setTimeout } = require('node:timers');

/** Longer than any busy machine takes for what a test waits for. */
const LIMIT_MS = 300_000;
/** A time in which the process was stopped counts as one part. */
const PARTS = 10;

/**
 * What a promise resolves with.
 * @param what is missing if it does not settle, or a function that returns that
 * @param giveUp is called then, for example to kill what keeps the test waiting
 */
async function limitWait(promise, what, { ms = LIMIT_MS, giveUp = () => {} } = {}) {
  let timer;
  const late = new Promise((_, reject) => {
    const wait = (left) => {
      timer = setTimeout(() => (left > 1 ? wait(left - 1) : end()), ms / PARTS);
    };
    const end = () => {
      const missing = typeof what === 'function' ? what() : what;
      reject(new Error(`not within ${ms / 1000} s: ${missing}`));
      giveUp();
    };
    wait(PARTS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

module.exports = { limitWait };
