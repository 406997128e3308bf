'use strict';
// `snowdrift layout`

/**
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 *
 * @typedef {ReturnType<typeof capacityOf>} Capacity
 */

const { describe } = require('../messages/errors.js');
const { capacityOf } = require('../ids/capacity.js');
const { layouts } = require('../ids/layouts.js');
const { bitsOf } = require('../ids/layout-key.js');
const { moment } = require('../runtime/time.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');
const { table } = require('./table.js');

const help = `Usage: snowdrift layout [LAYOUT] [options]

Shows a layout's time range, nodes and IDs per second, and when its IDs get a decimal digit more.
Without a layout, shows all that have a name.

Output:
  --json                prints JSON

${LAYOUT_HELP}`;

const options = LAYOUT_OPTIONS;

/**
 * @param {FlagsOf<typeof options>} flags
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run(flags, positionals, { show, usage }) {
  const named = [...positionals, flags.layout].filter((one) => one !== undefined);
  if (named.length > 1) {
    throw usage(`layout takes one layout, not ${named.length}: ${named.map(describe).join(', ')}`);
  }
  const [given] = named;
  const layout = readLayoutFlags({ layout: given, epoch: flags.epoch });
  if (layout === undefined) {
    const all = Object.entries(layouts).map(
      ([name, layout]) => /** @type {const} */ ([name, capacityOf(layout)]),
    );
    show(Object.fromEntries(all), () => all.map((one) => format(...one)).join('\n\n'));
    return;
  }
  const capacity = capacityOf(layout);
  const name = given ?? 'node';
  const title = Object.hasOwn(layouts, name) ? name : 'your layout';
  show(capacity, () => format(title, capacity));
}

/**
 * The next change of the decimal length.
 * @param {Capacity} capacity
 */
function nextLength({ digits: changes }) {
  const next = changes.find((change) => Date.parse(change.from) > Date.now());
  if (next === undefined) return 'no more from now on';
  return `${next.digits} from ${next.from}: IDs stored as decimal text then sort wrong`;
}

/**
 * @param {string} name
 * @param {Capacity} capacity
 */
function format(name, capacity) {
  const grouped = (/** @type {string | number} */ count) => BigInt(count).toLocaleString('en-US');
  /** @type {(count: string | number, noun: string) => string} */
  const counted = (count, noun) => `${grouped(count)} ${noun}${Number(count) === 1 ? '' : 's'}`;
  const ended =
    capacity.yearsLeft === 0
      ? 'none: its timestamp has overflowed, choose a later epoch'
      : undefined;
  // Of long ticks, a rounded number of IDs per second would be 0.
  const rate =
    capacity.idsPerSecond === '0' ? '' : `, ${grouped(capacity.idsPerSecond)} per second`;
  const rows = table([
    [
      'bits',
      `${bitsOf(capacity)} timestamp/datacenter/worker/clock-back/sequence, ${capacity.unusedBits} unused`,
    ],
    ['tick', `${capacity.tickMs} ms`],
    ['time', `${moment(capacity.epoch)} to ${capacity.ends ?? 'beyond all dates'}`],
    ['years left', ended ?? `${capacity.yearsLeft.toFixed(1)} of ${capacity.years.toFixed(1)}`],
    [
      'nodes',
      `${grouped(capacity.nodes)}: ${counted(capacity.datacenters, 'datacenter')} x ${counted(capacity.workers, 'worker')}`,
    ],
    ['IDs', `${grouped(capacity.idsPerTick)} per tick and node${rate}`],
    ['clock-back', `${counted(capacity.clockRollbacks, 'clock rollback')} tolerated at once`],
    ['digits', nextLength(capacity)],
  ]);
  return [name, ...rows].join('\n');
}

module.exports = { help, options, run };
