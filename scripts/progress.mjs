// Runs commands that take minutes, side by side, and shows how far they are: on a terminal in a line that is
// rewritten, elsewhere in a line every 15 s. What a command printed is shown if it failed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

const { stderr } = process;
const ON_TERMINAL_MS = 500;
const ELSEWHERE_MS = 15_000;
/** What takes less is not worth a line. */
const LEAST_MS = 2000;

/** Cargo's own progress, which it writes to a terminal only unless it is asked. Its width leaves no room for names. */
const CARGO = { CARGO_TERM_PROGRESS_WHEN: 'always', CARGO_TERM_PROGRESS_WIDTH: '60' };
const OF_CARGO = / *Building \[[^\]]*\] (\d+)\/(\d+)[^\r\n]*\r?/g;

/** What cargo writes for programs. */
const MESSAGES = /^\{"reason":.*\n/gm;

/** The commands under way. */
const running = new Set();
let timer;

const seconds = (since) => `${Math.round((performance.now() - since) / 1000)} s`;

function textOf({ title, since, compiled }) {
  return `${title}: ${compiled === undefined ? '' : `${compiled} crates, `}${seconds(since)}`;
}

function show() {
  const text = [...running].map(textOf).join('; ');
  if (!stderr.isTTY) stderr.write(`${text}\n`);
  else stderr.write(`\r\x1b[K${text.slice(0, (stderr.columns || 80) - 1)}`);
}

function begin(command) {
  running.add(command);
  timer ??= setInterval(show, stderr.isTTY ? ON_TERMINAL_MS : ELSEWHERE_MS);
}

function end(command) {
  running.delete(command);
  if (stderr.isTTY) stderr.write('\r\x1b[K');
  if (running.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

/** Prints why nothing can go on, and ends this process with its commands. */
export function giveUp(...lines) {
  if (stderr.isTTY) stderr.write('\r\x1b[K');
  for (const line of lines) console.error(line);
  for (const { child } of running) child.kill();
  process.exit(1);
}

/** Runs a command to its end, and answers what it wrote to its standard output. Gives up if it fails. */
export async function run(title, command, args, { env = process.env, ...options } = {}) {
  const child = spawn(command, args, {
    ...options,
    env: { ...env, ...CARGO },
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  });
  const task = { title, child, since: performance.now(), compiled: undefined };
  begin(task);
  let printed = '';
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text;
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    printed += text;
    // What is cut between two reads is not missed.
    const [, done, all] = [...text.matchAll(OF_CARGO)].at(-1) ?? [];
    if (done !== undefined) task.compiled = `${done} of ${all}`;
  });
  const [code] = await once(child, 'close').catch((failure) => [failure]);
  end(task);
  if (code !== 0) {
    giveUp(
      printed.replace(OF_CARGO, '').replace(MESSAGES, ''),
      `${title} failed (${code}), see above.`,
    );
  }
  if (performance.now() - task.since > LEAST_MS) console.log(`${title}: ${seconds(task.since)}`);
  return stdout;
}
