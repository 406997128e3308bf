'use strict';
// `snowdrift parse`

const { fromBase32, isBase32, isId } = require('../id.js');
const { SnowFlake } = require('../snowflake.js');
const { layouts } = require('../ids/layouts.js');
const { readArguments, withoutSuffix } = require('./input.js');
const { BOLD, FIELDS, table } = require('./terminal.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');

const help = `Usage: snowdrift parse ID... [options]

Decodes IDs and prints their bits. The letter under a bit names its field. An ID is decimal, or in base32
if it is not decimal. Without an ID, it reads IDs from the standard input: snowdrift next | snowdrift parse

  --base32              reads all IDs as base32, also those of 13 digits
  --json                prints one array of objects
${LAYOUT_HELP}`;

const options = { ...LAYOUT_OPTIONS, base32: { type: 'boolean' } };

async function run(flags, args, { paint, show, stdin, usage }) {
  const ids = await readArguments(args, stdin, usage);
  if (ids.length === 0) throw usage('parse needs an ID: snowdrift parse 900833463518117888');
  const layout = readLayoutFlags(flags) ?? layouts.node;
  // Refuses any invalid ID before it prints one.
  const parsed = ids.map((text) => SnowFlake.parse(readId(text, flags.base32), layout));
  show(parsed, () => parsed.map((one) => draw(one, layout, paint)).join('\n\n'));
}

function readId(text, isOfBase32 = isBase32(text) && !isId(text)) {
  if (isOfBase32) return fromBase32(text);
  return withoutSuffix(text);
}

function draw(parsed, layout, paint) {
  const fields = FIELDS.filter(({ bits }) => layout[bits] > 0);
  const width = fields.reduce((sum, { bits }) => sum + layout[bits], 0);
  const digits = parsed.id.toString(2).padStart(width, '0');
  let at = digits.length - width;
  const drawn = [];
  const letters = [];
  for (const { bits, letter, colour } of fields) {
    const count = layout[bits];
    drawn.push(paint(digits.slice(at, at + count), colour));
    letters.push(paint(letter.repeat(count), colour));
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
  ).map((row, i) => paint(row, fields[i].colour));
  return [paint(String(parsed.id), BOLD), drawn.join(' '), letters.join(' '), ...rows].join('\n');
}

module.exports = { help, options, run };
