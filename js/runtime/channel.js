'use strict';
// Opens channels: passes validated options to native code.

const { unwrap } = require('../messages/errors.js');
const native = require('./native.js');

/** @import { Authority, Channel, Requested, Settings } from '../types.js' */

/**
 * @param {Settings} settings the result of `readOptions`
 * @param {Authority} authority the authority that allows the process to issue IDs, if there is one: ownClock, or isLeased with a
 *   lease from a
 *   store, or with leasing, the settings of one from a directory, as src/binding/request.rs reads them
 * @returns {Requested}
 */
function requestOf(settings, authority) {
  const { clock: _, leasing, ...own } = settings;
  // Without a prototype, so that a polluted Object.prototype adds no options.
  return { __proto__: null, ...own, ...authority };
}

/**
 * @param {Settings} settings
 * @param {Authority} authority
 * @returns a channel; undefined if this host has no directory for pages
 */
function openChannel(settings, authority) {
  return unwrap(native.open(requestOf(settings, authority)));
}

/**
 * Like openChannel(), but without blocking the thread.
 * @param {Settings} settings
 * @param {Authority} authority
 */
async function openChannelLater(settings, authority) {
  return unwrap(await native.openLater(requestOf(settings, authority)));
}

/**
 * Moves a channel to another generator. If that cannot be opened, the previous one stays, and issues nothing.
 * @param {Channel} channel
 * @param {Settings} settings
 * @param {Authority} authority
 */
function moveChannel(channel, settings, authority) {
  const fault = channel.moveTo(requestOf(settings, authority));
  if (fault) unwrap(fault);
}

module.exports = { moveChannel, openChannel, openChannelLater, requestOf };
