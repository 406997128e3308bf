'use strict';
// The dates at which the IDs of a layout get a decimal digit more. Text of other lengths sorts wrong from then on.
// Needs no addon and no Node API.

const { DATE_LIMIT, widthOf } = require('./presets.js');

/**
 * @param layout a checked layout
 * @returns for each length that IDs reach after the first tick: `digits`, and `from`, Unix ms of the first tick
 *   with such an ID. Not those that no Date can hold
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
