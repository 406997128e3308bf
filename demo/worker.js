'use strict';
// A cluster worker: draws IDs each time it is asked to, and sends them all.

const { SnowFlake } = require('snowdrift');

/** Calls after which code runs at its full speed. */
const WARM_UP = 30_000;

const { DEMO_LEASE: lease, datacenterId, workerId = 0 } = process.env;

/** Short times, since the first lease of a new namespace on Redis waits for them. */
const TIMES = lease?.startsWith('redis') ? { ttl: 3000, maxClockSkew: 1000 } : {};

/** The class that many projects copy: right for one process. */
class PlainSnowFlake {
  #node = (BigInt(datacenterId) << 19n) | (BigInt(workerId) << 14n);
  #last = 0;
  #sequence = 0;

  nextId() {
    let now = Date.now();
    while (now < this.#last || (now === this.#last && this.#sequence === 4095)) now = Date.now();
    this.#sequence = now === this.#last ? this.#sequence + 1 : 0;
    this.#last = now;
    return (BigInt(now - 1_580_486_400_000) << 22n) | this.#node | BigInt(this.#sequence);
  }

  nextIdString() {
    return String(this.nextId());
  }
}

function draw(generator, count) {
  const [bigints, strings] = [new BigUint64Array(count), new Array(count)];
  const start = performance.now();
  for (let n = 0; n < count; n++) bigints[n] = generator.nextId();
  for (let n = 0; n < count; n++) strings[n] = generator.nextIdString();
  return { ms: performance.now() - start, bigints, strings: strings.join() };
}

// A failure ends the primary, and all its workers with it.
const send = (message) => process.send(message, () => {});

async function main() {
  const flake = lease === undefined ? undefined : await SnowFlake.lease(lease, TIMES);
  process.once('disconnect', () => flake?.close());
  const generators = {
    snowdrift: flake ?? SnowFlake,
    'a plain class': new PlainSnowFlake(),
  };
  for (const generator of Object.values(generators)) draw(generator, WARM_UP);
  process.on('message', ({ name, count }) => send(draw(generators[name], count)));
  send({});
}

main().catch(({ message }) => send({ failure: message }));
