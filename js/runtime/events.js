'use strict';
// Publishes events on channels of node:diagnostics_channel; index.d.ts describes them. Channels without subscribers
// cost nothing.

const { ownOf } = require('../ids/properties.js');
const { monotonic } = require('./time.js');

const warnings = () => require('../messages/warnings.js');

/** @import { Channel, Lease, LeaseInfo, OpenSettings, Rollback, Waits } from '../types.js' */
/** @typedef {Waits & { blocking: boolean }} Wait */
/** @typedef {ReturnType<typeof createReporter>} Reporter */

/** @type {Map<string, import('node:diagnostics_channel').Channel>} */
const channels = new Map();
/** @type {typeof import('node:diagnostics_channel').channel | undefined} */
let createChannel;

/** Loads on first use, since it takes a tenth of the time that snowdrift takes to load. */
function load() {
  createChannel ??= require('node:diagnostics_channel').channel;
  return createChannel;
}

/**
 * The channel of an event, if it has subscribers.
 * @param {string} event
 */
function subscribedChannel(event) {
  let channel = channels.get(event);
  if (channel === undefined) {
    channel = load()(`snowdrift:${event}`);
    channels.set(event, channel);
  }
  return channel.hasSubscribers ? channel : undefined;
}

/**
 * Warns of an instance's clock rollbacks, and publishes them and its waits.
 * @param {Channel} channel
 * @param {OpenSettings} settings
 * @param {Lease} [lease]
 */
function createReporter(channel, settings, lease) {
  /**
   * Waits in JavaScript that are neither counted nor published yet.
   * @type {Wait[]}
   */
  const waited = [];
  let isReporting = false;

  function report() {
    // A subscriber generates IDs. The next call publishes the events of that.
    if (isReporting) return;
    isReporting = true;
    try {
      const { rollback, waits } = ownOf(channel.takeNews());
      if (rollback) publishRollback(rollback);
      if (waits) publishWait({ ...waits, blocking: true });
      for (const wait of waited.splice(0)) {
        channel.noteWaits(wait.waits, wait.waitedMs);
        publishWait(wait);
      }
    } finally {
      isReporting = false;
    }
  }

  /** @param {Rollback} rollback */
  function publishRollback(rollback) {
    warnings().warnOfRollback(rollback);
    const { backMs, counter: clockBack, unreported } = rollback;
    const news = subscribedChannel('clock-rollback');
    news?.publish({ ...getNode(), backMs, clockBack, unreported });
  }

  /** @param {Wait} wait */
  function publishWait(wait) {
    subscribedChannel('wait')?.publish({ ...getNode(), ...wait });
  }

  function getNode() {
    const { datacenterId, workerId } = lease?.report().slot ?? settings;
    return { datacenterId, workerId };
  }

  /**
   * @param {Wait['reason'] | undefined} reason
   * @param {number} waits
   * @param {number} waitedMs
   * @param {boolean} blocking
   */
  function noteWaits(reason, waits, waitedMs, blocking) {
    if (reason !== undefined && waits > 0) waited.push({ reason, waits, waitedMs, blocking });
  }

  return { noteWaits, report };
}

/** The shortest time between two warnings of failures of one lease, ms. */
const WARNING_MS = 60_000;

/**
 * Returns a function to call with each LeaseInfo. It warns when the lease fails, at most once a minute, and after such
 * a warning also when the lease is renewed.
 * @returns {(now: LeaseInfo) => void}
 */
function createLeaseWarner() {
  let warnedAt = -Infinity;
  /** @type {number | undefined} */
  let failedAt;
  let isWarned = false;
  let unreported = 0;
  return (now) => {
    if (now.state === 'released') return;
    if (ownOf(now).failure !== undefined) {
      if (failedAt === undefined) unreported++;
      failedAt ??= monotonic();
      if (isWarned || monotonic() - warnedAt < WARNING_MS) return;
      warnedAt = monotonic();
      isWarned = true;
      warnings().warnOfFailure(now, unreported - 1);
      unreported = 0;
      return;
    }
    if (now.state === 'lost' || failedAt === undefined) return;
    if (isWarned) warnings().warnOfRecovery(now, monotonic() - failedAt);
    isWarned = false;
    failedAt = undefined;
  };
}

/**
 * Returns a function to call with a LeaseInfo after each possible change.
 * @returns {(now: LeaseInfo) => void}
 */
function createLeasePublisher() {
  // Loads now, since a test runner (jest) may end this module's environment before a renewal: then nothing can load.
  load();
  /** @type {LeaseInfo | undefined} */
  let before;
  const warn = createLeaseWarner();
  return (now) => {
    const what = change(before, now);
    before = now;
    warn(now);
    if (what !== undefined) subscribedChannel(`lease-${what}`)?.publish(now);
  };
}

/**
 * @param {LeaseInfo | undefined} before
 * @param {LeaseInfo} now
 */
function change(before, now) {
  if (now.state === 'released' || now.state === 'lost') {
    return now.state === before?.state ? undefined : now.state;
  }
  if (now.owner !== before?.owner) return 'taken';
  if (now.renewals > before.renewals) return 'renewed';
  return ownOf(now).failure === undefined ? undefined : 'failing';
}

module.exports = { createLeasePublisher, createReporter };
