// The soak: rounds of all that an application can do, for as long as one likes, with the curve of the
// process's memory. Fails if it rises. With --save it writes the result to bench/results.json.
//
//   npm run soak -- --minutes 10 [--save]

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { record } from '../bench/tables.mjs';
import { BOUNDS, judge, sample } from './soak/curve.mjs';
import { round } from './soak/round.mjs';

const SAMPLES = 120;
/** A thread takes part in one round of so many. */
const THREAD_EVERY = 10;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    save: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.minutes) * 60;
if (!(seconds > 0)) {
  console.error(`--minutes must be a number above 0; it is ${values.minutes}`);
  process.exit(2);
}

if (process.env.MALLOC_ARENA_MAX === undefined) {
  // glibc gives each thread an arena and keeps what it once held.
  const env = { ...process.env, MALLOC_ARENA_MAX: '1' };
  // The pages of this user's processes are none of a soak's.
  const pages = process.platform === 'linux' && mkdtempSync('/dev/shm/snowdrift-soak-');
  if (pages) env.SNOWDRIFT_SHARED = pages;
  const { status } = spawnSync(process.execPath, process.argv.slice(1), { stdio: 'inherit', env });
  if (pages) rmSync(pages, { recursive: true, force: true });
  process.exit(status ?? 1);
}

const MB = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
const SHOWN = { rss: MB, heapUsed: MB, external: MB, fds: String, threads: String };
const show = (measures) =>
  Object.entries(SHOWN)
    .map(([name, shown]) => `${name} ${shown(measures[name])}`)
    .join(', ');

const directory = mkdtempSync(join(tmpdir(), 'snowdrift-soak-'));
const start = performance.now();
const passed = () => (performance.now() - start) / 1000;
const samples = [];
let ids = 0;
let rounds = 0;
try {
  while (passed() < seconds) {
    ids += await round(rounds, { directory, inThread: rounds % THREAD_EVERY === 0 });
    rounds++;
    if (passed() >= (samples.length * seconds) / SAMPLES) {
      samples.push({ seconds: passed(), rounds, ids, ...sample() });
      if (samples.length % (SAMPLES / 20) === 0) {
        console.log(`${passed().toFixed(0)} s: ${rounds} rounds, ${show(samples.at(-1))}`);
      }
    }
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}

const { risen, leaks } = judge(samples);
console.log(`${ids.toLocaleString('en-US')} IDs in ${rounds} rounds, none twice within a round`);
console.log(`risen after the warm-up: ${show(risen)}`);
console.log(`at the most may rise:    ${show(BOUNDS)}`);
if (values.save) {
  const date = new Date().toISOString().slice(0, 10);
  const cpu = os.cpus()[0].model.trim();
  record({ soak: { date, cpu, node: process.version, seconds, rounds, ids, risen } });
}
if (leaks.length > 0) {
  console.error(`a leak: ${leaks.join(', ')} rose by more than they may`);
  process.exit(1);
}
