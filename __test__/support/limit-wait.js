'use strict';
// An end for waits. Without one, a test that fails hangs until its whole file is killed, and nothing says what it
// waited for.

const { startLimit } = require('../../js/time.js');

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
    cancel = startLimit(ms, () => {
      const missing = typeof what === 'function' ? what() : what;
      reject(new Error(`not within ${ms / 1000} s: ${missing}`));
      giveUp();
    });
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    cancel();
  }
}

module.exports = { limitWait };
