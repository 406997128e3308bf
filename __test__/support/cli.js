'use strict';
// The command `snowdrift`, as a process.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { join } = require('node:path');
const { after } = require('node:test');

const { limitWait } = require('./limit-wait.js');

const MAIN = join(__dirname, '../..', 'js', 'cli', 'main.js');

/** The same environment, but it names no node and no store. */
function namingNothing() {
  const { datacenterId, workerId, SNOWDRIFT_LEASE, ...env } = process.env;
  return env;
}

/** A server that outlived its test would keep the file's process alive. */
const started = new Set();
after(() => {
  for (const child of started) child.kill('SIGKILL');
});

/** Starts a command. */
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

/** How a command ends: its code and its signal. */
function endOf(child) {
  return limitWait(once(child, 'close'), `the end of ${child.spawnargs.slice(2).join(' ')}`, {
    giveUp: () => child.kill('SIGKILL'),
  });
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
  const [code] = await endOf(child);
  return { code, ...output, said: output.stdout + output.stderr };
}

/** What a command prints with --json. */
async function json(...args) {
  const { stdout, stderr, code } = await run([...args, '--json']);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

module.exports = { MAIN, endOf, firstLine, json, run, start };
