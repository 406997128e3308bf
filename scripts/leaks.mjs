// The addon under valgrind: rounds of all that an application can do, and four times as many. Fails at
// an access to memory that is not ours, and if what the addon has not given back grows with the rounds,
// whether or not something still points to it.
//
//   npm run leaks

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Each node is named, and each thread has ended, in the first of them. */
const ROUNDS = 2;
/** What a few tables may still grow by, between the two. A leak is as many times its size. */
const ALLOWED_BYTES = 256;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'snowdrift-leaks-'));

const VALGRIND = [
  ...['--leak-check=full', '--show-leak-kinds=all', '--num-callers=40', '--error-exitcode=99'],
  // Leaks are counted here; errors are accesses.
  '--errors-for-leak-kinds=none',
];

/** Runs so many rounds; answers what valgrind said of the addon's blocks. */
async function run(rounds) {
  const log = join(directory, `${rounds}.log`);
  const args = [`--log-file=${log}`, ...VALGRIND, process.execPath, '--single-threaded-gc'];
  const script = here('../__test__/soak/rounds.mjs');
  const child = spawn('valgrind', [...args, script, String(rounds)], { stdio: 'inherit' });
  const [code] = await once(child, 'close');
  const said = readFileSync(log, 'utf8').replaceAll(/^==\d+== ?/gm, '');
  if (code !== 0) {
    const errors = said.split('\n\n').filter((record) => !record.includes(' in loss record '));
    console.error(errors.join('\n\n').slice(0, 20_000));
    throw new Error(
      code === 99 ? 'valgrind found an access that must not be' : `the rounds failed: ${code}`,
    );
  }
  const number = (digits) => Number(digits.replaceAll(',', ''));
  const blocks = said
    .split('\n\n')
    .filter((record) => / in loss record /.test(record) && /snowdrift[^)]*\.node\)/.test(record))
    .map((record) => ({
      record,
      bytes: number(record.match(/^([\d,]+) (?:\([^)]*\) )?bytes in [\d,]+ blocks/m)[1]),
    }));
  const bytes = blocks.reduce((sum, block) => sum + block.bytes, 0);
  console.log(`${rounds} rounds: the addon has not given back ${bytes} bytes`);
  return { blocks, bytes };
}

if (spawnSync('valgrind', ['--version']).error) {
  console.error('there is no valgrind here: apt-get install valgrind');
  process.exit(2);
}
try {
  const [few, many] = await Promise.all([run(ROUNDS), run(4 * ROUNDS)]);
  if (many.bytes > few.bytes + ALLOWED_BYTES) {
    const largest = many.blocks.toSorted((a, b) => b.bytes - a.bytes).slice(0, 3);
    for (const { record } of largest) console.error(`\n${record}`);
    console.error(`\na leak: ${many.bytes - few.bytes} bytes more after four times the rounds`);
    process.exitCode = 1;
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
