'use strict';
// Spells the IDs of a block in decimal digits: the low four from a table, and before them the others, which are
// the same for thousands of IDs.

const LOW_DIGITS = 10_000;
const HIGH_HALF = 2 ** 32;

/** '0000' to '9999'. Created on first use: it takes a ms, and not every application uses strings. */
let table;

/**
 * @param ids, halves a block, as whole IDs and as halves, low before high
 * @returns `spell` returns the string of the ID at an index; `reset` comes before another block
 */
function createSpeller(ids, halves) {
  // The digits of ids[i] are `high` and then table[low + i], if the table has that index.
  let high = '';
  let low = LOW_DIGITS;

  function spell(index) {
    const at = low + index;
    return at < LOW_DIGITS ? high + table[at] : spellAnew(index);
  }

  function spellAnew(index) {
    table ??= Array.from({ length: LOW_DIGITS }, (_, n) => String(n).padStart(4, '0'));
    // Every step is exact.
    const above = halves[2 * index + 1];
    const rest = (above % LOW_DIGITS) * HIGH_HALF + halves[2 * index];
    const others = Math.floor(above / LOW_DIGITS) * HIGH_HALF + Math.floor(rest / LOW_DIGITS);
    // Without other digits the table's zeros would be leading zeros.
    if (others === 0) return String(ids[index]);
    high = String(others);
    low = (rest % LOW_DIGITS) - index;
    return high + table[low + index];
  }

  function reset() {
    low = LOW_DIGITS;
  }

  return { reset, spell };
}

module.exports = { createSpeller };
