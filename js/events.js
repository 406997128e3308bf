'use strict';
// What is told to whoever subscribes to a channel of node:diagnostics_channel. Nothing is done for those
// to which nobody does. index.d.ts says what is in the messages.

const channels = new Map();
let createChannel;

/** Not loaded before it is needed: that would be a tenth of the time that snowdrift takes to load. */
function load() {
  createChannel ??= require('node:diagnostics_channel').channel;
}

/** The channel of an event, if somebody listens. */
function heard(event) {
  if (!channels.has(event)) {
    load();
    channels.set(event, createChannel(`snowdrift:${event}`));
  }
  const channel = channels.get(event);
  return channel.hasSubscribers ? channel : undefined;
}

/** @param slot answers whose generator it was */
function tellStep({ backMs, counter, unreported }, slot) {
  heard('clock-step')?.publish({ ...slot(), backMs, clockBack: counter, unreported });
}

/** @param waited with `reason`, `waits`, `waitedMs` and `blocking` */
function tellWait(waited, slot) {
  heard('wait')?.publish({ ...slot(), ...waited });
}

/** A function to call with how a lease stands, whenever that may have changed. */
function leaseTeller() {
  // A renewal may come after a test runner (jest) has ended this module's environment: nothing loads there.
  load();
  let before;
  return (now) => {
    const what = change(before, now);
    before = now;
    if (what !== undefined) heard(`lease-${what}`)?.publish(now);
  };
}

function change(before, now) {
  if (now.state === 'released' || now.state === 'lost') {
    return now.state === before?.state ? undefined : now.state;
  }
  if (now.owner !== before?.owner) return 'taken';
  if (now.renewals > before.renewals) return 'renewed';
  return now.failure === undefined ? undefined : 'failing';
}

module.exports = { leaseTeller, tellStep, tellWait };
