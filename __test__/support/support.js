'use strict';
// How tests make what they test.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');

require('./own-directory.js');
const { limitWait } = require('./limit-wait.js');
const snowdrift = require('../..');

/** A sequence that is no limit. */
const wide = {
  timestampBits: 41,
  datacenterBits: 1,
  workerBits: 1,
  clockBackBits: 0,
  sequenceBits: 20,
  tickMs: 1,
  epoch: 1580486400000,
};

/** The default of yitter's IdGenerator, as docs/migration.md has it. */
const yitter = {
  timestampBits: 41,
  datacenterBits: 0,
  workerBits: 6,
  clockBackBits: 0,
  sequenceBits: 6,
  tickMs: 1,
  epoch: 1577836800000,
};

const DAY = 86_400_000;

/**
 * A layout whose tick is a day: `sequence` then counts every ID. A tick began an hour ago, so that no test sees the
 * next one begin. Another process has another one, unless it is passed there.
 */
const slow = {
  ...snowdrift.layouts.node,
  timestampBits: 21,
  sequenceBits: 32,
  tickMs: DAY,
  epoch: Date.now() - 2000 * DAY - 3_600_000,
};

/**
 * How far Date.now() may be ahead of the system's clock, ms. On Windows, V8 reads that clock once and counts on from
 * there by another.
 */
const dateLead = process.platform === 'win32' ? 2 : 0;

/** A clock that stands where it is set. */
function standing(now) {
  const clock = () => clock.now;
  clock.now = now;
  return clock;
}

/** Asserts that `call` throws a SnowFlakeError, of any copy, with this code and text, and returns it. */
function refuses(call, code, text = /./) {
  let thrown;
  try {
    call();
  } catch (error) {
    thrown = error;
  }
  assert.equal(thrown?.name, 'SnowFlakeError', `a SnowFlakeError, not ${thrown}`);
  return assertIs(thrown, code, text);
}

/** As `refuses`, of a promise. */
async function rejects(promise, code, text = /./) {
  const thrown = await promise.then(
    () => assert.fail('it was not refused'),
    (error) => error,
  );
  return assertIs(thrown, code, text);
}

function assertIs(error, code, text) {
  assert.equal(error.code, code, error.message);
  assert.match(error.message, text);
  return error;
}

/** mulberry32: numbers in [0, 1) from a seed. */
function seeded(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function countDuplicates(ids) {
  return ids.length - new Set(ids).size;
}

/** Runs a script in a process of its own; answers how it ended and what it printed. */
async function runScript(script, { env = {}, args = [] } = {}) {
  const child = spawn(process.execPath, [...args, '-e', script], {
    cwd: __dirname,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
    });
  }
  const [code, signal] = await limitWait(
    once(child, 'close'),
    () => `the end of a script that printed ${JSON.stringify(output)}`,
    { giveUp: () => child.kill('SIGKILL') },
  );
  return { code, signal, ...output };
}

/** Runs a script in a thread of its own, which has the test's pages; answers the one message that it posts. */
async function runWorker(script, options = {}) {
  const { SNOWDRIFT_SHARED } = process.env;
  const env = options.env && { SNOWDRIFT_SHARED, ...options.env };
  const worker = new Worker(script, { eval: true, ...options, ...(env && { env }) });
  // Both at once: of a thread that ends at once, Node emits the message and the exit in one go.
  const [[message]] = await limitWait(
    Promise.all([once(worker, 'message'), once(worker, 'exit')]),
    'the message and the end of a thread',
    { giveUp: () => worker.terminate() },
  );
  return message;
}

/** Longer than any busy machine takes for what until() waits for. */
const LIMIT_MS = 120_000;

/** Until something holds, or a promise of it. */
async function until(condition) {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    // Before the look: a process that was stopped until after the end looks once more.
    const isLast = performance.now() >= end;
    if (await condition()) return;
    assert.ok(!isLast, `never: ${condition}`);
    await sleep(5);
  }
}

/**
 * What a draw from a lease returns, as soon as it returns something: a process that was stopped for longer than ttl
 * draws nothing until its next renewal.
 * @param wait as `until`
 */
async function soon(draw, wait = until) {
  let drawn;
  await wait(() => {
    try {
      drawn = draw();
    } catch (error) {
      if (error.code !== 'ERR_SNOWFLAKE_LEASE_EXPIRED') throw error;
    }
    return drawn !== undefined;
  });
  return drawn;
}

/** In scripts within scripts, where a backslash is lost. */
const entry = require.resolve('../..').replaceAll('\\', '/');

module.exports = {
  ...snowdrift,
  countDuplicates,
  dateLead,
  entry,
  refuses,
  rejects,
  runScript,
  runWorker,
  seeded,
  slow,
  soon,
  standing,
  until,
  wide,
  yitter,
};
