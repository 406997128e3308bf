'use strict';
// A process that draws IDs for the demo. Its datacenterId and workerId are in its environment, or it leases a
// workerId. It says that it is ready, waits for a message, and sends all that it draws.

const { SnowFlake } = require('snowdrift');

/** Code runs at its full speed after so many calls. */
const WARM_UP = 30_000;
const MOST_A_CHUNK = 50_000;

const { SNOWDRIFT_LEASE: lease, DEMO_SCOPE: scope } = process.env;

/** Short times, since the first lease of a new namespace on Redis waits for them. */
const TIMES = lease?.startsWith('redis') ? { ttl: 3000, maxClockSkew: 1000 } : {};

/** Resolves when the message has left: the primary must not be flooded. */
const send = (message) =>
  new Promise((resolve, reject) =>
    process.send(message, (error) => (error ? reject(error) : resolve())),
  );

/** How IDs are drawn: as most applications do, by the static functions, or from the lease. */
async function open() {
  if (lease !== undefined) return SnowFlake.lease(lease, TIMES);
  if (scope !== undefined) SnowFlake.configure({ scope });
  return undefined;
}

function drawersOf(flake) {
  if (flake !== undefined) return { BigInt: flake.nextId, string: flake.nextIdString };
  return { BigInt: () => SnowFlake.nextId(), string: () => SnowFlake.nextIdString() };
}

/** Draws n IDs, and returns them with the time that it took. */
function drawChunk(draw, n) {
  const ids = new Array(n);
  const start = performance.now();
  for (let i = 0; i < n; i++) ids[i] = draw();
  return { ids, ms: performance.now() - start };
}

/** Strings travel as they are, so that they are compared. */
const PACKED = {
  BigInt: (ids) => BigUint64Array.from(ids),
  string: (ids) => Buffer.from(ids.join('\n'), 'latin1'),
};

async function main() {
  const flake = await open();
  const drawers = drawersOf(flake);
  for (const draw of Object.values(drawers)) drawChunk(draw, WARM_UP);
  const started = new Promise((resolve) => process.once('message', resolve));
  const { workerId } = flake ?? SnowFlake.default;
  await send({ ready: { workerId } });
  const { count } = await started;

  const order = Object.entries(drawers);
  const chunk = Math.min(MOST_A_CHUNK, Math.ceil(count / 10));
  for (let left = count; left > 0; left -= chunk) {
    // In turns, each kind first as often as the other: neither has a better machine.
    for (const [kind, draw] of order.reverse()) {
      const { ids, ms } = drawChunk(draw, Math.min(chunk, left));
      await send({ drawn: { kind, ms, length: ids.length, ids: PACKED[kind](ids) } });
    }
  }
  flake?.close();
  process.disconnect();
}

// The primary has ended, or this is done.
process.on('disconnect', () => process.exit());
process.on('error', () => process.exit());

// The primary ends of a failure, and all its workers with it.
main().catch(({ message }) => send({ failure: message }).catch(() => process.exit()));
