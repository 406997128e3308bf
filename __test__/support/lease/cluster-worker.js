'use strict';
// A worker of a cluster that holds a lease until a signal ends it.

const { SnowFlake } = require('../../../js/index.js');
const { memory } = require('../../../js/stores/memory.js');
const { slotsOf } = require('./namespaces.js');

const store = memory();
const write = async (...values) => {
  const reply = await store.write(...values);
  const slots = await slotsOf(store);
  // The slot is free again.
  if (slots.length > 0 && slots.every(({ isHeld }) => !isHeld)) process.send('released');
  return reply;
};
SnowFlake.lease({ ...store, write }, { datacenterId: 1, scope: 'process' }).then(() =>
  process.send('ready'),
);
