'use strict';
// The capacity of a layout: its time range, its nodes and their IDs. Needs no addon and no Node API.

const { lengthChanges } = require('./lengths.js');
const { DATE_LIMIT, widthOf } = require('./presets.js');

const DAY_MS = 86_400_000;
const YEAR_MS = 365.2425 * DAY_MS;

/**
 * A layout and its capacity. Counts are strings, since they may be too large for exact numbers.
 * @param layout a checked layout
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

/**
 * Splits the changes of the decimal length by time.
 * @returns `firstDay`, the most digits of IDs on the first day, if their length changes then; `later`, the changes
 *   after that day, of which the next one has `isNext`
 */
function digitDates({ epoch, digits: changes }) {
  const isEarly = ({ from }) => Date.parse(from) < epoch + DAY_MS;
  const later = changes.filter((change) => !isEarly(change));
  const next = later.find(({ from }) => Date.parse(from) > Date.now());
  return {
    firstDay: changes.filter(isEarly).at(-1)?.digits,
    later: later.map((change) => ({ ...change, isNext: change === next })),
  };
}

module.exports = { capacityOf, digitDates };
