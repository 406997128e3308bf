'use strict';
// One ID, as a BigInt and as its two 32-bit halves. Arithmetic on halves uses numbers, since a single BigInt operation
// takes as long as all of parse(). A function that writes the ID reads it back before it calls another function.

const whole = new BigUint64Array(1);
const halves = new Uint32Array(whole.buffer);
whole[0] = 1n;
const LOW = 1 - halves[0];
const HIGH = 1 - LOW;
const LARGEST_ID = 2n ** 63n - 1n;
/** The values of a half. */
const HALF = 2 ** 32;

/**
 * The ID of two halves.
 * @param {number} low
 * @param {number} high
 */
function join(low, high) {
  halves[LOW] = low;
  halves[HIGH] = high;
  return whole[0];
}

module.exports = { HALF, HIGH, LARGEST_ID, LOW, halves, join, whole };
