'use strict';
// Values as people read them. --json has the exact ones.

/** @import { Layout } from '../types.js' */

const { layoutKey } = require('../ids/layout-key.js');
const { layouts } = require('../ids/layouts.js');
const { moment } = require('../runtime/time.js');

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * A layout's name; its key if it has none.
 * @param {Layout} layout
 */
function layoutWord(layout) {
  const key = layoutKey(layout);
  return Object.entries(layouts).find(([, named]) => layoutKey(named) === key)?.[0] ?? key;
}

/**
 * A time to the second.
 * @param {number} unixMs
 */
const second = (unixMs) => moment(unixMs).replace(/\.\d{3}Z$/, 'Z');

/**
 * How far a time is: to the second for two minutes, to the minute for two hours, then the time.
 * @param {number} unixMs
 * @param {number} now
 */
function distance(unixMs, now) {
  const ms = Math.abs(unixMs - now);
  if (!(ms < 2 * HOUR)) return second(unixMs);
  const far = ms < 2 * MINUTE ? `${Math.floor(ms / 1000)} s` : `${Math.floor(ms / MINUTE)} min`;
  return unixMs >= now ? `in ${far}` : `${far} ago`;
}

module.exports = { distance, layoutWord, second };
