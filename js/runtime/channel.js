'use strict';
// Opens channels: the only way from validated options to native code.

const { unwrap } = require('../messages/errors.js');
const native = require('./native.js');

/**
 * @param settings the result of `readOptions`
 * @param basis the right of this process to issue IDs, if it is more than the node's name. One of ownClock,
 *   recording and isLeased (with lease), as src/binding/request.rs reads them
 */
function requestOf(settings, basis) {
  const { clock: _, recording, leasing, ...own } = settings;
  // Without a prototype: a property of a polluted Object.prototype is no option.
  return { __proto__: null, ...own, ...basis };
}

/** @returns a channel; undefined where this host has no place for a page */
function openChannel(settings, basis) {
  return unwrap(native.open(requestOf(settings, basis)));
}

/** The same, without blocking the thread. */
async function openChannelLater(settings, basis) {
  return unwrap(await native.openLater(requestOf(settings, basis)));
}

/** Moves a channel to another generator. If that cannot be opened, the previous one stays, and issues nothing. */
function moveChannel(channel, settings, basis) {
  const fault = channel.moveTo(requestOf(settings, basis));
  if (fault) unwrap(fault);
}

module.exports = { moveChannel, openChannel, openChannelLater, requestOf };
