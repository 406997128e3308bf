'use strict';
// Options of several commands: for a layout and for a node.

/**
 * @import { LeaseOptions, SnowFlake as Flake, SnowFlakeOptions } from '../../index.js'
 * @import { Layout } from '../types.js'
 */

/**
 * The values of the flags that a command declares.
 * @template Options
 * @typedef {{ [K in keyof Options]?: Options[K] extends { type: 'boolean' } ? boolean : string } & { json?: boolean }} FlagsOf
 */

const { directoryOf, numberIn, variable } = require('../messages/checks.js');
const { SnowFlake } = require('../snowflake.js');
const { configError, describe } = require('../messages/errors.js');
const { environmentOf } = require('../runtime/environment.js');
const { layouts, readLayout } = require('../ids/layouts.js');
const { DATE_LIMIT } = require('../ids/presets.js');
const { parseLayoutKey } = require('../ids/layout-key.js');
const { isServer } = require('../stores/url.js');
const { FILE_HELP, STORE_OPTIONS, readUrl } = require('./store-url.js');
const { NONE } = require('../ids/properties.js');

const LAYOUT_OPTIONS = /** @type {const} */ ({
  layout: { type: 'string' },
  epoch: { type: 'string' },
});

const LAYOUT_HELP = `Layout:
  --layout LAYOUT       node (default), twitter, uid, discord, safe; or the bits of
                        timestamp/datacenter/worker/clock-back/sequence, such as 41/3/5/2/12, or
                        28/0/22/0/13@1000 for ticks of 1000 ms, with the epoch of node
  --epoch TIME          Unix ms, or a date such as 2026-01-01`;

const NODE_OPTIONS = /** @type {const} */ ({
  ...LAYOUT_OPTIONS,
  'datacenter-id': { type: 'string' },
  'worker-id': { type: 'string' },
  state: { type: 'string' },
  lease: { type: 'string' },
  ...STORE_OPTIONS,
});

/** @typedef {FlagsOf<typeof NODE_OPTIONS>} NodeFlags */

const NODE_HELP = `Node and lease:
  --datacenter-id N     default: the environment variable datacenterId
  --worker-id N         default: the environment variable workerId. With a lease from a server:
                        claims it
  --state DIRECTORY     records the node there, so that no restart or other host issues duplicates
  --lease URL           leases a free worker ID from file:///var/lib/app/ids, postgres://..., ...
                        Default: the environment variable SNOWDRIFT_LEASE
${FILE_HELP}

${LAYOUT_HELP}`;

/** @param {string} layout */
function readLayoutText(layout) {
  if (Object.hasOwn(layouts, layout)) return layout;
  const bits = layout.includes('@') ? layout : `${layout}@1`;
  const read = parseLayoutKey(`${bits}+${layouts.node.epoch}`);
  if (read !== undefined) return read;
  throw configError(
    `the layout must be ${Object.keys(layouts).join(', ')}, or five numbers of bits, timestamp/datacenter/worker/clock-back/sequence, such as 41/3/5/2/12; it is ${describe(layout)}`,
  );
}

/**
 * The layout that the flags of LAYOUT_OPTIONS name; undefined if none is given.
 * @param {FlagsOf<typeof LAYOUT_OPTIONS>} flags
 */
function readLayoutFlags({ layout, epoch }) {
  if (layout === undefined && epoch === undefined) return undefined;
  const given = layout === undefined ? layouts.node : readLayoutText(layout);
  if (epoch === undefined) return readLayout(given);
  const time = /^-?\d+$/.test(epoch) ? Number(epoch) : new Date(epoch);
  if (!(Math.abs(Number(time)) <= DATE_LIMIT)) {
    throw configError(`--epoch must be Unix ms or a date; it is ${describe(epoch)}`);
  }
  return readLayout(given, time);
}

/**
 * The whole number of a flag; undefined if it is not given.
 * @param {string} flag the flag as users write it
 * @param {string | undefined} text
 */
function readWholeNumber(flag, text, min = 0, max = Number.MAX_SAFE_INTEGER) {
  if (text === undefined) return undefined;
  const number = numberIn(text);
  if (number >= min && number <= max) return number;
  const range = max === Number.MAX_SAFE_INTEGER ? '' : ` from ${min} to ${max}`;
  throw configError(`${flag} must be a whole number${range}; it is ${describe(text)}`);
}

/** The flag of each field of a node, and the layout's bits for it. */
const NODE_FIELDS = /** @type {const} */ ({
  datacenterId: { flag: 'datacenter-id', bitsIn: 'datacenterBits' },
  workerId: { flag: 'worker-id', bitsIn: 'workerBits' },
});

const NODE_NAMES = /** @type {const} */ (['datacenterId', 'workerId']);

/**
 * The datacenter and worker ID that flags name.
 * @param {NodeFlags} flags
 * @param {Layout} layout
 */
function readNodeFlags(flags, layout) {
  const read = (/** @type {typeof NODE_NAMES[number]} */ name) => {
    const { flag, bitsIn } = NODE_FIELDS[name];
    return readWholeNumber(`--${flag}`, flags[flag], 0, 2 ** layout[bitsIn] - 1);
  };
  return { datacenterId: read('datacenterId'), workerId: read('workerId') };
}

/**
 * Throws if neither flags nor the environment name what a generator needs.
 * @param {ReturnType<typeof readNodeFlags>} node
 * @param {Layout} layout
 * @param {boolean} takesAnyWorker
 */
function checkNode(node, layout, takesAnyWorker) {
  const missing = NODE_NAMES.filter((name) => {
    const isNeeded =
      layout[NODE_FIELDS[name].bitsIn] > 0 && !(name === 'workerId' && takesAnyWorker);
    return isNeeded && node[name] === undefined && environmentOf(name) === undefined;
  });
  if (missing.length === 0) return;
  const flags = missing.map((name) => {
    const { flag, bitsIn } = NODE_FIELDS[name];
    return `--${flag} (0 to ${2 ** layout[bitsIn] - 1})`;
  });
  const others = missing.includes('workerId')
    ? ', or take any free worker ID with --lease URL'
    : '';
  throw configError(
    `pass ${flags.join(' and ')}, or set ${missing.join(' and ')} in the environment${others}`,
  );
}

/**
 * The URL of a lease's store, and whether a flag named it; undefined without a lease.
 * @param {NodeFlags} flags
 * @param {number} [workerId]
 */
function readLease(flags, workerId) {
  const ofEnvironment = variable('SNOWDRIFT_LEASE');
  const isFlag = flags.lease !== undefined;
  const isSet = ofEnvironment !== undefined && variable('SNOWDRIFT_STATE') === undefined;
  const text = flags.lease ?? (isSet && flags.state === undefined ? ofEnvironment : undefined);
  if (text === undefined) return undefined;
  const name = isFlag ? '--lease' : 'the environment variable SNOWDRIFT_LEASE';
  const url = readUrl(name, text);
  if (flags.state !== undefined || (workerId !== undefined && !isServer(url))) {
    throw configError(
      `${name} takes any free worker ID: leave out --worker-id and --state, or the lease`,
    );
  }
  return { url, isFlag };
}

/**
 * Opens the generator of NODE_OPTIONS.
 * @param {NodeFlags} flags
 * @param {SnowFlakeOptions} [more]
 * @param {LeaseOptions} [ofServer] the options of a lease from a server
 * @returns {Promise<Flake>}
 */
async function openGenerator(flags, more = NONE, ofServer = NONE) {
  const layout = readLayoutFlags(flags);
  const node = readNodeFlags(flags, layout ?? layouts.node);
  const lease = readLease(flags, node.workerId);
  checkNode(node, layout ?? layouts.node, lease !== undefined);
  const { workerId, ...others } = { ...(layout && { layout }), ...node, ...more };
  if (lease !== undefined) {
    const claim = isServer(lease.url)
      ? { ...(workerId !== undefined && { workerId }), ...ofServer }
      : {};
    // If the environment names the store, its workerId is a claim.
    return SnowFlake.lease(lease.isFlag ? lease.url : undefined, { ...others, ...claim });
  }
  const { state } = flags;
  if (state === undefined) return new SnowFlake({ ...others, workerId });
  directoryOf('--state', state, { urlOnly: false });
  return new SnowFlake({ ...others, workerId, state });
}

module.exports = {
  LAYOUT_HELP,
  LAYOUT_OPTIONS,
  NODE_HELP,
  NODE_OPTIONS,
  openGenerator,
  readLayoutFlags,
  readLease,
  readNodeFlags,
  readWholeNumber,
};
