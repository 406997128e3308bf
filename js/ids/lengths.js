'use strict';
// The dates at which a layout's IDs get another decimal digit. Shorter and longer IDs do not sort together as text.
// Needs no addon and no Node API.

const { DATE_LIMIT, widthOf } = require('./presets.js');

/** @import { Layout } from '../types.js' */

/**
 * @param {Layout} layout a checked layout
 * @returns for each length that IDs reach after the first tick: `digits`, and `from`, the Unix ms of the first tick
 *   with such an ID. Only those within the range of a Date
 */
function lengthChanges(layout) {
  const width = BigInt(widthOf(layout));
  const shift = width - BigInt(layout.timestampBits);
  const changes = [];
  for (let digits = 2, first = 10n; first < 1n << width; digits++, first *= 10n) {
    const from = (first >> shift) * BigInt(layout.tickMs) + BigInt(layout.epoch);
    if (first >> shift > 0n && from <= DATE_LIMIT) changes.push({ digits, from: Number(from) });
  }
  return changes;
}

module.exports = { lengthChanges };
