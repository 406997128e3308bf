'use strict';
// Layouts and IDs of all kinds, for property tests.

const fc = require('fast-check');

const { SnowFlakeError, layouts } = require('../..');

const LARGEST_ID = 2n ** 63n - 1n;
const DATE_LIMIT = 8.64e15;

const within = (max) => fc.integer({ min: 0, max });

/** About the bounds of every width. */
const near = (max) => fc.oneof(within(max), fc.constantFrom(0, max), within(Math.min(max, 3)));

/** Any layout there can be. */
const anyLayout = fc
  .tuple(
    fc.integer({ min: 1, max: 62 }),
    near(53),
    near(53),
    within(4),
    fc.integer({ min: 1, max: 53 }),
    fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 86_400_000 })),
    fc.oneof(
      fc.constantFrom(0, layouts.node.epoch, DATE_LIMIT, -DATE_LIMIT),
      // January 1970 is refused: it is somebody's seconds.
      fc.integer({ min: -DATE_LIMIT, max: 0 }),
      fc.integer({ min: Date.UTC(1970, 1), max: DATE_LIMIT }),
    ),
  )
  .map(
    ([timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs, epoch]) => {
      // The widths of the middle give way until they fit 63 bits.
      let room = 63 - timestampBits - sequenceBits;
      if (room < 0) {
        timestampBits += room;
        room = 0;
      }
      const fit = (bits) => {
        const given = Math.min(bits, room);
        room -= given;
        return given;
      };
      return {
        timestampBits: Math.max(timestampBits, 1),
        datacenterBits: fit(datacenterBits),
        workerBits: fit(workerBits),
        clockBackBits: fit(clockBackBits),
        sequenceBits,
        tickMs,
        epoch,
      };
    },
  );
const layoutsOfAllKinds = fc.oneof(fc.constantFrom(...Object.values(layouts)), anyLayout);

/** IDs of all lengths. */
const ids = fc
  .tuple(within(63), fc.bigInt({ min: 0n, max: LARGEST_ID }))
  .map(([shift, id]) => id >> BigInt(shift));

/** A layout with the fields of an ID in it or, by `more` ms, beyond it. */
const layoutsWithFields = fc
  .tuple(
    layoutsOfAllKinds,
    fc.tuple(...Array.from({ length: 5 }, () => fc.double({ min: 0, max: 1, noNaN: true }))),
    fc.constantFrom(0, 0, 0, -1, 1, -DATE_LIMIT, DATE_LIMIT),
  )
  .map(([layout, [time, ...rest], more]) => {
    const span = Math.min(2 ** layout.timestampBits * layout.tickMs, 2 * DATE_LIMIT);
    const limited = (ms) => Math.max(-DATE_LIMIT, Math.min(DATE_LIMIT, ms));
    const timestamp = limited(layout.epoch + Math.round(time * span) + more);
    const { datacenterBits, workerBits, clockBackBits, sequenceBits } = layout;
    const widths = [datacenterBits, workerBits, clockBackBits, sequenceBits];
    const [datacenterId, workerId, clockBack, sequence] = widths.map((bits, n) =>
      Math.round(rest[n] * (2 ** bits - 1)),
    );
    return { layout, fields: { timestamp, datacenterId, workerId, clockBack, sequence } };
  });

/** The fields of an ID by plain arithmetic; throws what `parse` throws. */
function decodePlainly(layout, id) {
  let rest = id;
  const low = (bits) => {
    const field = rest % 2n ** BigInt(bits);
    rest /= 2n ** BigInt(bits);
    return field;
  };
  const { sequenceBits, clockBackBits, workerBits, datacenterBits, timestampBits } = layout;
  const widths = [sequenceBits, clockBackBits, workerBits, datacenterBits, timestampBits];
  const [sequence, clockBack, workerId, datacenterId, tick] = widths.map(low);
  if (rest > 0n) {
    const bits = widths.reduce((sum, width) => sum + width);
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_INVALID_ID',
      `the ID ${id} is wider than this layout's ${bits} bits: parse it with the layout that issued it`,
    );
  }
  const timestamp = Number(tick * BigInt(layout.tickMs) + BigInt(layout.epoch));
  if (timestamp > DATE_LIMIT) {
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_INVALID_ID',
      `the time of the ID ${id} is later than a Date can hold: check the layout's epoch and tickMs`,
    );
  }
  const [d, w, c, s] = [datacenterId, workerId, clockBack, sequence].map(Number);
  const node = { datacenterId: d, workerId: w, clockBack: c, sequence: s };
  return { id, timestamp, date: new Date(timestamp), ...node };
}

/** The ID of fields that fit, by plain arithmetic; throws what `compose` throws. */
function encodePlainly(layout, fields) {
  const [epoch, tickMs] = [BigInt(layout.epoch), BigInt(layout.tickMs)];
  const ms = BigInt(fields.timestamp) - epoch;
  const ticks = 2n ** BigInt(layout.timestampBits);
  if (ms < 0n || ms / tickMs >= ticks) {
    const end = ticks * tickMs + epoch - 1n;
    const last = end < DATE_LIMIT ? end : DATE_LIMIT;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_ARGUMENT',
      `the time must lie in this layout's range, ${epoch} to ${last} (Unix ms); it is ${fields.timestamp}`,
    );
  }
  let id = ms / tickMs;
  for (const [bits, value] of [
    [layout.datacenterBits, fields.datacenterId],
    [layout.workerBits, fields.workerId],
    [layout.clockBackBits, fields.clockBack],
    [layout.sequenceBits, fields.sequence],
  ]) {
    id = id * 2n ** BigInt(bits) + BigInt(value);
  }
  return id;
}

module.exports = {
  LARGEST_ID,
  decodePlainly,
  encodePlainly,
  ids,
  layoutsOfAllKinds,
  layoutsWithFields,
  within,
};
