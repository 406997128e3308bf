'use strict';
// What several commands are told: a layout, and whose IDs.

const { SnowFlake } = require('../snowflake.js');
const { configError } = require('../errors.js');
const { layouts } = require('../options.js');

const LAYOUT = { layout: { type: 'string' }, epoch: { type: 'string' } };

const LAYOUT_HELP = `  --layout LAYOUT       node (default), twitter, uid, discord; or bits, 41/3/5/2/12 for
                        timestamp/datacenter/worker/clock-back/sequence, with @1000 behind them for
                        ticks of 1000 ms, from node's epoch; or
                        '{"timestampBits":41,"datacenterBits":3,"workerBits":5,"clockBackBits":2,
                          "sequenceBits":12,"tickMs":1,"epoch":1580486400000}'
  --epoch TIME          Unix ms, or a date such as 2026-01-01`;

const NODE = {
  ...LAYOUT,
  'datacenter-id': { type: 'string' },
  'worker-id': { type: 'string' },
  state: { type: 'string' },
  lease: { type: 'string' },
};

const NODE_HELP = `  --datacenter-id N     else the environment's datacenterId
  --worker-id N         else the environment's workerId
  --state DIRECTORY     where the worker ID is recorded, so that nobody else has it
  --lease URL           any free worker ID from there: file:///var/lib/app/ids, postgres://...
${LAYOUT_HELP}`;

/** A cut as it is written short. */
const BITS = /^(\d+)\/(\d+)\/(\d+)\/(\d+)\/(\d+)(?:@(\d+))?$/;

function readText(layout) {
  const bits = BITS.exec(layout);
  if (bits !== null) {
    const [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs = 1] =
      bits.slice(1).map((digits) => (digits === undefined ? undefined : Number(digits)));
    const cut = { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, tickMs };
    return { ...cut, epoch: layouts.node.epoch };
  }
  if (!layout.startsWith('{')) return layout;
  try {
    return JSON.parse(layout);
  } catch ({ message }) {
    throw configError(`--layout is not JSON: ${message}`);
  }
}

/** A layout as the library takes it. */
function layoutOf({ layout = 'node', epoch }) {
  const read = readText(layout);
  if (epoch === undefined) return { layout: read };
  const time = /^-?\d+$/.test(epoch) ? Number(epoch) : new Date(epoch);
  if (Number.isNaN(Number(time))) {
    throw configError(`--epoch must be Unix ms or a date; it is '${epoch}'`);
  }
  return { layout: read, epoch: time };
}

function wholeNumber(name, text) {
  if (text === undefined) return undefined;
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) {
    throw configError(`--${name} must be a whole number; it is '${text}'`);
  }
  return Number(text);
}

/** The generator that was asked for. */
async function open(flags, more = {}) {
  const options = {
    ...layoutOf(flags),
    datacenterId: wholeNumber('datacenter-id', flags['datacenter-id']),
    workerId: wholeNumber('worker-id', flags['worker-id']),
    state: flags.state,
    ...more,
  };
  if (flags.lease === undefined) return new SnowFlake(options);
  const { workerId, state, ...others } = options;
  if (workerId !== undefined || state !== undefined) {
    throw configError('--lease takes any free worker ID: leave out --worker-id and --state');
  }
  return SnowFlake.lease(flags.lease, others);
}

module.exports = { LAYOUT, LAYOUT_HELP, NODE, NODE_HELP, layoutOf, open, wholeNumber };
