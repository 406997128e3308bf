'use strict';
// Spells the IDs of a block in base32. The last two characters come from a table. The others are the same for hundreds
// of IDs, and kept.

const { base32Head, pairOf } = require('../ids/text.js');

/**
 * '00' to 'ZZ'. Created on first use, since not every application uses base32.
 * @type {string[]}
 */
let table;

class Base32Speller {
  // Own properties, since Object.prototype may be polluted.
  halves;
  head = '';
  lowOfHead = -1;
  highOfHead = -1;

  /** @param {Uint32Array} halves a block's IDs as halves, low before high */
  constructor(halves) {
    this.halves = halves;
  }

  /**
   * The text of the ID at an index.
   * @param {number} index
   */
  spell(index) {
    const low = this.halves[2 * index];
    const high = this.halves[2 * index + 1];
    if (high !== this.highOfHead || low >>> 10 !== this.lowOfHead) {
      table ??= Array.from({ length: 1024 }, (_, bits) => pairOf(bits));
      this.head = base32Head(low, high);
      this.lowOfHead = low >>> 10;
      this.highOfHead = high;
    }
    return this.head + table[low & 1023];
  }
}

module.exports = { Base32Speller };
