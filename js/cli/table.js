'use strict';
// Prints text in columns.

const { printable } = require('../messages/secrets.js');

/**
 * Returns the rows as lines with padded cells. A cell is one line.
 * @param {unknown[][]} rows
 */
function table(rows) {
  const texts = rows.map((row) => row.map((cell) => printable(String(cell ?? ''))));
  const widths = texts[0].map((_, i) => Math.max(...texts.map((row) => row[i].length)));
  return texts.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]))
      .join('  ')
      .trimEnd(),
  );
}

module.exports = { table };
