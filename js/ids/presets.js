'use strict';
// The named layouts, and the limits of all layouts. Needs no addon and no Node API.
//
// src/core/layout.rs has the same limits. ids/id.test.js compares them.

/** @import { Layout, LayoutName, Show } from '../types.js' */

/** The range of a Date: at most this many ms before or after 1970. */
const DATE_LIMIT = 8.64e15;

/** The most bits of an ID. */
const MOST_BITS = 63;

/**
 * The fields of a layout, with their smallest and largest values.
 * @type {Record<keyof Layout, [number, number]>}
 */
const RANGES = {
  timestampBits: [1, 62],
  datacenterBits: [0, 53],
  workerBits: [0, 53],
  clockBackBits: [0, 4],
  sequenceBits: [1, 53],
  tickMs: [1, 86_400_000],
  epoch: [-DATE_LIMIT, DATE_LIMIT],
};
const LAYOUT_KEYS = /** @type {(keyof Layout)[]} */ (Object.keys(RANGES));

/**
 * @param {number[]} values
 * @returns {Layout}
 */
function preset(...values) {
  const fields = Object.fromEntries(LAYOUT_KEYS.map((key, n) => [key, values[n]]));
  return Object.freeze(/** @type {Record<keyof Layout, number>} */ (fields));
}

/** @type {Readonly<Record<LayoutName, Layout>>} */
const layouts = Object.freeze({
  node: preset(41, 3, 5, 2, 12, 1, 1580486400000),
  twitter: preset(41, 5, 5, 0, 12, 1, 1288834974657),
  uid: preset(28, 0, 22, 0, 13, 1000, 1463673600000),
  discord: preset(41, 5, 5, 0, 12, 1, 1420070400000),
  safe: preset(41, 0, 6, 1, 5, 1, 1767225600000),
});

/**
 * January 1970, in ms. An epoch in it is probably in seconds: Unix seconds of the years until 2054 are in this range.
 */
const JANUARY_1970 = 31 * 86_400_000;

/**
 * The number of bits of a layout's IDs.
 * @param {Layout} layout
 */
function widthOf(layout) {
  return LAYOUT_KEYS.slice(0, 5).reduce((bits, key) => bits + layout[key], 0);
}

/**
 * The message for a value that is no whole number of a range; undefined if it is one.
 * @param {string} name
 * @param {number} value or anything else
 * @param {number} min
 * @param {number} max
 * @param {Show} show returns a value as text
 */
function numberFault(name, value, min, max, show) {
  if (Number.isInteger(value) && value >= min && value <= max) return undefined;
  return `${name} must be a whole number from ${min} to ${max}; it is ${show(value)}`;
}

/**
 * The message for an invalid layout; undefined if it is valid.
 * @param {{ [key in keyof Layout]?: unknown }} layout
 * @param {Show} show returns a value as text
 * @returns {string | undefined}
 */
function faultOf(layout, show) {
  for (const key of LAYOUT_KEYS) {
    const value = layout[key];
    const [min, max] = RANGES[key];
    const fault = numberFault(key, /** @type {number} */ (value), min, max, show);
    if (fault !== undefined) return fault;
  }
  const { epoch } = /** @type {Layout} */ (layout);
  if (epoch > 0 && epoch < JANUARY_1970) {
    return `epoch ${epoch} is ${new Date(epoch).toISOString()}, since it is in ms: if it is ${new Date(epoch * 1000).toISOString()} in seconds, write ${epoch * 1000}`;
  }
  const bits = widthOf(/** @type {Layout} */ (layout));
  if (bits <= MOST_BITS) return undefined;
  return `the widths of a layout must add up to at most ${MOST_BITS} bits (bit 63 is the sign); these add up to ${bits}`;
}

/**
 * The message for a value that is no layout.
 * @param {unknown} layout
 * @param {Show} show
 */
function layoutText(layout, show) {
  const names = Object.keys(layouts).join("', '");
  // The index that ids.map(parse) passes.
  const remedy =
    typeof layout === 'number'
      ? '. map() and filter() pass the index, too: write (id) => parse(id)'
      : '';
  return `layout must be '${names}' or an object; it is ${show(layout)}${remedy}`;
}

module.exports = {
  DATE_LIMIT,
  LAYOUT_KEYS,
  MOST_BITS,
  RANGES,
  faultOf,
  layoutText,
  layouts,
  numberFault,
  widthOf,
};
