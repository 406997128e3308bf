'use strict';
// What the demo prints: progress bars on a terminal, and tables.

const MOST_COLUMNS = 76;
const WIDEST_BAR = 40;

const columns = () => Math.min((process.stdout.columns || 80) - 1, MOST_COLUMNS);
const number = (value) => Math.round(value).toLocaleString('en-US');

/** Whether lines can be redrawn: not in a pipe, nor with NO_COLOR or TERM=dumb. */
function isRedrawable(lines) {
  const { isTTY, rows } = process.stdout;
  return Boolean(isTTY) && process.stdout.hasColors() && (rows || 24) > lines;
}

/** One bar for each name. Where lines cannot be redrawn, a line for each that is done. */
class Progress {
  #names;
  #total;
  #done;
  #widest = 0;

  constructor(names, total) {
    this.#names = names;
    this.#total = total;
    this.#done = names.map(() => 0);
    if (isRedrawable(names.length)) this.#draw();
  }

  set(index, done) {
    if (done === this.#done[index]) return;
    this.#done[index] = done;
    if (this.#widest > 0) this.#draw();
    else if (done === this.#total) console.log(`   ${this.#names[index]}: ${number(done)} IDs`);
  }

  #draw() {
    const width = columns();
    const lines = this.#names.map((name, index) => this.#line(name, this.#done[index], width));
    // A terminal that is narrower than the lines have been has wrapped them: draws new ones below.
    const isFirst = this.#widest === 0 || this.#widest > width;
    this.#widest = Math.max(...lines.map(({ length }) => length));
    const up = isFirst ? '' : `\x1b[${lines.length}A`;
    process.stdout.write(`${up}${lines.map((line) => `\r${line}\x1b[K\n`).join('')}`);
  }

  #line(name, done, most) {
    const share = done / this.#total;
    const percent = `${Math.floor(share * 100)}%`.padStart(4);
    const figure = number(done).padStart(number(this.#total).length);
    const label = `   ${name.padEnd(Math.max(...this.#names.map(({ length }) => length)))}`;
    const width = Math.min(WIDEST_BAR, most - `${label}  ${percent}  ${figure} IDs`.length - 2);
    if (width < 4) return `${label} ${percent}`.slice(0, most);
    const full = Math.floor(share * width);
    const bar = '█'.repeat(full) + '░'.repeat(width - full);
    return `${label}  ${bar}  ${percent}  ${figure} IDs`;
  }
}

/** A paragraph, as wide as the terminal at most, behind a mark of 3 characters. */
function printText(text, mark = '   ') {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= columns() - mark.length)
      lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  for (const [n, line] of lines.entries()) console.log((n === 0 ? mark : '   ') + line);
}

/** A table with aligned columns: to the left those that have words, to the right those of figures. */
function printTable(rows) {
  const cellsByColumn = Object.keys(rows[0]).map((title) => {
    const cells = [title, ...rows.map((row) => String(row[title]))];
    const width = Math.max(...cells.map(({ length }) => length));
    const hasWords = cells.slice(1).some((cell) => /^[A-Za-z]/.test(cell));
    return cells.map((cell) => (hasWords ? cell.padEnd(width) : cell.padStart(width)));
  });
  for (let n = 0; n <= rows.length; n++) {
    console.log(`   ${cellsByColumn.map((cells) => cells[n]).join('  ')}`.trimEnd());
  }
}

module.exports = { Progress, number, printTable, printText };
