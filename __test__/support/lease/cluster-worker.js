'use strict';
// A worker of a cluster that holds a lease until a signal ends it.

const { SnowFlake } = require('../../../js/index.js');
const { memory } = require('../../../js/stores/memory.js');

const store = memory();
const release = async (request) => {
  process.send('released');
  return store.release(request);
};
SnowFlake.lease({ ...store, release }, { datacenterId: 1, scope: 'process' }).then(() =>
  process.send('ready'),
);
