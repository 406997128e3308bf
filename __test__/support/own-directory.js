'use strict';
// Gives this test, and all processes that it starts, a directory of pages of their own: no test touches
// the user's, nor another test's. Required before the package is.

const { mkdtempSync, readdirSync, realpathSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { isMainThread } = require('node:worker_threads');

/** Where pages may be: on Linux in memory, elsewhere on a disk. As the system names it, which the tests compare. */
const PARENT = process.platform === 'linux' ? '/dev/shm' : realpathSync.native(tmpdir());
const PREFIX = 'snowdrift-test-';
const MOST_TRIES = 100;
const PAUSE_MS = 20;

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch ({ code }) {
    return code !== 'ESRCH';
  }
}

/** Removes what tests that were killed have left. */
function sweep() {
  for (const name of readdirSync(PARENT)) {
    const pid = name.startsWith(PREFIX) && Number(name.split('-')[2]);
    if (pid && !isAlive(pid)) rmSync(join(PARENT, name), { recursive: true, force: true });
  }
}

/** Removes a directory, even where a thread or process that ends adds a file meanwhile. */
function removeDirectory(path) {
  for (let tries = 1; ; tries++) {
    try {
      rmSync(path, { recursive: true, force: true });
      return;
    } catch (failure) {
      if (failure.code !== 'ENOTEMPTY' || tries === MOST_TRIES) throw failure;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

/** A new directory, removed when this process exits. */
function createDirectory() {
  const path = mkdtempSync(join(PARENT, `${PREFIX}${process.pid}-`));
  process.on('exit', () => {
    try {
      removeDirectory(path);
    } catch {
      // A thread still makes pages there, or Windows keeps files that are mapped. The next test sweeps.
    }
  });
  return path;
}

if (isMainThread && !process.env.SNOWDRIFT_SHARED) {
  sweep();
  process.env.SNOWDRIFT_SHARED = createDirectory();
}

module.exports = { createDirectory, removeDirectory };
