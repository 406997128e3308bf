'use strict';
// Timers and clocks as they were when snowdrift was loaded: test frameworks replace the global ones by
// fakes, and a lease must be renewed all the same.

const { clearTimeout, setTimeout } = require('node:timers');

/** Unix ms. */
const { now: unixNow } = Date;

/** ms since some moment: runs evenly, whatever sets the wall clock. */
const monotonic = performance.now.bind(performance);

module.exports = { clearTimeout, monotonic, setTimeout, unixNow };
