'use strict';
// A layout as a text for records in stores: bits, ms per tick and epoch, such as `41/3/5/2/12@1+1580486400000`. An
// epoch before 1970 has `-` instead of `+`.

/** @import { Layout } from '../types.js' */

const PATTERN = /^(\d+)\/(\d+)\/(\d+)\/(\d+)\/(\d+)@(\d+)([+-]\d+)$/;

/**
 * A layout's bits, such as `41/3/5/2/12`.
 * @param {Omit<Layout, 'tickMs' | 'epoch'>} layout
 */
function bitsOf({ timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits }) {
  return [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits].join('/');
}

/** @param {Layout} layout */
function layoutKey({ tickMs, epoch, ...layout }) {
  return `${bitsOf(layout)}@${tickMs}${epoch < 0 ? '-' : '+'}${Math.abs(epoch)}`;
}

/**
 * The layout of a key; undefined for any other value.
 * @param {unknown} key
 * @returns {Layout | undefined}
 */
function parseLayoutKey(key) {
  const [, ...parts] = (typeof key === 'string' && PATTERN.exec(key)) || [];
  const [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs, epoch] =
    parts.map(Number);
  const layout = {
    ...{ timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits },
    ...{ tickMs, epoch },
  };
  // The comparison excludes leading zeros and inexact numbers.
  return parts.length > 0 && layoutKey(layout) === key ? layout : undefined;
}

module.exports = { bitsOf, layoutKey, parseLayoutKey };
