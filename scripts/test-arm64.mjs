// The shared sequence and the host's page on arm64, as far as qemu is that: by threads and processes that
// are killed. Where something that it takes is missing, it says what, and is skipped.
//
// Qemu translates arm64's code, its atomics among it, but the machine below orders memory as it does: on
// x86-64 no weak ordering shows. Loom and Miri look for that, and the workflows run on real arm64.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const TARGET = 'aarch64-unknown-linux-gnu';
const LINKER = 'aarch64-linux-gnu-gcc';
const QEMU = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu'];
const SKIPPED = [
  // Searches and models, which are the same on each processor.
  'explore::',
  'sound::',
  'unordered::',
  // When a process started is another time for itself and for others.
  'a_page_shows_its_processes_and_a_thread_of_users',
  'namespaces_do_not_split_a_host',
  'four_processes_draw_from_one_page_and_share_it',
  // It stops and kills them before they have started.
  'processes_stopped_and_killed_while_pages_are_deleted',
];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

function skip(reason) {
  console.log(`arm64 is skipped: ${reason}`);
  process.exit();
}

for (const command of [LINKER, QEMU[0]]) {
  if (spawnSync(command, ['--version']).status !== 0) skip(`there is no ${command}`);
}
const { status: hasTarget, stderr } = spawnSync('rustup', ['target', 'add', TARGET], {
  encoding: 'utf8',
});
if (hasTarget !== 0) skip(`there is no Rust for ${TARGET}: ${stderr ?? 'no rustup'}`);

const names = SKIPPED.flatMap((name) => ['--skip', name]);
const tests = ['--target', TARGET, '--test', 'shared', '--test', 'host', '--', ...names];
const { status } = spawnSync('cargo', ['test', '--locked', ...tests], {
  env: {
    ...process.env,
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: LINKER,
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: QEMU.join(' '),
    HOST_TEST_RUNNER: QEMU.join(' '),
    HOST_TEST_SECONDS: '3',
  },
  stdio: 'inherit',
});
process.exit(status ?? 1);
