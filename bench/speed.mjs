// The part `speed`: ns per ID of all candidates, and snowdrift's targets. Each target was set before it was measured.

import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { packHere } from '../scripts/packages.mjs';
import { CLASS, candidates, HAND, snowdrift, wide } from './candidates.mjs';
import { CALLS, measure, measureWithoutTurn, medians } from './measure.mjs';
import kinds from './peers/kinds.cjs';
import { bursts, together } from './ring.mjs';
import { eightProcesses, sustain, twoThreads } from './throughput.mjs';

const require = createRequire(import.meta.url);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const BATCHES = [2, 500];

/** ns per ID of batches, and of a loop. */
async function perBatch(flake, rounds) {
  const array = new BigUint64Array(1000);
  const { nextId, nextIdString } = flake;
  const calls = { nextId, nextIdString, 'nextIds(array of 1000)': () => flake.nextIds(array) };
  for (const n of BATCHES) {
    calls[`nextIds(${n})`] = () => flake.nextIds(n);
    calls[`nextIdStrings(${n})`] = () => flake.nextIdStrings(n);
  }
  const size = (name) => Number(/\d+/.exec(name) ?? 1);
  const times = Object.entries(await measure('loop', calls, rounds));
  return Object.fromEntries(times.map(([name, time]) => [name, time / size(name)]));
}

/** ns a call. */
function decoding(flake, rounds) {
  const { Snowflake } = require('@sapphire/snowflake');
  const peer = new Snowflake(new Date(wide.epoch));
  const first = 900710334548443136n;
  const ids = Array.from({ length: CALLS }, (_, i) => first + BigInt(i) * 1234567890n);
  const strings = ids.map(String);
  const calls = {
    bigint: (i) => flake.parse(ids[i]),
    string: (i) => flake.parse(strings[i]),
    'bigint, @sapphire': (i) => peer.deconstruct(ids[i]),
    'string, @sapphire': (i) => peer.deconstruct(strings[i]),
  };
  return measure('loop', calls, rounds);
}

/** ms that a process takes to load the package as it is installed, and another one beside it. */
export async function loading(rounds) {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-bench-'));
  try {
    const to = join(folder, 'node_modules/snowdrift');
    mkdirSync(to, { recursive: true });
    const flags = ['-C', to, '--strip-components=1'];
    execFileSync('tar', ['-xzf', await packHere(folder), ...flags]);
    symlinkSync(here('../node_modules/pg'), join(folder, 'node_modules/pg'));
    const script = join(folder, 'require.cjs');
    copyFileSync(here('require.cjs'), script);
    const load = (name) => Number(execFileSync(process.execPath, [script, name]));
    return await medians({ snowdrift: 'snowdrift', pg: 'pg' }, rounds, load);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param isQuick whether to measure with few rounds */
export async function speed({ isQuick }) {
  const [rounds, ms] = isQuick ? [15, 1000] : [101, 4000];
  const { callback: inCallback, counted, loop: inLoop, peers } = await candidates();
  const trip = await measure('roundTrip', counted, rounds);
  const loop = { ...(await measure('burst', inLoop, rounds)), ...trip };
  const callback = { ...(await measureWithoutTurn('callback', inCallback, rounds)), ...trip };
  const [nextId, nextIdString] = ['snowdrift nextId()', 'snowdrift nextIdString()'];
  const chosen = (calls, names) => Object.fromEntries(names.map((name) => [name, calls[name]]));
  const awaited = await measureWithoutTurn('awaited', chosen(inLoop, [nextId, HAND]), rounds);
  const strings = chosen(inLoop, [nextIdString, `${CLASS}, string`]);
  const written = await measure('written', strings, rounds);
  const flake = new snowdrift.SnowFlake({ layout: wide, datacenterId: 0, workerId: 0 });
  const batches = await perBatch(flake, Math.ceil(rounds / 3));
  const plain = new snowdrift.SnowFlake({ datacenterId: 0, workerId: 0 });
  const decoded = await decoding(plain, rounds);
  const sustained = sustain(plain.nextId, ms);
  loop['snowdrift nextId(), default layout'] = 1e9 / sustained.perSecond;
  const processes = await eightProcesses(ms);
  const threads = await twoThreads(isQuick ? 2_000_000 : 8_000_000);
  const burst = await bursts(isQuick ? 11 : 51);
  const drained = isQuick ? await together(3, 200) : await together(9, 500);
  const opened = JSON.parse(execFileSync(process.execPath, ['--expose-gc', here('open.cjs')]));
  const addon = readdirSync(here('../js/runtime')).find((name) => name.endsWith('.node'));
  const loaded = await loading(isQuick ? 5 : 15);

  const cached = loop['snowdrift CachedSnowFlake'];
  const fastest = peers
    .filter((name) => !kinds.KINDS[name]?.package.startsWith('node:'))
    .reduce((a, b) => (loop[a] <= loop[b] ? a : b));
  const ratio = (times, one, other) => times[one] / times[other];
  const batch = (method, single) =>
    BATCHES.map((n) => [
      `${method}(${n}), per ID / a loop`,
      n === 2 ? '<= 1' : '<= 1.5',
      batches[`${method}(${n})`] / batches[single],
    ]);
  const targets = [
    [`nextId() against the ${CLASS}`, '>= 7', ratio(loop, CLASS, nextId)],
    [`nextId() against ${HAND}`, '>= 3', ratio(loop, HAND, nextId)],
    [`nextId() against ${fastest}, the fastest package`, '>= 6', ratio(loop, fastest, nextId)],
    [`nextIdString() against the ${CLASS}`, '>= 7', ratio(loop, `${CLASS}, string`, nextIdString)],
    [
      'nextIdString() written into a Buffer, against the same',
      '>= 2',
      ratio(written, `${CLASS}, string`, nextIdString),
    ],
    [
      "static nextId() / an instance's",
      '<= 1.3',
      ratio(loop, 'snowdrift SnowFlake.nextId()', nextId),
    ],
    [
      'nextId() with state / without',
      '<= 1.2',
      ratio(loop, 'snowdrift nextId(), with state', nextId),
    ],
    [`one nextId() per callback / ${HAND}`, '<= 1.8', ratio(callback, nextId, HAND)],
    [`one nextId() per callback against the ${CLASS}`, '>= 1.6', ratio(callback, CLASS, nextId)],
    [`one nextId() after each await / ${HAND}`, '<= 1.4', ratio(awaited, nextId, HAND)],
    ...batch('nextIds', 'nextId'),
    ...batch('nextIdStrings', 'nextIdString'),
    ['nextIds(array of 1000), per ID', '<= 1', batches['nextIds(array of 1000)'], 'ns'],
    ['parse(bigint) / @sapphire/snowflake', '<= 1', ratio(decoded, 'bigint', 'bigint, @sapphire')],
    ['parse(string) / @sapphire/snowflake', '<= 1', ratio(decoded, 'string', 'string, @sapphire')],
    ['an instance of an open node, opened and closed', '<= 30', opened.again.us, 'us'],
    ['an instance of an open node: memory', '<= 3', opened.again.bytes / 1000, 'kB'],
    ['an instance of an open node, kept open: memory', '<= 3', opened.kept.bytes / 1000, 'kB'],
    ['an instance of a new node, opened', '<= 200', opened.fresh.us, 'us'],
    ['an instance of a new node: memory', '<= 8', opened.fresh.bytes / 1000, 'kB'],
    ['default layout, share of its limit', '>= 0.99', sustained.ofCeiling, 'share'],
    ['default layout, share of a core', '<= 0.33', sustained.cores, 'share'],
    ['8 processes, share of 8 limits', '>= 0.95', processes, 'share'],
    ['2 threads of one node, share of its limit', '>= 0.99', threads.ofCeiling, 'share'],
    ['2 threads of one node, duplicates', '<= 0', threads.duplicates, 'duplicates'],
    [`CachedSnowFlake against the ${CLASS}`, '>= 8', loop[CLASS] / cached],
    ['CachedSnowFlake / SnowFlake', '<= 1', cached / loop[nextId]],
    [
      'CachedSnowFlake / SnowFlake, a burst of 32,768',
      '<= 1',
      ratio(burst, 'CachedSnowFlake', 'SnowFlake'),
    ],
    ['2 threads that drain a CachedSnowFlake, against one', '>= 1.7', drained.twice],
    [
      '4 threads that drain a CachedSnowFlake, of 4 that share nothing',
      '>= 0.95',
      drained.ofApart,
      'share',
    ],
    ["require('snowdrift')", '<= 5', loaded.snowdrift, 'ms'],
    ["require('snowdrift') / require('pg')", '<= 0.2', loaded.snowdrift / loaded.pg],
    ['the addon', '<= 1', statSync(here(`../js/runtime/${addon}`)).size / 1e6, 'MB'],
  ].map(([what, target, value, unit = 'times']) => ({ what, target, value, unit }));
  return { rounds, layout: wide, loop, callback, targets };
}
