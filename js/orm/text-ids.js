'use strict';
// Looks for the date from which IDs stored as decimal text no longer sort.

const { unixNow } = require('../runtime/time.js');
const { SnowFlake } = require('../snowflake.js');
const { warnOfTextIds } = require('../messages/warnings.js');

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;

let isSettled = false;

/**
 * Warns, once per process, if the IDs after this one get longer within a year.
 * @param parse decodes it. Without it, the default instance's layout must give a time of today
 */
function checkTextIds(id, parse) {
  // Base32 and padded digits sort.
  if (isSettled || typeof id !== 'string' || !/^[1-9][0-9]*$/.test(id)) return;
  const at = timeOf(id, parse ?? SnowFlake.parse);
  if (at === undefined) return;
  // Perhaps another layout's.
  if (parse === undefined && !(Math.abs(at - unixNow()) < DAY_MS)) return;
  isSettled = true;
  const longer = timeOf(10n ** BigInt(id.length), parse ?? SnowFlake.parse);
  if (!(longer - at <= YEAR_MS)) return;
  warnOfTextIds(id.length, longer, longer - at);
}

/** Unix ms; undefined if the layout has no such ID. */
function timeOf(id, parse) {
  try {
    return parse(id).timestamp;
  } catch {
    return undefined;
  }
}

module.exports = { checkTextIds };
