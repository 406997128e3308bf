'use strict';
// Takes a lease from a store: the one door to this folder.

const { createLeasePublisher } = require('../runtime/events.js');
const { StoreLease, takeByUrl } = require('./lease.js');

/** @import { StoreSettings } from '../types.js' */

/**
 * @param {object} store a LeaseStore or an assigner, or the URL of a server
 * @param {StoreSettings} settings
 */
async function takeLease(store, settings) {
  const publish = createLeasePublisher();
  if (store instanceof URL) return takeByUrl(store, settings, publish);
  return StoreLease.take(store, settings, publish);
}

module.exports = { takeLease };
