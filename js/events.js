'use strict';
// What is told to whoever subscribes to a channel of node:diagnostics_channel. Nothing is done for those
// to which nobody does. index.d.ts says what is in the messages.

const { channel } = require('node:diagnostics_channel');

// Held here, since a channel that nobody holds is collected with its subscribers on older Node.
const clockStep = channel('snowdrift:clock-step');
const wait = channel('snowdrift:wait');
const lease = Object.fromEntries(
  ['taken', 'renewed', 'failing', 'lost', 'released'].map((what) => [
    what,
    channel(`snowdrift:lease-${what}`),
  ]),
);

/** @param slot answers whose generator it was */
function tellStep({ backMs, counter, unreported }, slot) {
  if (!clockStep.hasSubscribers) return;
  clockStep.publish({ ...slot(), backMs, clockBack: counter, unreported });
}

/** @param waited with `reason`, `waits`, `waitedMs` and `blocking` */
function tellWait(waited, slot) {
  if (wait.hasSubscribers) wait.publish({ ...slot(), ...waited });
}

/** A function to call with how a lease stands, whenever that may have changed. */
function leaseTeller() {
  let before;
  return (now) => {
    const what = change(before, now);
    before = now;
    if (what !== undefined && lease[what].hasSubscribers) lease[what].publish(now);
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
