// Fuzzes the core: each target of fuzz/ for some seconds from a copy of its corpus, as many at a time as
// there are cores. Installs cargo-fuzz where it is missing. With --keep, fuzz/corpus is then the fewest inputs,
// old or new, that reach all that was reached.
//
//   npm run fuzz -- --seconds 25 [--keep]

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const CARGO_FUZZ = 'cargo-fuzz@0.13.2';
/** Longer inputs say the same more slowly. */
const LIMIT = 300;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '25' },
    keep: { type: 'boolean', default: false },
  },
});
process.chdir(fileURLToPath(new URL('..', import.meta.url)));

function cargo(...args) {
  const { status } = spawnSync('cargo', args, { stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}

if (spawnSync('cargo', ['+nightly', '--version']).status !== 0) {
  console.log(
    'cargo fuzz is skipped: there is no nightly toolchain here; npm test tries its corpus',
  );
  process.exit();
}
const asked = spawnSync('cargo', ['fuzz', '--version']);
if (asked.status !== 0) cargo('install', '--locked', CARGO_FUZZ);
// What is built is what is locked: `cargo fuzz` itself cannot be told.
cargo('fetch', '--locked', '--manifest-path', 'fuzz/Cargo.toml');
cargo('+nightly', 'fuzz', 'build');

const targets = readdirSync('fuzz/fuzz_targets').map((file) => file.replace('.rs', ''));
const scratch = mkdtempSync(join(tmpdir(), 'snowdrift-fuzz-'));

/** Answers whether nothing was found. */
async function fuzz(target) {
  const corpus = join(scratch, target);
  cpSync(`fuzz/corpus/${target}`, corpus, { recursive: true });
  const limit = `-max_len=${LIMIT}`;
  const time = `-max_total_time=${values.seconds}`;
  const args = ['+nightly', 'fuzz', 'run', target, corpus, '--', limit, time];
  const child = spawn('cargo', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
  const [code] = await once(child, 'close');
  const [runs] = said.match(/Done \d+ runs in \d+ second/) ?? ['it failed'];
  console.log(`${target}: ${runs}(s), from ${readdirSync(`fuzz/corpus/${target}`).length} inputs`);
  if (code !== 0) console.error(said.slice(-8000));
  if (code === 0 && values.keep) {
    const fewest = join(scratch, `${target}-fewest`);
    mkdirSync(fewest);
    cargo('+nightly', 'fuzz', 'run', target, fewest, corpus, '--', limit, '-set_cover_merge=1');
    rmSync(`fuzz/corpus/${target}`, { recursive: true });
    cpSync(fewest, `fuzz/corpus/${target}`, { recursive: true });
  }
  return code === 0;
}

const failed = [];
const waiting = [...targets];
async function work() {
  for (let target = waiting.pop(); target !== undefined; target = waiting.pop()) {
    if (!(await fuzz(target))) failed.push(target);
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, work));
rmSync(scratch, { recursive: true });
if (failed.length > 0) {
  console.error(`a fault was found by ${failed.join(', ')}: see above, and fuzz/artifacts`);
  process.exit(1);
}
