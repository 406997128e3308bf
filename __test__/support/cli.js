'use strict';
// The command `snowdrift`: in this process, or as a process of its own where a process is what a test is about, such as a signal,
// a pipe, a preloaded library, or what another command of this process would have learned.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { join } = require('node:path');
const { Readable } = require('node:stream');
const { after } = require('node:test');

const { limitWait } = require('./limit-wait.js');

const MAIN = join(__dirname, '../..', 'js', 'cli', 'main.js');

/** The same environment, but it names no node and no store. */
function namingNothing() {
  const { datacenterId, workerId, SNOWDRIFT_LEASE, ...env } = process.env;
  return env;
}

/** The environments of commands in this process: of each, what it calls and awaits has its own. */
const environments = new AsyncLocalStorage();
let own = process.env;
Object.defineProperty(process, 'env', {
  get: () => environments.getStore() ?? own,
  set(env) {
    own = env;
  },
});

/** Ends a server in this process, as a user ends one: it prints when it serves. */
function endServer() {
  for (const signal of ['SIGTERM', 'SIGINT']) process.emit(signal, signal);
}

/**
 * Runs a command in this process; answers its exit code, what it printed, and both outputs as `said`. A server ends as soon as it
 * serves.
 * @param input of its standard input
 */
async function run(args, { env = {}, input = '' } = {}) {
  assert.equal(env.LD_PRELOAD, undefined, 'a library is preloaded by a process: start()');
  const output = { stdout: '', stderr: '' };
  const streamOf = (name) => ({
    write(text) {
      output[name] += text;
      if (args[0] === 'serve' && name === 'stdout') endServer();
    },
  });
  const streams = { stdout: streamOf('stdout'), stderr: streamOf('stderr') };
  const stdin = Readable.from([Buffer.from(input)]);
  const code = await environments.run({ ...namingNothing(), ...env }, () =>
    require(MAIN).main(args, { ...streams, stdin }),
  );
  return { code, ...output, said: output.stdout + output.stderr };
}

/** What a command prints with --json, in this process. */
async function json(...args) {
  const { stdout, stderr, code } = await run([...args, '--json']);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

/** A server that outlived its test would keep the file's process alive. */
const started = new Set();
after(() => {
  for (const child of started) child.kill('SIGKILL');
});

/** Starts a process that runs a command. */
function start(args, { env = {}, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...namingNothing(), ...env },
    stdio,
  });
  started.add(child);
  child.once('exit', () => started.delete(child));
  return child;
}

/** What a server prints first; an error if it ends before. */
async function firstLine(child) {
  let printed = '';
  const line = new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      printed += text;
      if (printed.includes('\n')) resolve(printed);
    });
    child.once('close', (code, signal) =>
      reject(new Error(`it ended with ${signal ?? code}, and printed '${printed}'`)),
    );
  });
  return await limitWait(line, `the first line of ${child.spawnargs.slice(2).join(' ')}`);
}

/** How a process ends: its code and its signal; and what it prints until then, both outputs as `said`, too. */
async function endOf(child) {
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream]?.setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
    });
  }
  const closed = once(child, 'close');
  const [code, signal] = await limitWait(
    closed,
    `the end of ${child.spawnargs.slice(2).join(' ')}`,
    {
      giveUp: () => child.kill('SIGKILL'),
    },
  );
  return { code, signal, ...output, said: output.stdout + output.stderr };
}

module.exports = { MAIN, endOf, firstLine, json, run, start };
