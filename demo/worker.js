'use strict';
// One worker of the demo. Its datacenterId is in its environment; its workerId, too, or it takes one
// that is free.

const { SnowFlake } = require('snowdrift');

/** How many IDs are drawn between two reports of progress. */
const CHUNK = 100_000;

/** With a lease of its own, or as most applications draw: by the static functions. */
const kindsOf = (flake) => ({
  bigint: flake === undefined ? () => SnowFlake.nextId() : flake.nextId,
  string: flake === undefined ? () => SnowFlake.nextIdString() : flake.nextIdString,
});

/** Short times, since a lease in a new namespace on Redis starts after them. */
const optionsOf = (url) => (url.startsWith('redis') ? { ttl: 3000, maxClockSkew: 1000 } : {});

/** Sends a message and waits until it has left: the primary must not be flooded. */
const send = (message) =>
  new Promise((resolve, reject) =>
    process.send(message, (error) => (error ? reject(error) : resolve())),
  );

async function run({ count, lease }) {
  const flake = lease === undefined ? undefined : await SnowFlake.lease(lease, optionsOf(lease));
  const { workerId } = flake ?? SnowFlake.default;
  for (const [kind, draw] of Object.entries(kindsOf(flake))) {
    let ms = 0;
    for (let done = 0; done < count; ) {
      const drawn = new Array(Math.min(CHUNK, count - done));
      const start = performance.now();
      for (let i = 0; i < drawn.length; i++) drawn[i] = draw();
      ms += performance.now() - start;
      done += drawn.length;
      // Strings travel as strings, so that it is them that are compared.
      const ids = kind === 'bigint' ? BigUint64Array.from(drawn) : drawn;
      await send({ kind, workerId, ids, done, ms });
    }
  }
  flake?.close();
  process.disconnect();
}

module.exports = { run };
