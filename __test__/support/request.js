'use strict';
// Requests for the addon, as js/runtime/channel.js makes them, for tests that call it directly.

/** A generator of the process alone. @param more replaces some of it */
const requestOf = (layout, more) => ({
  layout,
  datacenterId: 1,
  workerId: 1,
  clockBack: 'counter',
  maxWait: 10,
  maxAhead: 0,
  sequenceStart: 'zero',
  scope: 'process',
  ownClock: false,
  ...more,
});

module.exports = { requestOf };
