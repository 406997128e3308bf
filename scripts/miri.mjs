// The core under Miri, which finds undefined behaviour. Needs a nightly toolchain with Miri, and adds Miri to one.
//
//   npm run miri

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const has = () => spawnSync('cargo', ['+nightly', 'miri', '--version']).status === 0;
const component = ['component', 'add', '--toolchain', 'nightly', 'miri', 'rust-src'];
if (!has()) spawnSync('rustup', component, { stdio: 'inherit' });
if (!has()) {
  console.log('Miri is skipped: there is no nightly toolchain with Miri here');
  process.exit();
}

const MIRI = ['+nightly', 'miri', 'test', '--locked'];
// Threads that draw, pad or wait for slot files take minutes here, and so do simulated drawers; the ring and the
// sequencer have tests of their own.
const TOO_SLOW = ['ring::tests', 'registry::', 'pace::'].flatMap((name) => ['--skip', name]);
const env = { ...process.env, MIRIFLAGS: '-Zmiri-disable-isolation' };
for (const args of [
  ['--lib', '--', ...TOO_SLOW],
  ['--test', 'core', 'ring::'],
]) {
  const { status } = spawnSync('cargo', [...MIRI, ...args], { stdio: 'inherit', env });
  if (status !== 0) process.exit(1);
}
