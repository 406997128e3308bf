// The ring of a CachedSnowFlake: bursts, and threads that drain it together.

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { snowdrift } from './candidates.mjs';
import { medians } from './measure.mjs';

const THREAD = fileURLToPath(new URL('ring-thread.cjs', import.meta.url));
const { CachedSnowFlake, SnowFlake } = snowdrift;

/** A burst of as many IDs as the ring holds, on the default layout; ms by class. */
export function bursts(rounds) {
  const draws = {
    SnowFlake: new SnowFlake({ datacenterId: 4, workerId: 0 }).nextId,
    CachedSnowFlake: new CachedSnowFlake({ datacenterId: 4, workerId: 1, paddingFactor: 100 })
      .nextId,
  };
  const kept = new Array(32_768);
  return medians(draws, rounds, async (nextId) => {
    // Lets the ring fill, as between two bursts.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const start = performance.now();
    for (let i = 0; i < kept.length; i++) kept[i] = nextId();
    return performance.now() - start;
  });
}

/** IDs per second of threads that share one ring, or have a SnowFlake each. */
async function rate(threads, kind, ms) {
  const start = new Int32Array(new SharedArrayBuffer(4));
  const workers = Array.from(
    { length: threads },
    (_, n) => new Worker(THREAD, { workerData: { kind, n, ms, start } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  const answers = workers.map((worker) => once(worker, 'message'));
  Atomics.store(start, 0, 1);
  Atomics.notify(start, 0);
  const rates = await Promise.all(answers);
  return rates.reduce((sum, [one]) => sum + one, 0);
}

/** The speed-up of 2 threads over one, and the share that 4 threads of one ring reach of 4 independent ones. */
export async function together(rounds, ms) {
  const ring = 'CachedSnowFlake';
  const cases = { one: [1, ring], two: [2, ring], four: [4, ring], apart: [4, 'SnowFlake'] };
  const rates = await medians(cases, rounds, ([threads, kind]) => rate(threads, kind, ms));
  return { twice: rates.two / rates.one, ofApart: rates.four / rates.apart };
}
