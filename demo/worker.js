'use strict';
// One worker of the demo. Its datacenterId and workerId are in its environment.

const { SnowFlake } = require('snowdrift');

/** How many IDs are drawn between two reports of progress. */
const CHUNK = 100_000;

const KINDS = {
  bigint: () => SnowFlake.nextId(),
  string: () => SnowFlake.nextIdString(),
};

/** Sends a message and waits until it has left: the primary must not be flooded. */
const send = (message) =>
  new Promise((resolve, reject) =>
    process.send(message, (error) => (error ? reject(error) : resolve())),
  );

async function run(count) {
  for (const [kind, draw] of Object.entries(KINDS)) {
    let ms = 0;
    for (let done = 0; done < count; ) {
      const drawn = new Array(Math.min(CHUNK, count - done));
      const start = performance.now();
      for (let i = 0; i < drawn.length; i++) drawn[i] = draw();
      ms += performance.now() - start;
      done += drawn.length;
      // Strings travel as strings, so that it is them that are compared.
      const ids = kind === 'bigint' ? BigUint64Array.from(drawn) : drawn;
      await send({ kind, ids, done, ms });
    }
  }
  process.disconnect();
}

module.exports = { run };
