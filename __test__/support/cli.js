'use strict';
// The command `snowdrift`, as a process.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { join } = require('node:path');

const MAIN = join(__dirname, '../..', 'js', 'cli', 'main.js');

/** The same environment, but it names no node and no store. */
function namingNothing() {
  const { datacenterId, workerId, SNOWDRIFT_LEASE, ...env } = process.env;
  return env;
}

/** Starts a command. */
function start(args, { env = {}, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
  return spawn(process.execPath, [MAIN, ...args], { env: { ...namingNothing(), ...env }, stdio });
}

/** Runs a command; answers how it ended, what it printed, and both outputs as `said`. */
async function run(args, options) {
  const child = start(args, options);
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...output, said: output.stdout + output.stderr };
}

/** What a command prints with --json. */
async function json(...args) {
  const { stdout, stderr, code } = await run([...args, '--json']);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

module.exports = { MAIN, json, run, start };
