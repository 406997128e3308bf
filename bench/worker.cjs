'use strict';
// One of 8 processes that draw at once.

const { SnowFlake } = require('..');

process.once('message', async () => {
  const { sustain } = await import('./throughput.mjs');
  process.send(sustain(SnowFlake.nextId, Number(process.argv[2])), () => process.disconnect());
});
SnowFlake.nextId();
process.send('ready');
