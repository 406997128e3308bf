'use strict';
// Text for a terminal: colours and columns.

/** The fields of an ID, high to low. */
const FIELDS = [
  { name: 'timestamp', bits: 'timestampBits', letter: 't', colour: 36 },
  { name: 'datacenterId', bits: 'datacenterBits', letter: 'd', colour: 33 },
  { name: 'workerId', bits: 'workerBits', letter: 'w', colour: 32 },
  { name: 'clockBack', bits: 'clockBackBits', letter: 'b', colour: 31 },
  { name: 'sequence', bits: 'sequenceBits', letter: 's', colour: 35 },
];

const BOLD = 1;

const paint = (text, colour) => `\x1b[${colour}m${text}\x1b[0m`;
const leavePlain = (text) => text;

/** Pads the cells of each row and returns lines. */
function table(rows) {
  const widths = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]))
      .join('  ')
      .trimEnd(),
  );
}

module.exports = { BOLD, FIELDS, leavePlain, paint, table };
