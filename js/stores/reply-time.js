'use strict';
// The clock of a store that shows it in the header Date of its replies alone.

/**
 * The middle of the second that a reply begins in, Unix ms: at most half a second off. Undefined without a date.
 * @param {string | undefined} date of the header
 */
function timeOfReply(date) {
  const second = Date.parse(date ?? '');
  return second > 0 ? second + 500 : undefined;
}

/** The time of a reply that must have one. @param {number | undefined} time */
function neededTime(time) {
  if (time !== undefined) return time;
  throw new Error('its reply has no header Date, which leases need: a proxy may have removed it');
}

module.exports = { neededTime, timeOfReply };
