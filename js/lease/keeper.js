'use strict';
// The thread that keeps a lease, started by thread.js. A file of its own, so that no other worker becomes
// one by what its workerData happens to hold.

const { parentPort, workerData } = require('node:worker_threads');

const { shown } = require('../errors.js');
const { connect } = require('./connect.js');
const { EngineLease } = require('./lease.js');

async function keep({ url, settings, isReleased }) {
  let store;
  let lease;
  try {
    store = await connect(new URL(url));
    lease = await EngineLease.take(store, settings, tell);
  } catch (failure) {
    const { code = 'ERR_SNOWFLAKE_STORE', message = shown(failure), holders } = failure;
    parentPort.postMessage({ refused: { code, message, holders } });
    await store?.close?.();
    parentPort.close();
    return;
  }
  // The port keeps this thread alive.
  parentPort.once('message', async () => {
    await lease.release();
    Atomics.store(isReleased, 0, 1);
    Atomics.notify(isReleased, 0);
    lease.channel.close();
    parentPort.close();
  });

  function tell(report) {
    parentPort.postMessage({ report });
  }
}

keep(workerData);
