// Measures the README's claims. Prints tables, and with --save writes results/latest.json, the charts, docs/benchmarks.md,
// and what the README and docs/comparison.md show of it.
//
//   npm run bench [-- --quick] [-- --save]
//   npm run bench -- peers ...                 other kinds of IDs instead: see peers/index.mjs

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

const { Server, missing: missingServer } = createRequire(import.meta.url)(
  '../__test__/support/lease/servers.js',
);

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const quick = process.argv.includes('--quick');
const save = process.argv.includes('--save');

if (!existsSync(here('node_modules'))) {
  console.log('Installing the peers ...');
  execFileSync('npm', ['ci', '--prefix', here('.')], { stdio: 'pipe' });
}
if (process.argv.includes('peers')) {
  await import('./peers/index.mjs');
  process.exit();
}
const { candidates, wide } = await import('./candidates.mjs');
const { measure, median } = await import('./measure.mjs');
const { alone, eightProcesses, twoThreads } = await import('./throughput.mjs');
const { BATCHES, decoding, perBatch, perTurn } = await import('./calls.mjs');
const { lags } = await import('./lag.mjs');
const { server: serving } = await import('./server.mjs');
const { bursts, latency, onOneCore, together } = await import('./ring.mjs');
const { chart, latencyChart } = await import('./chart.mjs');
const { page } = await import('./page.mjs');
const { save: saveReadme } = await import('./readme.mjs');
const { default: kinds } = await import('./peers/kinds.cjs');

const rounds = quick ? 15 : 101;
const ms = quick ? 1000 : 4000;

const server = missingServer('postgres') ? undefined : await Server.start('postgres');
if (server) process.env.DATABASE_URL = server.url;
const all = await candidates();
const { flake, ours, baselines, peers } = all;
console.log(`Measuring, ${rounds} rounds ...`);
const ns = measure('burst', { ...ours, ...baselines, ...peers }, rounds);
const written = measure(
  'written',
  {
    ours: ours['snowdrift nextIdString()'],
    class: baselines['Node SnowFlake class, string'],
  },
  rounds,
);
console.log('Measuring turns, batches and decoding ...');
const turns = await perTurn(all, rounds);
const batches = await perBatch({ flake }, rounds);
const decoded = await decoding(rounds);
const lag = await lags(quick ? 200 : 1000);
const served = await serving(ms * 2);
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
const addon = readdirSync(here('../js')).find((name) => name.endsWith('.node'));
const opened = JSON.parse(execFileSync(process.execPath, ['--expose-gc', here('open.cjs')]));
/** Of the package and of its addon alone, interleaved. */
const required = { package: [], addon: [] };
for (let round = 0; round < (quick ? 5 : 15); round++) {
  for (const [what, path] of [
    ['package', '..'],
    ['addon', here(`../js/${addon}`)],
  ]) {
    required[what].push(Number(execFileSync(process.execPath, [here('require.cjs'), path])));
  }
}
const requireMs = median(required.package);
const addonMs = median(required.addon);
const addonMb = statSync(here(`../js/${addon}`)).size / 1e6;

const isOfNpm = (name) => !kinds.KINDS[name]?.package.startsWith('node:');
const fastestPeer = Object.keys(peers)
  .filter(isOfNpm)
  .reduce((a, b) => (ns[a] <= ns[b] ? a : b));
const times = (value) => `${value.toFixed(2)} times`;
const percent = (value) => `${(value * 100).toFixed(1)}%`;
const nextId = ns['snowdrift nextId()'];
const cached = ns['snowdrift CachedSnowFlake'];
const nextIdString = ns['snowdrift nextIdString()'];
const { lone, awaited, promised } = turns;
const [HAND, CLASS] = ['hand-tuned JavaScript', 'Node SnowFlake class'];
const nsOf = (value) => `${value.toFixed(1)} ns`;
const kb = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const us = (value) => `${value.toFixed(0)} us`;

/** One ID per callback or after an await, by way of drawing. */
const turnRow = (what, target, all, name, other) => [what, target, all[name] / all[other], times];
/** The time of an ID in a batch, as a share of nextId() in a loop. */
const batchRow = (name, loop) => [
  `${name}, per ID, in the time of a loop`,
  Number(/\d+/.exec(name)) < 16 ? '<= 1' : '<= 1.5',
  batches[name] / batches[loop],
  times,
];

/** By claim: the measured value, and whether the claim is met. */
const rows = [
  ['nextId() against the Node SnowFlake class', '>= 7', ns['Node SnowFlake class'] / nextId, times],
  ['nextId() against hand-tuned JavaScript', '>= 3', ns['hand-tuned JavaScript'] / nextId, times],
  [`nextId() against ${fastestPeer}, the fastest package`, '>= 6', ns[fastestPeer] / nextId, times],
  [
    'nextIdString() against the Node SnowFlake class',
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
  turnRow('... one per callback', '<= 1.2', lone, 'nextId, with state', 'nextId'),
  turnRow(
    'one nextId() per callback, in the time of hand-tuned JavaScript',
    '<= 1.8',
    lone,
    'nextId',
    HAND,
  ),
  turnRow('... against the Node SnowFlake class', '>= 1.6', lone, CLASS, 'nextId'),
  turnRow(
    'one nextIdString() per callback, in the time of hand-tuned JavaScript',
    '<= 1.8',
    lone,
    'nextIdString',
    `${HAND}, string`,
  ),
  turnRow(
    '... against the Node SnowFlake class',
    '>= 1.6',
    lone,
    `${CLASS}, string`,
    'nextIdString',
  ),
  turnRow(
    'one nextId() after each await, in the time of hand-tuned JavaScript',
    '<= 1.4',
    awaited,
    'nextId',
    HAND,
  ),
  turnRow(
    'await nextIdAsync(), in the time of await nextId()',
    '<= 1.3',
    promised,
    'nextIdAsync',
    'nextId',
  ),
  ...BATCHES.map((n) => batchRow(`nextIds(${n})`, 'loop')),
  ...BATCHES.map((n) => batchRow(`nextIdStrings(${n})`, 'loop, string')),
  ['nextIds(array of 1000), ns per ID', '<= 1', batches['nextIds(array of 1000)'], nsOf],
  ['nextIds(100_000), ns per ID', '<= 4', batch, nsOf],
  ...['bigint', 'string'].map((type) => [
    `parse(${type}), in the time of @sapphire/snowflake`,
    '<= 1',
    decoded[`parse(${type})`] / decoded[`@sapphire deconstruct(${type})`],
    times,
  ]),
  ['floorId(ms)', '<= 300', decoded['floorId(ms)'], nsOf],
  ['compose(fields)', '<= 300', decoded['compose(fields)'], nsOf],
  [
    'IDs that lag by 1 ms at most, the worst of 8 rates',
    '>= 0.999',
    lag.worst,
    (value) => `${(value * 100).toFixed(2)}%`,
  ],
  ['IDs that lag after 16 calls and a pause', '<= 0', lag.pauses[16], String],
  ['... after 100,000 calls', '<= 256', lag.pauses[100_000], String],
  [
    'an HTTP request with an ID, in the CPU time of one without',
    '<= 1.05',
    served.one / served.none,
    times,
  ],
  ['an instance of an open node, opened and closed', '<= 30', opened.again.us, us],
  ['... memory', '<= 3000', opened.again.bytes, kb],
  ['... kept open', '<= 3000', opened.kept.bytes, kb],
  ['an instance of a new node, opened', '<= 200', opened.fresh.us, us],
  ['... memory', '<= 8000', opened.fresh.bytes, kb],
  ['default layout, BigInt, share of its limit', '>= 0.99', sustained.bigint.ofCeiling, percent],
  ['... of a core', '<= 0.33', sustained.bigint.cores, percent],
  ['default layout, string, share of its limit', '>= 0.99', sustained.string.ofCeiling, percent],
  ['... of a core', '<= 0.33', sustained.string.cores, percent],
  ['8 processes, share of 8 limits', '>= 0.95', eight, percent],
  ['2 threads of one node, share of its limit', '>= 0.99', threads.ofCeiling, percent],
  ['... duplicates', '<= 0', threads.duplicates, String],
  [
    'CachedSnowFlake nextId() against the Node SnowFlake class',
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
  ['... in the time of its addon alone', '<= 1.5', requireMs / addonMs, times],
  ['the addon', '<= 1', addonMb, (value) => `${value.toFixed(2)} MB`],
].map(([what, target, value, shown]) => {
  const [relation, limit] = target.split(' ');
  const met = relation === '>=' ? value >= Number(limit) : value <= Number(limit);
  return { what, target, measured: shown(value), met, value };
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
console.table(Object.entries(ns).map(([name, value]) => ({ name, 'ns per ID': value.toFixed(1) })));
console.log('A call at 100,000 a second, ns:');
console.table(calls);
console.table(rows.map(({ value, met, ...row }) => ({ ...row, met: met ? 'yes' : 'NO' })));
if (save) {
  const results = {
    ...{ date, machine, layout: wide, rounds, ns, written, turns, batches, decoded, lag, served },
    ...{ opened, calls, sustained, rows },
  };
  writeFileSync(here('results/latest.json'), `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(here('results/chart.svg'), chart(results));
  writeFileSync(here('results/latency.svg'), latencyChart(results));
  writeFileSync(here('../docs/benchmarks.md'), page(results));
  saveReadme();
  console.log('Saved results/, docs/benchmarks.md, docs/comparison.md and README.md');
}
await server?.stop();
if (threads.duplicates > 0) process.exitCode = 1;
