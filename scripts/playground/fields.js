'use strict';
// The fields of an ID, high to low: the names of their values and widths, their letter as `snowdrift parse` prints it,
// and their purpose.

const FIELDS = [
  {
    name: 'timestamp',
    bits: 'timestampBits',
    letter: 't',
    label: 'timestamp',
    why: 'Ticks since the epoch. It comes first, so IDs sort by time.',
  },
  {
    name: 'datacenterId',
    bits: 'datacenterBits',
    letter: 'd',
    label: 'datacenter ID',
    why: 'Names, with the worker ID, the node that issued the ID. Each datacenter assigns worker IDs by itself.',
  },
  {
    name: 'workerId',
    bits: 'workerBits',
    letter: 'w',
    label: 'worker ID',
    why: 'Tells hosts apart: no two have the same one, so their IDs differ. Also called machine ID.',
  },
  {
    name: 'clockBack',
    bits: 'clockBackBits',
    letter: 'b',
    label: 'clock-back counter',
    why: '0 until the clock rolls back. Then IDs continue under the next free value, without duplicates.',
  },
  {
    name: 'sequence',
    bits: 'sequenceBits',
    letter: 's',
    label: 'sequence',
    why: 'Counts the IDs of one node within one tick. If it is exhausted, callers wait for the next tick.',
  },
];

/** The node of IDs that the page composes, if the layout has these numbers. */
function sampleNode(layout) {
  const within = (value, bits) => Math.min(value, 2 ** bits - 1);
  return {
    datacenterId: within(1, layout.datacenterBits),
    workerId: within(3, layout.workerBits),
  };
}

module.exports = { FIELDS, sampleNode };
