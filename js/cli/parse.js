'use strict';
// `snowdrift parse`

/**
 * @import { ParsedId } from '../../index.js'
 * @import { Layout } from '../types.js'
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 */

const { fromBase32, isBase32, isId } = require('../id.js');
const { SnowFlake } = require('../snowflake.js');
const { layouts } = require('../ids/layouts.js');
const { widthOf } = require('../ids/presets.js');
const { readArguments, withoutSuffix } = require('./input.js');
const { table } = require('./table.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');

const help = `Usage: snowdrift parse ID... [options]

Decodes IDs and prints the bits and the value of each field. An ID is decimal, or in base32 if it
is not decimal. Without an ID, it reads the standard input: snowdrift next | snowdrift parse

Output:
  --json                prints one array of objects

${LAYOUT_HELP}`;

const options = LAYOUT_OPTIONS;

/** The fields of an ID, high to low, with the names of their widths. */
const FIELDS = /** @type {const} */ ([
  ['timestamp', 'timestampBits'],
  ['datacenterId', 'datacenterBits'],
  ['workerId', 'workerBits'],
  ['clockBack', 'clockBackBits'],
  ['sequence', 'sequenceBits'],
]);

/**
 * @param {FlagsOf<typeof options>} flags
 * @param {string[]} args
 * @param {CommandIo} io
 */
async function run(flags, args, { show, stdin, usage }) {
  const ids = await readArguments(args, stdin, usage);
  if (ids.length === 0) throw usage('parse needs an ID: snowdrift parse 900833463518117888');
  const layout = readLayoutFlags(flags) ?? layouts.node;
  // Refuses any invalid ID before it prints one.
  const parsed = ids.map((text) => SnowFlake.parse(readId(text), layout));
  show(parsed, () => parsed.map((one) => format(one, layout)).join('\n\n'));
}

const readId = (/** @type {string} */ text) =>
  isBase32(text) && !isId(text) ? fromBase32(text) : withoutSuffix(text);

/**
 * @param {ParsedId} parsed
 * @param {Layout} layout
 */
function format(parsed, layout) {
  const width = widthOf(layout);
  const digits = parsed.id.toString(2).padStart(width, '0');
  const time = `${parsed.date.toISOString()} (${parsed.timestamp})`;
  let at = 0;
  const rows = FIELDS.map(([name, bits]) => {
    const own = digits.slice(at, at + layout[bits]);
    at += own.length;
    const isTime = name === 'timestamp';
    return [name, `${own.length} bits`, own, isTime ? time : parsed[name]];
  });
  return [parsed.id, ...table(rows.filter(([, , own]) => own !== ''))].join('\n');
}

module.exports = { help, options, run };
