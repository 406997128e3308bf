// Builds the addons for one platform, into artifacts/: node scripts/addons.mjs linux-x64-musl
// Prints their SHA-256; in a workflow of GitHub, these are an output of the step, too.
//
// For Linux by cargo-zigbuild, on either processor: it links against a glibc as old as is wanted, and
// against musl.

import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { libraryOf } from './library.mjs';
import { MAINS } from './packages.mjs';
import { sumsOf } from './sums.mjs';

/** The oldest glibc that Rust itself supports. */
const GLIBC = '2.17';

const TRIPLES = {
  'darwin-arm64': 'aarch64-apple-darwin',
  'darwin-x64': 'x86_64-apple-darwin',
  'linux-arm-gnu': 'armv7-unknown-linux-gnueabihf',
  'linux-arm-musl': 'armv7-unknown-linux-musleabihf',
  'linux-arm64-gnu': 'aarch64-unknown-linux-gnu',
  'linux-arm64-musl': 'aarch64-unknown-linux-musl',
  'linux-x64-gnu': 'x86_64-unknown-linux-gnu',
  'linux-x64-musl': 'x86_64-unknown-linux-musl',
  'win32-arm64-msvc': 'aarch64-pc-windows-msvc',
  'win32-x64-msvc': 'x86_64-pc-windows-msvc',
};

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const [target] = process.argv.slice(2);
if (!Object.hasOwn(TRIPLES, target)) {
  console.error(`Which platform? One of ${Object.keys(TRIPLES).join(', ')}.`);
  process.exit(2);
}
const triple = TRIPLES[target];
const [platform, , abi] = target.split('-');
const isLinux = platform === 'linux';
const command = isLinux ? 'zigbuild' : 'build';
const full = abi === 'gnu' ? `${triple}.${GLIBC}` : triple;
const features = {
  // An addon is a shared library, which Rust does not make for a musl that is linked statically.
  musl: '-crt-static',
  // So that Windows needs no runtime of Visual C++ installed.
  msvc: '+crt-static',
}[abi];
const env = {
  ...process.env,
  // The crate of TLS is built of its own sources; on Windows with its own objects of assembly.
  AWS_LC_SYS_USE_SYSTEM: '0',
  AWS_LC_SYS_PREBUILT_NASM: '1',
};
// An addon does not tell where it was built.
const folders = [
  [process.cwd(), '/snowdrift'],
  [env.CARGO_HOME ?? join(homedir(), '.cargo'), '/cargo'],
];
env.RUSTFLAGS = [
  ...folders.map(([from, to]) => `--remap-path-prefix=${from}=${to}`),
  ...(features === undefined ? [] : [`-C target-feature=${features}`]),
].join(' ');
const run = (program, ...args) => execFileSync(program, args, { stdio: 'inherit', env });

run('rustup', 'target', 'add', triple);
mkdirSync('artifacts', { recursive: true });
// TLS is C, for which ARM Windows needs clang-cl.
const flags = target === 'win32-arm64-msvc' ? ['--no-default-features'] : [];
for (const crate of Object.keys(MAINS)) {
  const what = ['--locked', '--release', '--lib', '--package', crate, '--target', full];
  run('cargo', command, ...what, ...flags);
  const built = `${process.env.CARGO_TARGET_DIR ?? 'target'}/${triple}/release`;
  const library = `${built}/${libraryOf(crate, platform)}`;
  const told = folders.find(([from]) => isLinux && readFileSync(library).includes(from));
  if (told !== undefined) throw new Error(`${library} has the path ${told[0]} in it`);
  copyFileSync(library, `artifacts/${crate}.${target}.node`);
}

const sums = sumsOf('artifacts', target);
console.log(sums);
const { GITHUB_OUTPUT } = process.env;
if (GITHUB_OUTPUT) appendFileSync(GITHUB_OUTPUT, `${target}=${sums}\n`);
