// Does the set-up that every command needs: checks the tools, installs the dependencies, builds the
// addon as a release has it. Fast when there is nothing to do. `npm run build` is this alone; with --zookeeper it builds
// the second addon, too, as quickly as tests can do with, and with --orms, --clients, --runners and --boundary it installs
// what only some tests need. Packages are installed while addons are built. `npm test` has an addon of its own build.

import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import addons from '../js/runtime/addon.js';
import { libraryOf } from './library.mjs';
import { giveUp, run } from './progress.mjs';

const { targetHere } = addons;

const NODE_MAJOR = 20;
const [, RUST_MAJOR, RUST_MINOR] = readFileSync(new URL('../Cargo.toml', import.meta.url), 'utf8')
  .match(/^rust-version = "(\d+)\.(\d+)"/m)
  .map(Number);

const CI = ['ci', '--no-audit', '--no-fund'];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

function checkTools() {
  if (Number(process.versions.node.split('.')[0]) < NODE_MAJOR) {
    giveUp(`Building snowdrift needs Node ${NODE_MAJOR} or later; this is ${process.version}.`);
  }
  const asked = spawnSync('cargo', ['--version'], { encoding: 'utf8' });
  const needed = `Building snowdrift needs Rust ${RUST_MAJOR}.${RUST_MINOR} or later`;
  const remedy =
    'Install it with rustup (see rust-lang.org/tools/install), open a new shell, try again.';
  if (asked.error || asked.status !== 0) {
    giveUp(`${needed}, and there is no working \`cargo\` on the PATH.`, remedy);
  }
  const [, major, minor] = asked.stdout.match(/(\d+)\.(\d+)/).map(Number);
  if (major < RUST_MAJOR || (major === RUST_MAJOR && minor < RUST_MINOR)) {
    giveUp(`${needed}; \`cargo --version\` says ${asked.stdout.trim()}.`, remedy);
  }
  // Rust links with the C compiler.
  if (process.platform !== 'win32' && spawnSync('cc', ['--version']).error) {
    giveUp('Rust needs a C linker, and there is no `cc` on the PATH.', 'Install gcc or clang.');
  }
}

function isInstalled(folder) {
  // npm writes this file last, so it is as new as what is installed.
  const installed = join(folder, 'node_modules/.package-lock.json');
  const wanted = join(folder, 'package-lock.json');
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs;
}

/** What has to be compiled is compiled for tests only, so quickly, and with Node's headers from here. */
function compiling() {
  const prefix = dirname(dirname(process.execPath));
  const hasHeaders = existsSync(join(prefix, 'include/node/node.h'));
  return {
    ...process.env,
    CFLAGS: '-O0',
    CXXFLAGS: '-O0',
    JOBS: 'max',
    ...(hasHeaders && { npm_package_config_node_gyp_nodedir: prefix }),
  };
}

/** Installs the packages of one folder. */
async function installIn(cwd, ...options) {
  if (isInstalled(cwd)) return;
  await run(`npm ci, ${basename(cwd)}`, 'npm', [...CI, ...options], { cwd, env: compiling() });
}

/** Puts what cargo built where its loader looks for it. */
function placeAddon(crate, profile, folder) {
  const library = libraryOf(crate, process.platform);
  const built = `${process.env.CARGO_TARGET_DIR ?? 'target'}/${profile}/${library}`;
  const place = `${folder}/${crate}.${targetHere()}.node`;
  if (existsSync(place) && readFileSync(place).equals(readFileSync(built))) return;
  // Renamed rather than written in place: a process that has the old one mapped keeps it.
  copyFileSync(built, `${place}.new`);
  renameSync(`${place}.new`, place);
}

/** Installs the dependencies, and what tests need by these flags of the command. */
async function install(flags) {
  if (!isInstalled('.')) await run('npm ci', 'npm', CI);
  if (flags.includes('--orms')) {
    for (const name of ['drizzle-kit', 'kysely', 'mikro-orm', 'prisma', 'typeorm-0.3']) {
      await installIn(`__test__/support/orms/${name}`, '--ignore-scripts');
    }
    await installIn('__test__/support/orms/better-sqlite3');
  }
  if (flags.includes('--clients')) {
    const clients = '__test__/support/clients';
    for (const name of readdirSync(clients)) {
      await installIn(`${clients}/${name}`, '--ignore-scripts');
    }
  }
  if (flags.includes('--boundary')) {
    await installIn('__test__/support/boundary', '--ignore-scripts');
  }
  if (flags.includes('--runners')) {
    for (const name of ['pm2', 'jest', 'vitest']) {
      await installIn(`__test__/support/runners/${name}`, '--ignore-scripts');
    }
  }
}

/** Builds the addon as a release has it: linked as a whole, which takes a minute. */
async function build() {
  await run('cargo build, release', 'cargo', ['build', '--release', '--locked']);
  placeAddon('snowdrift', 'release', 'js/runtime');
}

/**
 * Builds what tests take, in one go, so that no crate is compiled for two sets of features: what stands between the addon
 * and its machine (on Linux), and of the core as many as asked for of an addon, which checks overflows and assertions, and
 * its tests.
 * @returns the paths of the tests' executables
 */
export async function buildTests({ addon, core }) {
  const shim = process.platform === 'linux' ? ['--package', 'machine-shim'] : [];
  const what = ['--package', 'snowdrift', '--lib', ...(core ? ['--tests'] : []), ...shim];
  const command = ['build', '--locked', '--message-format', 'json-render-diagnostics', ...what];
  const messages = await run('cargo build, tests', 'cargo', command);
  if (addon) placeAddon('snowdrift', 'debug', 'js/runtime');
  const built = messages.split('\n').filter((line) => line.startsWith('{'));
  return built
    .map((line) => JSON.parse(line))
    .flatMap(({ profile, executable }) => (profile?.test && executable ? [executable] : []));
}

/** Unoptimised: it waits for a server, and optimised its build takes as long as that of the other addon. */
async function buildZooKeeper() {
  const crate = 'snowdrift-zookeeper';
  await run('cargo build, ZooKeeper', 'cargo', ['build', '--locked', '--package', crate]);
  placeAddon(crate, 'debug', 'packages/zookeeper');
}

/**
 * @param flags as of the command
 * @param isAsReleased false where buildTests builds the addon
 */
export async function prepare(flags, { isAsReleased = true } = {}) {
  checkTools();
  console.log('Installing dependencies, building the addon ...');
  const builds = [install(flags)];
  if (isAsReleased) builds.push(build());
  if (flags.includes('--zookeeper')) builds.push(buildZooKeeper());
  await Promise.all(builds);
}

const isCommand = realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
if (isCommand) await prepare(process.argv.slice(2));
