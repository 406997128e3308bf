'use strict';
// From settings to a generator: at once, or without holding the thread.

const { granted } = require('./errors.js');
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

/** From a LeaseStore. */
async function openLeased(store, settings) {
  const { EngineLease } = require('./lease/lease.js');
  const lease = await EngineLease.take(store, settings);
  return { channel: lease.channel, settings, lease };
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
