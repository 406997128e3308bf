'use strict';
// A layout as stores record it: bit widths, ms a tick and epoch, such as `41/3/5/2/12@1+1580486400000`.
// An epoch before 1970 has `-` in place of `+`.

const PATTERN = /^(\d+)\/(\d+)\/(\d+)\/(\d+)\/(\d+)@(\d+)([+-]\d+)$/;

function layoutKey({ tickMs, epoch, ...layout }) {
  const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits } = layout;
  const bits = [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits].join('/');
  return `${bits}@${tickMs}${epoch < 0 ? '-' : '+'}${Math.abs(epoch)}`;
}

/** The layout of a key; undefined if `key` is not exactly one. */
function parseLayoutKey(key) {
  const [, ...parts] = (typeof key === 'string' && PATTERN.exec(key)) || [];
  const [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs, epoch] =
    parts.map(Number);
  const layout = {
    ...{ timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits },
    ...{ tickMs, epoch },
  };
  // Leading zeros, and numbers that are not exact, do not come back.
  return parts.length > 0 && layoutKey(layout) === key ? layout : undefined;
}

module.exports = { layoutKey, parseLayoutKey };
