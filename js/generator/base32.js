'use strict';
// Spells the IDs of a block in base32: the last two characters from a table, and before them the others, which are
// the same for hundreds of IDs.

const { base32Head, pairOf } = require('../ids/text.js');

/** '00' to 'ZZ'. Created on first use: not every application uses base32. */
let table;

/**
 * @param halves a block's IDs as halves, low before high
 * @returns a function that returns the text of the ID at an index
 */
function createBase32Speller(halves) {
  let head;
  let lowOfHead;
  let highOfHead;
  return (index) => {
    const low = halves[2 * index];
    const high = halves[2 * index + 1];
    if (high !== highOfHead || low >>> 10 !== lowOfHead) {
      table ??= Array.from({ length: 1024 }, (_, bits) => pairOf(bits));
      head = base32Head(low, high);
      lowOfHead = low >>> 10;
      highOfHead = high;
    }
    return head + table[low & 1023];
  };
}

module.exports = { createBase32Speller };
