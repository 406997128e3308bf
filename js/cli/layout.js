'use strict';
// `snowdrift layout`

const { layouts, readLayout } = require('../options.js');
const { FIELDS, bold, table } = require('./colours.js');
const { LAYOUT, LAYOUT_HELP, layoutOf } = require('./flags.js');

const help = `Usage: snowdrift layout [LAYOUT] [options]

What a cut of bits allows: how long its time lasts, how many nodes, how many IDs. Without a layout, all
that have a name.

  --json                as JSON
${LAYOUT_HELP}`;

const options = LAYOUT;

const YEAR_MS = 365.2425 * 86_400_000;

/** What follows from a layout. Counts as strings: they may exceed what a number holds. */
function allows(layout) {
  const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs } = layout;
  const end = layout.epoch + 2 ** timestampBits * tickMs;
  const inTick = 2n ** BigInt(sequenceBits);
  return {
    ...layout,
    ends: end <= 8.64e15 ? new Date(end).toISOString() : null,
    years: (2 ** timestampBits * tickMs) / YEAR_MS,
    yearsLeft: Math.max(0, end - Date.now()) / YEAR_MS,
    datacenters: String(2n ** BigInt(datacenterBits)),
    workers: String(2n ** BigInt(workerBits)),
    nodes: String(2n ** BigInt(datacenterBits + workerBits)),
    idsPerTick: String(inTick),
    idsPerSecond: String((inTick * 1000n) / BigInt(tickMs)),
    stepsBack: 2 ** clockBackBits - 1,
    unusedBits: 63 - FIELDS.reduce((sum, { bits }) => sum + layout[bits], 0),
  };
}

async function run(flags, positionals, { print, usage }) {
  if (positionals.length > 1) throw usage('layout takes one layout');
  const [given = flags.layout] = positionals;
  if (given === undefined && flags.epoch === undefined) {
    const all = Object.entries(layouts).map(([name, layout]) => [name, allows(layout)]);
    if (flags.json) print(JSON.stringify(Object.fromEntries(all), undefined, 2));
    else print(all.map(([name, what]) => show(name, what)).join('\n\n'));
    return;
  }
  const { layout, epoch } = layoutOf({ layout: given, epoch: flags.epoch });
  const what = allows(readLayout(layout, epoch));
  if (flags.json) print(JSON.stringify(what, undefined, 2));
  else print(show(typeof layout === 'string' ? layout : 'your layout', what));
}

function show(name, what) {
  const cut = FIELDS.map(({ bits }) => what[bits]).join('/');
  const time = (ms) => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms));
  const grouped = (count) => BigInt(count).toLocaleString('en-US');
  const ended =
    what.yearsLeft === 0 ? 'none: its time has run out, choose a later epoch' : undefined;
  const rows = table([
    ['bits', `${cut} timestamp/datacenter/worker/clock-back/sequence, ${what.unusedBits} unused`],
    ['tick', `${what.tickMs} ms`],
    ['time', `${time(what.epoch)} to ${what.ends ?? 'beyond all dates'}`],
    ['years left', ended ?? `${what.yearsLeft.toFixed(1)} of ${what.years.toFixed(1)}`],
    [
      'nodes',
      `${grouped(what.nodes)}: ${grouped(what.datacenters)} datacenters x ${grouped(what.workers)} workers`,
    ],
    ['IDs', `${grouped(what.idsPerTick)} a tick and node, ${grouped(what.idsPerSecond)} a second`],
    ['clock-back', `${what.stepsBack} steps of the clock back are gone on after at one time`],
  ]);
  return [bold(name), ...rows].join('\n');
}

module.exports = { help, options, run };
