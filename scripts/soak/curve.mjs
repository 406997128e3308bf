// A process's memory over time: measured, and judged.

import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * What may rise over a run, by its fitted line, after the warm-up. In four runs of 8 and 10 minutes, beside
 * other work, rss rose by -2 to 12 MB, external by -0.3 to 0.4 MB. A leak of 1 kB a round is 20 MB then.
 */
export const BOUNDS = { rss: 16e6, heapUsed: 500e3, external: 1.5e6, fds: 0.5, threads: 0.5 };

/** The share of a run that allocators, caches and compilers may take to settle. */
const WARM_UP = 0.25;

/** V8's heaps, and with them rss, grow in steps of MB for minutes: in a shorter run, s, rss says nothing. */
const RSS_SECONDS = 300;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

/** How many entries a directory of /proc has; 0 where there is no /proc. */
function count(directory) {
  return process.platform === 'linux' ? readdirSync(directory).length : 0;
}

export function sample() {
  collectGarbage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const fds = count('/proc/self/fd');
  return { rss, heapUsed, external, fds, threads: count('/proc/self/task') };
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** The median slope of all pairs of points (Theil and Sen), which single peaks do not move. */
function slope(points) {
  const slopes = [];
  for (const [i, [x, y]] of points.entries()) {
    for (const [later, high] of points.slice(i + 1)) slopes.push((high - y) / (later - x));
  }
  return median(slopes);
}

/**
 * How much each measure has risen after the warm-up, by its fitted line, and which rose too far.
 * @param samples what `sample` answered, each with its `seconds`
 */
export function judge(samples) {
  const settled = samples.slice(Math.floor(samples.length * WARM_UP));
  const span = settled.at(-1).seconds - settled[0].seconds;
  const risen = Object.fromEntries(
    Object.keys(BOUNDS).map((name) => [
      name,
      slope(settled.map((point) => [point.seconds, point[name]])) * span,
    ]),
  );
  const isLong = samples.at(-1).seconds >= RSS_SECONDS;
  const leaks = Object.keys(BOUNDS).filter(
    (name) => risen[name] > BOUNDS[name] && (name !== 'rss' || isLong),
  );
  return { risen, leaks };
}
