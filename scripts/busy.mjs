// The gate's tests, again and again on a busy machine: beside twice as many endless loops as there are processors. None may fail:
// what does depends on when the scheduler runs a process, or on chance, and is mended or made a storm.
//
//   npm run storms -- gate
//   node scripts/busy.mjs 5     five times instead of twenty

import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const times = Number(process.argv[2] ?? 20);
if (!(times >= 1)) {
  console.error(`how many times must be a number from 1; it is '${process.argv[2]}'`);
  process.exit(2);
}

/** Endless, as long as this process lives. */
const LOOP = 'const parent = process.ppid; while (process.ppid === parent);';

const loops = Array.from({ length: 2 * availableParallelism() }, () =>
  spawn(process.execPath, ['-e', LOOP], { stdio: 'ignore' }),
);
for (const loop of loops) loop.unref();
process.on('exit', () => {
  for (const loop of loops) loop.kill('SIGKILL');
});

let failed = 0;
for (let run = 1; run <= times; run++) {
  const start = performance.now();
  const env = { ...process.env, TESTS: 'gate' };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/test.mjs'], {
    env,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const [counts] = stdout.match(/\d+ passed, .*/) ?? ['nothing ran'];
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  console.log(
    `run ${run} of ${times}: ${status === 0 ? 'passed' : 'FAILED'}, ${seconds} s, ${counts}`,
  );
  if (status === 0) continue;
  failed++;
  console.error(stdout, stderr);
}
if (failed > 0) {
  console.error(`${failed} of ${times} runs failed`);
  process.exit(1);
}
