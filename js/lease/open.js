'use strict';
// Takes a lease from a store: the one door to this folder.

const { configError } = require('../errors.js');
const { createLeasePublisher } = require('../events.js');
const { StoreLease, takeByUrl } = require('./lease.js');
const { ThreadLease } = require('./thread.js');

/** @param store a Register, or the URL of a server */
async function takeLease(store, settings) {
  const isUrl = store instanceof URL;
  if (settings.leasing.inThread) {
    if (!isUrl) {
      throw configError(
        'thread: true needs the URL of a store: a client object cannot move to a thread',
      );
    }
    return ThreadLease.take(store.href, settings, createLeasePublisher());
  }
  if (!isUrl) return StoreLease.take(store, settings, createLeasePublisher());
  return takeByUrl(store, settings, createLeasePublisher());
}

module.exports = { takeLease };
