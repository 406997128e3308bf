'use strict';
// Processes of worker.js that draw at the same time, their progress, and all that they drew.

const { once } = require('node:events');
const { constants } = require('node:os');

const { Progress, number } = require('./output.js');

const KINDS = ['BigInt', 'string'];

/**
 * @param processes by name
 * @returns when all have drawn `count` IDs of each kind: { name, workerId, kind, ms, length, ids }, `ids` packed
 *   as they came
 */
function drawTogether(processes, count) {
  const entries = Object.entries(processes);
  const progress = new Progress(Object.keys(processes), count * KINDS.length);
  const drawn = [];
  let ready = 0;
  // Ends the demo and all its processes. Those that still start would complain that their channel is closed.
  const fail = (message) => {
    for (const [, child] of entries) (child.process ?? child).kill('SIGKILL');
    console.error(message);
    process.exit(1);
  };
  return new Promise((resolve) => {
    let running = entries.length;
    for (const [index, [name, child]] of entries.entries()) {
      const own = KINDS.map((kind) => ({ name, kind, ms: 0, length: 0, ids: [] }));
      drawn.push(...own);
      const total = () => own.reduce((sum, { length }) => sum + length, 0);
      child.on('message', (message) => {
        if (message.failure) fail(`${name}: ${message.failure}`);
        if (message.ready) {
          for (const one of own) one.workerId = message.ready.workerId;
          if (++ready === entries.length) for (const [, one] of entries) one.send({ count });
        }
        if (message.drawn) {
          const { kind, ms, length, ids } = message.drawn;
          const one = own.find((other) => other.kind === kind);
          one.ms += ms;
          one.length += length;
          one.ids.push(ids);
          progress.set(index, total());
        }
      });
      child.on('error', ({ message }) => fail(`${name}: ${message}`));
      // Messages may come after the exit, but not after the channel's end.
      const ended = ['exit', 'disconnect'].map((event) => once(child, event));
      child.on('exit', (code, signal) => {
        // The terminal signals all processes, and may have reached this one first.
        if (signal === 'SIGINT') process.exit(128 + constants.signals.SIGINT);
        if (code !== 0) fail(`${name} ended with ${signal ?? `code ${code}`}`);
      });
      Promise.all(ended).then(() => {
        if (total() < count * KINDS.length) fail(`${name} ended after ${number(total())} IDs`);
        if (--running === 0) resolve(drawn);
      });
    }
  });
}

module.exports = { drawTogether };
