'use strict';
// `snowdrift parse`

const { SnowFlake } = require('../snowflake.js');
const { readLayout } = require('../options.js');
const { FIELDS, bold, coloured, table } = require('./colours.js');
const { LAYOUT, LAYOUT_HELP, layoutOf } = require('./flags.js');

const help = `Usage: snowdrift parse ID... [options]

Takes IDs apart, and draws their bits: each letter under a bit names the field that it belongs to.

  --json                one array of objects
${LAYOUT_HELP}`;

const options = LAYOUT;

async function run(flags, ids, { print, usage }) {
  if (ids.length === 0) throw usage('parse needs an ID: snowdrift parse 900833463518117888');
  const { layout, epoch } = layoutOf(flags);
  const read = readLayout(layout, epoch);
  // All are looked at before anything is printed.
  const parsed = ids.map((id) => SnowFlake.parse(id, read));
  if (flags.json) print(JSON.stringify(parsed, undefined, 2));
  else print(parsed.map((one) => draw(one, read)).join('\n\n'));
}

function draw(parsed, layout) {
  const fields = FIELDS.filter(({ bits }) => layout[bits] > 0);
  const width = fields.reduce((sum, { bits }) => sum + layout[bits], 0);
  const digits = parsed.id.toString(2).padStart(width, '0');
  let at = digits.length - width;
  const drawn = [];
  const letters = [];
  for (const { bits, letter, colour } of fields) {
    const count = layout[bits];
    drawn.push(coloured(digits.slice(at, at + count), colour));
    letters.push(coloured(letter.repeat(count), colour));
    at += count;
  }
  const rows = table(
    fields.map(({ name, bits, letter }) => [
      letter,
      name,
      `${layout[bits]} bits`,
      name === 'timestamp'
        ? `${Number.isNaN(Number(parsed.date)) ? '' : parsed.date.toISOString()} (${parsed.timestamp})`
        : String(parsed[name]),
    ]),
  ).map((row, i) => coloured(row, fields[i].colour));
  return [bold(String(parsed.id)), drawn.join(' '), letters.join(' '), ...rows].join('\n');
}

module.exports = { help, options, run };
