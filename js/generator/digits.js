'use strict';
// Spells the IDs of a block in decimal digits. The low four digits come from a table. The others are the same for
// thousands of IDs, and kept.

const LOW_DIGITS = 10_000;
const HIGH_HALF = 2 ** 32;

/**
 * '0000' to '9999'. Created on first use, since that takes a ms, and not every application uses strings.
 * @type {string[]}
 */
let table;

class Speller {
  // Own properties, since Object.prototype may be polluted.
  ids;
  halves;
  // The digits of ids[i] are `high`, then table[low + i], if the table has that index.
  high = '';
  low = LOW_DIGITS;

  /**
   * @param {BigUint64Array} ids , halves a block's IDs, whole and as halves, low before high
   * @param {Uint32Array} halves
   */
  constructor(ids, halves) {
    this.ids = ids;
    this.halves = halves;
  }

  /**
   * The string of the ID at an index.
   * @param {number} index
   * @returns {string}
   */
  spell(index) {
    const at = this.low + index;
    return at < LOW_DIGITS ? this.high + table[at] : this.spellAnew(index);
  }

  /**
   * @param {number} index
   * @returns {string}
   */
  spellAnew(index) {
    const { halves } = this;
    table ??= Array.from({ length: LOW_DIGITS }, (_, n) => String(n).padStart(4, '0'));
    // Every step is exact.
    const above = halves[2 * index + 1];
    const rest = (above % LOW_DIGITS) * HIGH_HALF + halves[2 * index];
    const others = Math.floor(above / LOW_DIGITS) * HIGH_HALF + Math.floor(rest / LOW_DIGITS);
    // For a short ID, the table's zeros would be leading zeros.
    if (others === 0) return String(this.ids[index]);
    this.high = String(others);
    this.low = (rest % LOW_DIGITS) - index;
    return this.high + table[this.low + index];
  }

  /** Call it before another block. */
  reset() {
    this.low = LOW_DIGITS;
  }
}

module.exports = { Speller };
