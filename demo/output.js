'use strict';
// Tables, and the count of duplicates.

const number = (value) => Math.round(value).toLocaleString('en-US');

/** Equal IDs are neighbours once they are sorted. */
function countDuplicates(ids) {
  const sorted = ids.slice().sort();
  let duplicates = 0;
  for (let i = 1; i < sorted.length; i++) if (sorted[i] === sorted[i - 1]) duplicates++;
  return duplicates;
}

/** Aligns words to the left and figures to the right. */
function printTable(rows) {
  const columns = Object.keys(rows[0]).map((title) => {
    const cells = [title, ...rows.map((row) => String(row[title]))];
    const width = Math.max(...cells.map(({ length }) => length));
    const hasWords = /^[a-z]/.test(cells[1]);
    return cells.map((cell) => (hasWords ? cell.padEnd(width) : cell.padStart(width)));
  });
  for (let n = 0; n <= rows.length; n++) {
    console.log(`   ${columns.map((cells) => cells[n]).join('  ')}`.trimEnd());
  }
}

module.exports = { countDuplicates, number, printTable };
