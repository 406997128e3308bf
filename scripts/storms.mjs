// The storms: tests whose result may depend on when the scheduler runs a process, tests that take long, and what looks for
// faults of memory. CONTRIBUTING.md says what is here and why. Each part runs to its end, whatever failed before it; a
// summary comes last. What a machine cannot run is skipped, and named; with CI=true that is a failure.
//
//   npm run storms                  all parts, which takes about two hours
//   npm run storms -- host lease    these parts
//
// TESTS_TIMES=10 has them run ten times as long.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const env = { ...process.env, TESTS: 'storms' };

/** All tests of a folder, with the storms. */
const tests = (folder) => ['node', 'scripts/test.mjs', `${folder}/`];
const npm = (name, ...args) => ['npm', 'run', '--silent', name, ...args];

const RUST = ['cargo', 'test', '--locked', '--quiet', '--no-fail-fast'];

/** The folders of tests, one for each room of the package. */
const FOLDERS = [
  ...['ids', 'generator', 'messages', 'runtime', 'public', 'host', 'lease', 'app', 'orm', 'cli'],
  ...['server', 'package'],
];

/** The command of each part. */
const PARTS = {
  ...Object.fromEntries(FOLDERS.map((name) => [name, tests(`__test__/${name}`)])),
  rust: [...RUST, '--', '--include-ignored', '--skip', 'figures::', '--skip', 'lease::tests::'],
  search: [...RUST, '--release', '--lib', '--', '--include-ignored', 'lease::tests::'],
  zookeeper: tests('packages/zookeeper'),
  leaks: npm('leaks'),
  sanitize: npm('sanitize'),
  miri: npm('miri'),
  fuzz: npm('fuzz', '--', '--seconds', '15'),
  wine: ['node', 'scripts/test-wine.mjs'],
  arm: ['node', 'scripts/test-arm.mjs'],
  audit: npm('audit'),
  planted: npm('planted'),
  gate: ['node', 'scripts/busy.mjs'],
};

const asked = process.argv.slice(2);
const wrong = asked.find((name) => !Object.hasOwn(PARTS, name));
if (wrong !== undefined) {
  console.error(`there is no part '${wrong}'; the parts are ${Object.keys(PARTS).join(', ')}`);
  process.exit(2);
}

/** Runs a command, and prints what it prints. Answers its `result`, and the lines that say what it `skipped`. */
async function run([command, ...args]) {
  console.log(`$ ${[command, ...args].join(' ')}`);
  const isShell = process.platform === 'win32' && command === 'npm';
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'], shell: isShell });
  let line = '';
  const skipped = [];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    process.stdout.write(text);
    const lines = (line + text).split('\n');
    line = lines.pop();
    skipped.push(...lines.filter((each) => /^skipped, \d+: | is skipped: /.test(each)));
  });
  const [code] = await once(child, 'close').catch((failure) => [failure]);
  if (code !== 0) return { result: 'FAILED', skipped };
  const isPart = skipped.some((each) => each.includes(' is skipped: '));
  return { result: isPart ? 'skipped, at least in part' : 'passed', skipped };
}

const { status } = spawnSync(process.execPath, ['scripts/prepare.mjs'], { stdio: 'inherit', env });
if (status !== 0) process.exit(1);
const rows = [];
for (const name of asked.length > 0 ? asked : Object.keys(PARTS)) {
  console.log(`\n== ${name}`);
  const start = performance.now();
  const result = await run(PARTS[name]);
  rows.push({ name, seconds: (performance.now() - start) / 1000, ...result });
}

console.log('\n== summary');
for (const { name, seconds, result, skipped } of rows) {
  console.log(`${name.padEnd(10)}${seconds.toFixed(0).padStart(6)} s  ${result}`);
  for (const line of skipped) console.log(`${' '.repeat(20)}${line}`);
}
const mayPass = process.env.CI ? ['passed'] : ['passed', 'skipped, at least in part'];
if (!rows.every(({ result }) => mayPass.includes(result))) process.exit(1);
