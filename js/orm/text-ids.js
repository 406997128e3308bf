'use strict';
// Warns before IDs that are stored as decimal text stop sorting.

const { unixNow } = require('../runtime/time.js');
const { SnowFlake } = require('../snowflake.js');
const { warnOfTextIds } = require('../messages/warnings.js');

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;

let isSettled = false;

/**
 * Decodes an ID.
 * @typedef {(id: string | bigint) => { timestamp: number }} Parse
 */

/**
 * Warns, once per process, if the IDs after this one get longer within a year.
 * @param {unknown} id
 * @param {Parse} [parse] decodes the ID. Without it, the default instance's layout must give a time of today
 */
function checkTextIds(id, parse) {
  // Base32 and padded digits always sort.
  if (isSettled || typeof id !== 'string' || !/^[1-9][0-9]*$/.test(id)) return;
  const at = timeOf(id, parse ?? SnowFlake.parse);
  if (at === undefined) return;
  // The ID may be of another layout.
  if (parse === undefined && !(Math.abs(at - unixNow()) < DAY_MS)) return;
  isSettled = true;
  const longer = timeOf(10n ** BigInt(id.length), parse ?? SnowFlake.parse);
  if (longer === undefined || !(longer - at <= YEAR_MS)) return;
  warnOfTextIds(id.length, longer, longer - at);
}

/**
 * The Unix ms of an ID; undefined if the layout has no such ID.
 * @param {string | bigint} id
 * @param {Parse} parse
 */
function timeOf(id, parse) {
  try {
    return parse(id).timestamp;
  } catch {
    return undefined;
  }
}

module.exports = { checkTextIds };
