// The benchmark: what the README claims, measured here and now. Prints a table, and with --save
// writes results/latest.json, the charts and docs/benchmarks.md.
//
//   npm run bench [-- --quick] [-- --save]

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const quick = process.argv.includes('--quick');
const save = process.argv.includes('--save');

if (!existsSync(here('node_modules'))) {
  console.log('Installing the peers ...');
  execFileSync('npm', ['ci', '--prefix', here('.')], { stdio: 'pipe' });
}
const { candidates, wide } = await import('./candidates.mjs');
const { measure, median } = await import('./measure.mjs');
const { alone, eightProcesses, twoThreads } = await import('./throughput.mjs');
const { bursts, latency, onOneCore, together } = await import('./ring.mjs');
const { chart, latencyChart } = await import('./chart.mjs');
const { page } = await import('./page.mjs');

const rounds = quick ? 15 : 101;
const ms = quick ? 1000 : 4000;

const { flake, recorded, ours, baselines, peers } = await candidates();
console.log(`Measuring, ${rounds} rounds ...`);
const ns = await measure('burst', { ...ours, ...baselines, ...peers }, rounds);
const written = await measure(
  'written',
  {
    ours: ours['snowdrift nextIdString()'],
    class: baselines['Node SnowFlake class, string'],
  },
  rounds,
);
const turns = await measure(
  'lone',
  {
    empty: () => 1n,
    ours: flake.nextId,
    recorded: recorded.nextId,
    handTuned: baselines['hand-tuned JavaScript'],
  },
  rounds,
);
const batch = median(
  Array.from({ length: rounds }, () => {
    const start = process.hrtime.bigint();
    flake.nextIds(100_000);
    return Number(process.hrtime.bigint() - start) / 100_000;
  }),
);
console.log('Measuring throughput ...');
const sustained = alone(ms);
const eight = await eightProcesses(ms);
const threads = await twoThreads(quick ? 2_000_000 : 8_000_000);
const burst = await bursts(quick ? 11 : 51);
const oneCore = onOneCore(quick ? 3 : 9, quick ? 300 : 1000);
const drained = await together(quick ? 3 : 9, quick ? 200 : 500);
const calls = await latency(ms);
const requireMs = median(
  Array.from({ length: quick ? 5 : 15 }, () =>
    Number(execFileSync(process.execPath, [here('require.cjs')])),
  ),
);
const addon = readdirSync(here('../js')).find((name) => name.endsWith('.node'));
const addonMb = statSync(here(`../js/${addon}`)).size / 1e6;

const fastestPeer = Object.keys(peers).reduce((a, b) => (ns[a] <= ns[b] ? a : b));
const times = (value) => `${value.toFixed(2)} times`;
const percent = (value) => `${(value * 100).toFixed(1)}%`;
const nextId = ns['snowdrift nextId()'];
const cached = ns['snowdrift CachedSnowFlake'];
const nextIdString = ns['snowdrift nextIdString()'];
const loneRatio = (turns.ours - turns.empty) / (turns.handTuned - turns.empty);

/** What is claimed, what was measured, and whether it holds. */
const rows = [
  ['nextId() against the Node class', '>= 7', ns['Node SnowFlake class'] / nextId, times],
  ['nextId() against hand-tuned JS', '>= 3', ns['hand-tuned JavaScript'] / nextId, times],
  [`nextId() against ${fastestPeer}, the fastest peer`, '>= 6', ns[fastestPeer] / nextId, times],
  [
    'nextIdString() against the Node class',
    '>= 7',
    ns['Node SnowFlake class, string'] / nextIdString,
    times,
  ],
  ['the same, written into a Buffer', '>= 2', written.class / written.ours, times],
  [
    "static nextId(), in an instance's time",
    '<= 1.3',
    ns['snowdrift SnowFlake.nextId()'] / nextId,
    times,
  ],
  [
    'nextId() with state, in the time without',
    '<= 1.2',
    ns['snowdrift nextId(), with state'] / nextId,
    times,
  ],
  [
    '... a lone one a turn',
    '<= 1.2',
    (turns.recorded - turns.empty) / (turns.ours - turns.empty),
    times,
  ],
  ['a lone nextId() a turn, in hand-tuned time', '<= 2', loneRatio, times],
  ['nextIds(100_000), ns an ID', '<= 4', batch, (value) => `${value.toFixed(2)} ns`],
  ['default layout, BigInt, of the ceiling', '>= 0.99', sustained.bigint.ofCeiling, percent],
  ['... of a core', '<= 0.33', sustained.bigint.cores, percent],
  ['default layout, string, of the ceiling', '>= 0.99', sustained.string.ofCeiling, percent],
  ['... of a core', '<= 0.33', sustained.string.cores, percent],
  ['8 processes, of 8 ceilings', '>= 0.95', eight, percent],
  ['2 threads of one node, of the ceiling', '>= 0.99', threads.ofCeiling, percent],
  ['... duplicates', '<= 0', threads.duplicates, String],
  [
    'CachedSnowFlake nextId() against the Node class',
    '>= 8',
    ns['Node SnowFlake class'] / cached,
    times,
  ],
  ["... in SnowFlake's time, a loop without end", '<= 1', cached / nextId, times],
  [
    "... in SnowFlake's time, 32,768 at once, default layout",
    '<= 1',
    burst.CachedSnowFlake / burst.SnowFlake,
    times,
  ],
  [
    '... of a process with one core',
    '>= 30',
    oneCore.CachedSnowFlake / 1e6,
    (value) => `${value.toFixed(1)} million/s`,
  ],
  ['2 threads that drain it, against one', '>= 1.7', drained.twice, times],
  ['4 threads that drain it, of 4 that share nothing', '>= 0.95', drained.ofApart, percent],
  ["require('snowdrift')", '<= 5', requireMs, (value) => `${value.toFixed(1)} ms`],
  ['the addon', '<= 1', addonMb, (value) => `${value.toFixed(2)} MB`],
].map(([what, bar, value, shown]) => {
  const [relation, limit] = bar.split(' ');
  const met = relation === '>=' ? value >= Number(limit) : value <= Number(limit);
  return { what, bar, measured: shown(value), met, value };
});

const machine = {
  cpu: os.cpus()[0].model.trim(),
  cores: os.cpus().length,
  os: `${os.type()} ${os.release().split('-')[0]} ${os.arch()}`,
  node: process.version,
};
const date = new Date().toISOString().slice(0, 10);
const caption = `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, ${date}; medians of ${rounds} interleaved rounds`;

console.log(`\n${caption}\n`);
console.table(Object.entries(ns).map(([name, value]) => ({ name, 'ns an ID': value.toFixed(1) })));
console.log('A call at 100,000 a second, ns:');
console.table(calls);
console.table(rows.map(({ value, met, ...row }) => ({ ...row, met: met ? 'yes' : 'NO' })));
if (save) {
  const results = { date, machine, layout: wide, rounds, ns, written, turns, calls, rows };
  writeFileSync(here('results/latest.json'), `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(here('results/chart.svg'), chart(ns, caption));
  writeFileSync(here('results/latency.svg'), latencyChart(calls, caption));
  writeFileSync(here('../docs/benchmarks.md'), page(results));
  console.log('Saved results/ and docs/benchmarks.md');
}
if (threads.duplicates > 0) process.exitCode = 1;
