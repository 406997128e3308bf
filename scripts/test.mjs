// Tests: builds what they take, then runs the core's beside the addon's, then the types. The addon's tests are
// files, which run side by side: of each it says how long it took, and of those that failed what they
// printed. TESTS is for .ci/run and scripts/storms.mjs: see __test__/support/amount.js.
//
//   npm test                      what a change may break, with an addon that is built quickly and checks itself
//   npm test -- lease host/floors of the addon's, those with one of these in their path, and no others, but for storms
//   npm test --workspace NAME     those of a package of packages/, which the others are without, but for storms
//   TESTS=gate npm test           all but the storms, with the addon as it is released

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { run as runFiles } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

import { buildTests, prepare } from './prepare.mjs';

/** So many files at a time: most of them wait more than they work. */
const CONCURRENCY = 4;
/** As storms these take all processors, so that fewer of them run at a time, and none beside the others. */
const HEAVY = /\/(chaos|hosts-chaos|lost|crash|shares|soak)\.test\.js$/;
const HEAVY_CONCURRENCY = 2;
const FILE_TIMEOUT_MS = 15 * 60_000;
/** In this order: the files that take long come first, so that none is left alone in the end. */
const FOLDERS = [
  'lease',
  'host',
  'app',
  'orm',
  'package',
  'cli',
  'server',
  'generator',
  'messages',
  'runtime',
  'public',
  'ids',
].map((name) => `__test__/${name}`);
/** Their tests run only where a path begins with one of these. */
const PACKAGES = ['packages/zookeeper'];

/** What a change rarely breaks: parts of paths. Single tests have `skip: gate`. */
const LEFT_TO_GATE = [
  // Stores: of storms alone.
  'lease/aws.test.js',
  'lease/etcd.test.js',
  'lease/hosts-chaos.test.js',
  'lease/newest-clients.test.js',
  'lease/oldest-clients.test.js',
  'lease/sql-clients.test.js',
  'lease/zookeeper',
  // Applications: of storms alone, of packages that few have installed, and of a script of this repository.
  'app/application.test.js',
  'app/boundary.test.js',
  'app/mocks.test.js',
  'app/runners.test.js',
  'app/soak.test.js',
  // Other packages than snowdrift, on servers; or storms alone.
  'orm/exact.test.js',
  'orm/mikro-orm.test.js',
  'orm/mongoose.test.js',
  'orm/prisma',
  'orm/typeorm-0.3.test.js',
  'orm/typeorm-oldest.test.js',
  // Packages, releases and commands as users have them.
  'package/addon.test.js',
  'package/arm.test.js',
  'package/bundlers.test.js',
  'package/checks.test.js',
  'package/installation.test.js',
  'package/origin.test.js',
  'package/package.test.js',
  'package/sql.test.js',
  'package/test-command.test.js',
  'package/tools.test.js',
  // Other packages' IDs.
];

/** By the flag of prepare.mjs that installs packages: the folders whose storms need them. */
const STORMS_NEED = {
  '--orms': ['orm', 'package'],
  '--clients': ['lease', 'orm'],
  '--runners': ['app', 'package'],
  '--boundary': ['app', 'package'],
};

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const chosen = process.argv.slice(2);
const { TESTS } = process.env;
const isStorms = TESTS === 'storms';
const isQuick = TESTS === undefined && chosen.length === 0;
const isAsReleased = TESTS !== undefined;
/** The packages whose tests are asked for. */
const asked = PACKAGES.filter((folder) => chosen.some((part) => part.startsWith(folder)));
if (isQuick) process.env.TESTS = 'quick';
// Later: it reads TESTS.
const { gate } = (await import('../__test__/support/amount.js')).default;
const started = performance.now();

const text = (seconds) => `${seconds.toFixed(0)} s`;
const since = (time) => (performance.now() - time) / 1000;

/** How long each part took, in s, in the order in which they began. */
const parts = new Map();

/** Runs a part of the tests, and notes its time. */
async function timed(part, work) {
  const began = performance.now();
  parts.set(part, 0);
  const result = await work();
  parts.set(part, since(began));
  return result;
}

function log(what) {
  console.log(`[${text(since(started))}] ${what}`);
}

/** Builds what the tests take. Answers the core's executables. */
async function build() {
  const flags = isStorms ? Object.keys(STORMS_NEED).filter(isNeeded) : [];
  // It takes long, so that a new clone leaves it to CI.
  const isBuilt = readdirSync('packages/zookeeper').some((name) => name.endsWith('.node'));
  if (isAsReleased || isBuilt || asked.length > 0) flags.push('--zookeeper');
  const [, executables] = await Promise.all([
    prepare(flags, { isAsReleased }),
    buildTests({ addon: !isAsReleased, core: chosen.length === 0 }),
  ]);
  return executables;
}

const isNeeded = (flag) =>
  files.some((path) => STORMS_NEED[flag].some((folder) => path.startsWith(`__test__/${folder}/`)));

function testFiles() {
  const files = [...FOLDERS, ...asked.map((folder) => `${folder}/__test__`)]
    .flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`))
    .filter((path) => path.endsWith('.test.js'));
  if (chosen.length === 0) return files;
  const wrong = chosen.find((part) => !files.some((path) => path.includes(part)));
  if (wrong !== undefined) {
    console.error(`no test file has '${wrong}' in its path`);
    process.exit(1);
  }
  return files.filter((path) => chosen.some((part) => path.includes(part)));
}

/** Runs a command to its end. Answers its code or signal, and what it printed. */
async function run(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (printed) => {
      output += printed;
    });
  }
  const [code, signal] = await once(child, 'close');
  return { code: code ?? signal, output };
}

/** Runs the core's tests. Answers the names of those that failed. */
async function testCore(executables) {
  const failed = [];
  for (const executable of executables) {
    const { code, output } = await run(executable, ['--quiet']);
    if (code === 0) continue;
    console.error(output);
    const names = output
      .split('\nfailures:\n')
      .at(-1)
      .match(/(?<=^ {4})\S+$/gm);
    failed.push(...(names ?? [`${executable}: ${code}`]).map((name) => `the core > ${name}`));
  }
  log(`the core ${failed.length === 0 ? 'passed' : 'failed'}`);
  return failed;
}

/** Checks the types. Answers whether they failed, as a list. */
async function testTypes() {
  const tsc = 'node_modules/typescript/bin/tsc';
  const { code, output } = await run(process.execPath, [tsc, '--project', 'tsconfig.json']);
  if (code === 0) return [];
  console.error(output);
  return ['the types'];
}

/** The path of a file of tests, as it is shown. */
const shown = (file) => relative('.', file).replace(/^__test__./, '');

/** How long each file took, in s. */
const durations = new Map();

/** Shows where the time went: each part's, each folder's with all of its files added up, and the slowest files'. */
function showTimes() {
  const folders = new Map();
  for (const [file, seconds] of durations) {
    const folder = dirname(file);
    folders.set(folder, (folders.get(folder) ?? 0) + seconds);
  }
  const slowest = [...durations].sort(([, one], [, other]) => other - one).slice(0, 10);
  for (const [what, entries] of [
    ['time of each part', [...parts]],
    ['files of each folder, added up', [...folders]],
    ['the slowest files', slowest],
  ]) {
    console.log(`${what}: ${entries.map(([name, time]) => `${name} ${text(time)}`).join(', ')}`);
  }
}

/** Shows what only the gate runs: how many files of each folder, and how many single tests. */
function showLeft() {
  const folders = new Map();
  for (const folder of leftFiles.map((file) => dirname(shown(file)))) {
    folders.set(folder, (folders.get(folder) ?? 0) + 1);
  }
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  const left = [...folders].map(([folder, count]) => `${counted(count, 'file')} of ${folder}`);
  if (leftTests > 0) left.push(counted(leftTests, 'test'));
  if (left.length > 0) console.log(`left to the gate (.ci/run): ${left.join(', ')}`);
}

/** Answers the names of those tests of these files that failed. */
async function testAddon(files, concurrency) {
  const counts = { passed: 0, skipped: 0, failed: 0 };
  const reasons = new Map();
  const failed = [];
  const failedFiles = new Set();
  const outputs = new Map();
  const path = [];
  const stream = runFiles({
    files: files.map((file) => resolve(file)),
    concurrency,
    timeout: FILE_TIMEOUT_MS,
  });
  for await (const { type, data } of stream) {
    const { file, name, nesting, skip, details, message } = data;
    if (type === 'test:start') path[nesting] = name;
    else if (type === 'test:stdout' || type === 'test:stderr') {
      outputs.set(file, `${outputs.get(file) ?? ''}${message}`);
    } else if (type === 'test:diagnostic' && file !== undefined && isStorms) {
      console.log(`          ${path[nesting]}: ${message}`);
    } else if (type === 'test:complete' && name === file) {
      const seconds = (details.duration_ms / 1000).toFixed(1).padStart(6);
      durations.set(shown(file), details.duration_ms / 1000);
      console.log(`${seconds} s  ${shown(file)}${details.error ? ' FAILED' : ''}`);
    } else if (type === 'test:pass' && (details.type !== 'suite' || skip !== undefined)) {
      counts[skip === undefined ? 'passed' : 'skipped']++;
      if (typeof skip === 'string') reasons.set(skip, (reasons.get(skip) ?? 0) + 1);
    } else if (type === 'test:fail' && details.error.failureType !== 'subtestsFailed') {
      counts.failed++;
      const where = [relative('.', file), ...path.slice(0, nesting), name].join(' > ');
      failed.push(where);
      failedFiles.add(file);
      console.error(`\n${where} failed:\n${inspect(details.error.cause ?? details.error)}\n`);
    }
  }
  for (const file of failedFiles) {
    console.error(`\n${relative('.', file)} printed:\n${outputs.get(file) ?? 'nothing'}`);
  }
  leftTests += reasons.get(gate) ?? 0;
  reasons.delete(gate);
  for (const [reason, count] of reasons) console.log(`skipped, ${count}: ${reason}`);
  log(
    Object.entries(counts)
      .map(([what, count]) => `${count} ${what}`)
      .join(', '),
  );
  return failed;
}

/** Where processes without SNOWDRIFT_SHARED have their pages: also the applications of who runs the tests. */
const PAGES = process.platform === 'linux' && `/dev/shm/snowdrift-${process.geteuid()}`;

function pages() {
  return PAGES && existsSync(PAGES)
    ? readdirSync(PAGES).filter((name) => name.endsWith('.page'))
    : [];
}

/** Answers that tests have left pages, as a failure where nobody else makes any. */
function leftPages(before) {
  const left = pages().filter((name) => !before.includes(name));
  if (left.length === 0) return [];
  const said = `new pages in ${PAGES}, which a test or an application of yours has made: ${left.join(', ')}`;
  if (TESTS !== undefined) return [said];
  console.error(said);
  return [];
}

const all = testFiles();
const isLeft = (path) => isQuick && LEFT_TO_GATE.some((part) => path.includes(part));
const leftFiles = all.filter(isLeft);
let leftTests = 0;
const files = all.filter((path) => !isLeft(path));
const executables = await timed('installing and building', build);
log('built');
const isHeavy = (file) => isStorms && HEAVY.test(file);
const heavy = files.filter(isHeavy);
const light = files.filter((file) => !isHeavy(file));
const before = pages();
const failed = await Promise.all([
  executables.length === 0 ? [] : timed('the core', () => testCore(executables)),
  timed('the addon', async () => [
    ...(light.length > 0 ? await testAddon(light, CONCURRENCY) : []),
    ...(heavy.length > 0 ? await testAddon(heavy, HEAVY_CONCURRENCY) : []),
  ]),
]);
if (!isStorms) failed.push(await timed('the types', testTypes));
failed.push(leftPages(before));
showTimes();
showLeft();
// Last, where it is seen.
if (failed.flat().length > 0) {
  console.error(`failed:\n${failed.flat().join('\n')}`);
  process.exit(1);
}
