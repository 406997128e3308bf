'use strict';
// What a layout allows: its time, its nodes and their IDs. Needs no addon and no Node API.

const { lengthChanges } = require('./lengths.js');
const { DATE_LIMIT, widthOf } = require('./presets.js');

const DAY_MS = 86_400_000;
const YEAR_MS = 365.2425 * DAY_MS;

/**
 * A layout and its capacity. Counts are strings, since a number may not hold them.
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
 * The changes of the decimal length in two parts.
 * @returns `firstDay`, the most digits that IDs reach on the first day, if they grow then; `later`, the changes after
 *   it, of which the next one `isNext`
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
