// The addon under AddressSanitizer: its tests, and pages and slot files that are overwritten while it uses them. Fails
// at an access to memory that is not ours, also on the stack and among globals, where valgrind sees none. Needs a nightly
// toolchain, and gcc's libasan for Node to load first. Leaks are for scripts/leaks.mjs.
//
//   npm run sanitize

import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import addons from '../js/runtime/addon.js';

/** Tests in which time plays no part, and whose processes load no other library first. */
const TESTS = ['generator/ids', 'generator/reentrancy', 'host/contents-fuzz', 'host/second-user'];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const directory = join(process.cwd(), 'target/asan');

function skip(reason) {
  console.log(`AddressSanitizer is skipped: ${reason}`);
  process.exit(0);
}

if (process.platform !== 'linux') skip('it is tried on Linux');
const version = spawnSync('rustc', ['+nightly', '-vV'], { encoding: 'utf8' });
if (version.status !== 0) skip('there is no nightly toolchain here');
const [, triple] = version.stdout.match(/^host: (.*)$/m);
const library = spawnSync('gcc', ['-print-file-name=libasan.so'], { encoding: 'utf8' });
const runtime = library.stdout?.trim() ?? '';
if (!isAbsolute(runtime)) skip('gcc has no libasan here');

const build = ['build', '--locked', '--lib', '--target', triple];
execFileSync('cargo', ['+nightly', ...build], {
  stdio: 'inherit',
  env: { ...process.env, CARGO_TARGET_DIR: directory, RUSTFLAGS: '-Zsanitizer=address' },
});

// A copy of the package, so that the addon that others test stays.
const copy = join(directory, 'package');
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy);
for (const path of ['js', '__test__', 'package.json', 'index.d.ts']) {
  cpSync(path, join(copy, path), { recursive: true });
}
symlinkSync(join(process.cwd(), 'node_modules'), join(copy, 'node_modules'));
const built = join(directory, triple, 'debug/libsnowdrift.so');
copyFileSync(built, join(copy, 'js/runtime', `snowdrift.${addons.targetHere()}.node`));

const env = {
  ...process.env,
  TESTS: process.env.TESTS ?? 'platform',
  LD_PRELOAD: runtime,
  ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1',
};
for (const test of TESTS) {
  const path = `__test__/${test}.test.js`;
  if (!existsSync(path)) throw new Error(`there is no ${path}`);
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--test', path], {
    cwd: copy,
    env,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) {
    console.error(`${stdout}\n${stderr}`.slice(-20_000));
    console.error(`${path} failed under AddressSanitizer`);
    process.exit(1);
  }
  console.log(`${path}: no access that must not be`);
}
