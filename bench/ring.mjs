// The ring of a CachedSnowFlake: bursts, threads that drain it together, and the longest calls.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { snowdrift } from './candidates.mjs';
import { median } from './measure.mjs';

const THREAD = fileURLToPath(new URL('ring-thread.cjs', import.meta.url));
const { CachedSnowFlake, SnowFlake } = snowdrift;

/** A burst of as many IDs as the ring holds, on the default layout; ms by class. */
export async function bursts(rounds) {
  const times = { SnowFlake: [], CachedSnowFlake: [] };
  const flakes = {
    SnowFlake: new SnowFlake({ datacenterId: 4, workerId: 0 }),
    CachedSnowFlake: new CachedSnowFlake({ datacenterId: 4, workerId: 1, paddingFactor: 100 }),
  };
  const kept = new Array(32_768);
  for (let round = 0; round < rounds; round++) {
    for (const [name, { nextId }] of Object.entries(flakes)) {
      // Lets the ring fill, as between two bursts.
      await new Promise((resolve) => setTimeout(resolve, 20));
      const start = performance.now();
      for (let i = 0; i < kept.length; i++) kept[i] = nextId();
      times[name].push(performance.now() - start);
    }
  }
  for (const flake of Object.values(flakes)) flake.close();
  return {
    SnowFlake: median(times.SnowFlake),
    CachedSnowFlake: median(times.CachedSnowFlake),
  };
}

/** IDs per second of processes with one core for all their threads, interleaved. */
export function onOneCore(rounds, ms) {
  const rates = { SnowFlake: [], CachedSnowFlake: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [kind, all] of Object.entries(rates)) {
      all.push(Number(execFileSync('taskset', ['-c', '0', process.execPath, THREAD, kind, ms])));
    }
  }
  return { SnowFlake: median(rates.SnowFlake), CachedSnowFlake: median(rates.CachedSnowFlake) };
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

/**
 * The speed-up of 2 threads over one, and the share that 4 threads of one ring reach of 4 independent ones:
 * interleaved.
 */
export async function together(rounds, ms) {
  const twice = [];
  const ofApart = [];
  for (let round = 0; round < rounds; round++) {
    const one = await rate(1, 'CachedSnowFlake', ms);
    twice.push((await rate(2, 'CachedSnowFlake', ms)) / one);
    const four = await rate(4, 'CachedSnowFlake', ms);
    ofApart.push(four / (await rate(4, 'SnowFlake', ms)));
  }
  return { twice: median(twice), ofApart: median(ofApart) };
}

/**
 * Latency of a call, ns, at 100,000 calls a second, each in a turn of its own, as in a server. Both classes
 * alternate in one run. The measuring itself, which each figure contains, is a third series.
 */
export async function latency(ms) {
  const EVERY = 10_000n;
  const node = { datacenterId: 5, clockBack: 'wait' };
  const draws = {
    'nothing, only measured': () => 1n,
    SnowFlake: new SnowFlake({ ...node, workerId: 0 }).nextId,
    CachedSnowFlake: new CachedSnowFlake({ ...node, workerId: 1 }).nextId,
  };
  const names = Object.keys(draws);
  const times = Object.fromEntries(names.map((name) => [name, new Float64Array(ms * 110)]));
  const counts = Object.fromEntries(names.map((name) => [name, 0]));
  const end = process.hrtime.bigint() + BigInt(ms) * 1_000_000n * BigInt(names.length);
  let due = process.hrtime.bigint();
  let segment = 0n;
  let last;
  await new Promise((resolve) => {
    (function turn() {
      const now = process.hrtime.bigint();
      if (now >= end) return resolve();
      if (now >= due) {
        due += EVERY;
        // A tenth of a second of each.
        segment = now / 100_000_000n;
        const name = names[Number(segment % BigInt(names.length))];
        const draw = draws[name];
        const start = process.hrtime.bigint();
        last = draw();
        const took = Number(process.hrtime.bigint() - start);
        if (counts[name] < times[name].length) times[name][counts[name]++] = took;
      }
      setImmediate(turn);
    })();
  });
  const answer = {};
  for (const name of names) {
    const all = times[name].subarray(0, counts[name]).sort();
    const at = (share) => all[Math.min(all.length - 1, Math.floor(all.length * share))];
    answer[name] = {
      calls: all.length,
      p50: at(0.5),
      p99: at(0.99),
      'p99.9': at(0.999),
      max: all.at(-1),
    };
  }
  if (last === undefined) throw new Error('nothing was drawn');
  return answer;
}
