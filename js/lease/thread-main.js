'use strict';
// The worker thread that renews a lease. thread.js starts it with data under a key of its own. A worker of the
// application that loads this file starts no lease, whatever its data is.

const { parentPort, workerData } = require('node:worker_threads');

const { describe } = require('../errors.js');
const { ownOf } = require('../ids/properties.js');
const { takeByUrl } = require('./lease.js');

async function runLease({ url, settings, isReleased }) {
  let lease;
  try {
    const publish = (report) => parentPort.postMessage({ report });
    lease = await takeByUrl(new URL(url), ownOf(settings), publish);
  } catch (failure) {
    const {
      code = 'ERR_SNOWFLAKE_STORE',
      message = describe(failure),
      holders,
    } = ownOf({ ...failure, message: failure.message });
    parentPort.postMessage({ refused: { code, message, holders } });
    parentPort.close();
    return;
  }
  // The port keeps this thread alive.
  parentPort.on('message', async (message) => {
    if (message === 'merge') {
      lease.allowMerge();
      return;
    }
    await lease.release();
    Atomics.store(isReleased, 0, 1);
    Atomics.notify(isReleased, 0);
    lease.channel.close();
    parentPort.close();
  });
}

const own = workerData?.['snowdrift:lease'];
if (own !== undefined) runLease(own);
