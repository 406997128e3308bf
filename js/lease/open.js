'use strict';
// Takes a lease from a store: the one door to this folder.

const { configError } = require('../errors.js');
const { createLeasePublisher } = require('../events.js');
const { connect } = require('../stores/connect.js');
const { StoreLease } = require('./lease.js');
const { RegisterLease } = require('./register-lease.js');
const { ThreadLease } = require('./thread.js');

/** @param store a LeaseStore, or the URL of a server */
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
  if (!isUrl) return kindOf(store).take(store, settings, createLeasePublisher());
  const connected = await connect(store);
  try {
    return await kindOf(connected).take(connected, settings, createLeasePublisher());
  } catch (failure) {
    await connected.close();
    throw failure;
  }
}

/** The lease of a register; until all stores are registers, the one of the others. */
const kindOf = (store) => (typeof store.write === 'function' ? RegisterLease : StoreLease);

module.exports = { kindOf, takeLease };
