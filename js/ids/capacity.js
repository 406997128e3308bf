'use strict';
// The capacity of a layout: its time range, its nodes and their IDs. Needs no addon and no Node API.

const { lengthChanges } = require('./lengths.js');
const { DATE_LIMIT, widthOf } = require('./presets.js');

/** @import { Layout } from '../types.js' */

const YEAR_MS = 365.2425 * 86_400_000;

/**
 * A layout and its capacity. Counts are strings, since they may be too large for exact numbers.
 * @param {Layout} layout a checked layout
 */
function capacityOf(layout) {
  const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs } = layout;
  const end = layout.epoch + 2 ** timestampBits * tickMs;
  const inTick = 2n ** BigInt(sequenceBits);
  return {
    ...layout,
    ends: end <= DATE_LIMIT ? new Date(end).toISOString() : null,
    years: (2 ** timestampBits * tickMs) / YEAR_MS,
    yearsLeft: Math.max(0, end - Date.now()) / YEAR_MS,
    datacenters: String(2n ** BigInt(datacenterBits)),
    workers: String(2n ** BigInt(workerBits)),
    nodes: String(2n ** BigInt(datacenterBits + workerBits)),
    idsPerTick: String(inTick),
    idsPerSecond: String((inTick * 1000n) / BigInt(tickMs)),
    clockRollbacks: 2 ** clockBackBits - 1,
    unusedBits: 63 - widthOf(layout),
    digits: lengthChanges(layout).map(({ digits, from }) => ({
      digits,
      from: new Date(from).toISOString(),
    })),
  };
}

module.exports = { capacityOf };
