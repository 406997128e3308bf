// The share of the default layout's maximum rate that is reached, and its CPU time: by one process, by 8
// processes, and by 2 threads of one node.

import cluster from 'node:cluster';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { snowdrift } from './candidates.mjs';

const CEILING = 4_096_000;

/** Draws in whole bursts for some ms. Returns the number of IDs and their cost. */
export function sustain(draw, ms) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  let drawn = 0;
  let last;
  do {
    for (let i = 0; i < 4096; i++) last = draw();
    drawn += 4096;
  } while (performance.now() - start < ms);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: drawn / seconds,
    ofCeiling: drawn / seconds / CEILING,
    cores: (user + system) / 1e6 / seconds,
    last: String(last),
  };
}

/** 8 processes at once: the sum of their shares of 8 maximum rates. */
export async function eightProcesses(ms) {
  cluster.setupPrimary({ exec: fileURLToPath(new URL('worker.cjs', import.meta.url)), args: [ms] });
  const workers = Array.from({ length: 8 }, (_, workerId) =>
    cluster.fork({ datacenterId: 1, workerId }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  for (const worker of workers) worker.send('go');
  const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
  return answers.reduce((sum, [{ ofCeiling }]) => sum + ofCeiling, 0) / 8;
}

/** 2 threads of one node: their share of one maximum rate, and the duplicates among all IDs. */
export async function twoThreads(count) {
  const answers = Array.from({ length: 2 }, async () => {
    const worker = new Worker(new URL('thread.cjs', import.meta.url), { workerData: { count } });
    const [answer] = await once(worker, 'message');
    return answer;
  });
  const [a, b] = await Promise.all(answers);
  const all = new BigUint64Array(a.ids.length + b.ids.length);
  all.set(a.ids);
  all.set(b.ids, a.ids.length);
  all.sort();
  let duplicates = 0;
  for (let i = 1; i < all.length; i++) if (all[i] === all[i - 1]) duplicates++;
  // From the first ID of either thread to the last.
  const time = (id) => snowdrift.SnowFlake.parse(id, 'node').timestamp;
  const seconds = (time(all.at(-1)) - time(all[0]) + 1) / 1000;
  return { ofCeiling: all.length / seconds / CEILING, duplicates };
}
