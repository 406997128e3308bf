'use strict';
// From settings to a generator: at once, or without holding the thread.

const { configError, granted } = require('./errors.js');
const native = require('./native.js');

/**
 * @param settings what `readOptions` answered
 * @param common whether all of this process who want any worker ID get the same one
 */
function openNow(settings, { common } = { common: false }) {
  return opened(settings, native.open(request(settings, common)));
}

async function openLater(settings) {
  return opened(settings, await native.openLater(request(settings, false)));
}

/** From an engine: a LeaseStore, or the URL of one. */
async function openLeased(engine, settings) {
  const lease = await takeLease(engine, settings);
  return { channel: lease.channel, settings, lease };
}

async function takeLease(engine, settings) {
  if (settings.leasing.inThread) {
    if (!(engine instanceof URL)) {
      throw configError(
        'thread: true needs the URL of an engine, since a client cannot be passed to a thread',
      );
    }
    const { ThreadLease } = require('./lease/thread.js');
    return ThreadLease.take(engine.href, settings);
  }
  const { EngineLease } = require('./lease/lease.js');
  if (!(engine instanceof URL)) return EngineLease.take(engine, settings);
  const { connect } = require('./lease/connect.js');
  const store = await connect(engine);
  try {
    return await EngineLease.take(store, settings);
  } catch (failure) {
    await store.close?.();
    throw failure;
  }
}

function request({ clock, recording, ...settings }, common) {
  return {
    ...settings,
    ownClock: clock !== undefined,
    recording: recording && { ...recording, common },
  };
}

function opened(settings, answer) {
  const channel = granted(answer);
  for (const why of channel.passedOver) {
    process.emitWarning(`A slot was passed over: ${why}.`, {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_SLOT_UNUSABLE',
    });
  }
  return { channel, settings: { ...settings, workerId: channel.workerId } };
}

module.exports = { openLater, openLeased, openNow };
