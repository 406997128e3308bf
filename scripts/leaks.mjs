// The addon under valgrind: its tests, and rounds of all that an application can do, and four times as many.
// Fails at an access to memory that is not ours, and if what the addon has not given back grows with the
// rounds, whether or not something still points to it.
//
//   npm run leaks

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Each node is named, and each thread has ended, in the first of them. */
const ROUNDS = 2;
/** How often they are run before it is a leak. */
const TIMES = 3;
/** What a few tables may still grow by, between the two. A leak is as many times its size. */
const ALLOWED_BYTES = 256;

/** Tests in which time plays no part: it passes some 40 times as slowly. */
const TESTS = ['generator/ids', 'generator/turn'];

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
// In memory, so that pages can be there, too.
const directory = mkdtempSync('/dev/shm/snowdrift-leaks-');

const VALGRIND = [
  ...['--leak-check=full', '--show-leak-kinds=all', '--num-callers=40', '--error-exitcode=99'],
  // Leaks are counted here; errors are accesses.
  '--errors-for-leak-kinds=none',
];

/** Runs a script to its end; answers what valgrind said. */
async function underValgrind(name, script, ...args) {
  const log = join(directory, `${name.replace('/', '-')}.log`);
  const node = [process.execPath, '--single-threaded-gc', here(script), ...args];
  const child = spawn('valgrind', [`--log-file=${log}`, ...VALGRIND, ...node], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      TESTS: process.env.TESTS ?? 'platform',
      SNOWDRIFT_SHARED: mkdtempSync(join(directory, 'pages-')),
    },
  });
  let printed = '';
  child.stdout.on('data', (text) => (printed += text));
  const [code] = await once(child, 'close');
  const said = readFileSync(log, 'utf8').replaceAll(/^==\d+== ?/gm, '');
  if (code === 0) return said;
  const errors = said.split('\n\n').filter((record) => !record.includes(' in loss record '));
  console.error(printed, errors.join('\n\n').slice(0, 20_000));
  const what = code === 99 ? 'valgrind found an access that must not be' : `it ended with ${code}`;
  console.error(`${name}: ${what}`);
  process.exit(1);
}

async function test(name) {
  await underValgrind(name, `../__test__/${name}.test.js`);
  console.log(`${name}.test.js: no access that must not be`);
}

/** Runs so many rounds; answers the addon's blocks that were not given back. */
async function run(rounds) {
  const said = await underValgrind(`${rounds} rounds`, './soak/rounds.mjs', String(rounds));
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
  let few;
  let many;
  // A thread that ends late may leave a few blocks behind. A leak grows each time.
  for (let times = 0; times < TIMES && !(many?.bytes <= few?.bytes + ALLOWED_BYTES); times++) {
    [few, many] = await Promise.all([run(ROUNDS), run(4 * ROUNDS)]);
  }
  if (many.bytes > few.bytes + ALLOWED_BYTES) {
    const largest = many.blocks.toSorted((a, b) => b.bytes - a.bytes).slice(0, 3);
    for (const { record } of largest) console.error(`\n${record}`);
    console.error(`\na leak: ${many.bytes - few.bytes} bytes more after four times the rounds`);
    process.exitCode = 1;
  }
  await Promise.all(TESTS.map(test));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
