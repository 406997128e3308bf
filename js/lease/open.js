'use strict';
// Takes a lease from a store: the one door to this folder.

const { createLeasePublisher } = require('../runtime/events.js');
const { StoreLease, takeByUrl } = require('./lease.js');

/** @param store a Register, or the URL of a server */
async function takeLease(store, settings) {
  const take = store instanceof URL ? takeByUrl : StoreLease.take;
  return take(store, settings, createLeasePublisher());
}

module.exports = { takeLease };
