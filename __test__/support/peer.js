'use strict';
// Processes that do what a test has them do: each call of `run` sends a function, which the process
// calls with its scene and returns the answer of. So one test leads several processes through a scene.
//
// Run as a script, this file is the process.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { join } = require('node:path');

const { limitWait } = require('./limit-wait.js');
const { publicCopy } = require('./other-users.js');

/** IDs that one turn draws. */
const TURN = 500;

/** A process, seen from its parent. */
class Peer {
  #child;
  #calls = 0;
  #waiting = new Map();
  #stderr = '';

  /**
   * @param env added to the environment; what is undefined there is taken out
   * @param by the command that starts it, for example `['unshare', '--mount']`. It may be another user's process: it
   *   loads copies that all users can read
   * @param entry the copy of the package that it loads
   */
  constructor({ env = {}, cwd, by = [], entry } = {}) {
    const home = by.length === 0 ? join(__dirname, '../..') : publicCopy();
    const script = join(home, '__test__/support/peer.js');
    const [command, ...args] = [...by, process.execPath, script, entry ?? home];
    this.#child = spawn(command, args, {
      cwd: cwd ?? home,
      env: { ...process.env, datacenterId: '1', workerId: '3', ...env },
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
    this.#child.on('message', ({ call, answer, error }) => {
      const { resolve, reject } = this.#waiting.get(call);
      this.#waiting.delete(call);
      if (error) reject(Object.assign(new Error(error.message), error));
      else resolve(answer);
    });
    this.#child.on('error', () => {});
    this.ended = once(this.#child, 'close').then(([code, signal]) => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`the process ended with ${signal ?? code}: ${this.#stderr}`));
      }
      this.#waiting.clear();
      return { code, signal, stderr: this.#stderr };
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** Calls a function there: with the scene, and with values that can be cloned. */
  run(body, ...values) {
    const call = this.#calls++;
    const answer = new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#child.send({ call, body: String(body), values }, (failure) => {
        if (failure) reject(failure);
      });
    });
    return limitWait(answer, `an answer of process ${this.pid} to ${body}`);
  }

  /** Opens its `flake`, and answers stats(). */
  open(options) {
    return this.run((scene, given) => {
      scene.flake = new scene.SnowFlake(given);
      return scene.flake.stats();
    }, options);
  }

  /** The error with which opening fails there. */
  async refusal(options) {
    return this.open(options).then(
      ({ scope, page }) => new Error(`it was opened with scope '${scope}' and page ${page}`),
      (error) => error,
    );
  }

  /** Has its `flake` draw for that long: { ids, refusals, longest }. */
  draw(ms) {
    return this.run((scene, given) => scene.draw(given), ms);
  }

  kill(signal) {
    this.#child.kill(signal);
  }

  /** Ends it, however it stands. */
  end() {
    this.kill('SIGKILL');
    return this.ended;
  }
}

/**
 * Draws one by one and in batches, in many turns.
 * @returns `ids`, how often there were which `refusals`, and the `longest` call in ms
 */
async function draw(flake, ms) {
  const parts = [];
  const refusals = {};
  let longest = 0;
  const end = performance.now() + ms;
  do {
    const start = performance.now();
    try {
      const batch = flake.nextIds(TURN);
      const rest = new BigUint64Array(TURN);
      let n = 0;
      try {
        for (; n < TURN; n++) rest[n] = flake.nextId();
      } finally {
        parts.push(batch, rest.subarray(0, n));
      }
    } catch (error) {
      refusals[error.code] = (refusals[error.code] ?? 0) + 1;
    }
    longest = Math.max(longest, performance.now() - start);
    await new Promise((resolve) => setImmediate(resolve));
  } while (performance.now() < end);
  const ids = new BigUint64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    ids.set(part, at);
    at += part.length;
  }
  return { ids, refusals, longest };
}

/** Has processes draw at one time, without a refusal; answers the IDs of each. */
async function drawAll(peers, ms = 150) {
  const drawn = await Promise.all(peers.map((peer) => peer.draw(ms)));
  for (const { ids, refusals } of drawn) {
    assert.deepEqual(refusals, {});
    assert.ok(ids.length > 0);
  }
  return drawn.map(({ ids }) => ids);
}

function main(entry) {
  const scene = {
    ...require(entry),
    require,
    warnings: [],
    draw: (ms) => draw(scene.flake, ms),
  };
  process.on('warning', ({ code, message }) => scene.warnings.push({ code, message }));
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ call, body, values }) => {
    try {
      // biome-ignore lint/security/noGlobalEval: what the test has sent
      // biome-ignore lint/complexity/noCommaOperator: an eval of the global scope
      process.send({ call, answer: await (0, eval)(`(${body})`)(scene, ...values) });
    } catch ({ code, message, stack }) {
      process.send({ call, error: { code, message, stack } });
    }
  });
}

if (require.main === module) main(process.argv[2]);

module.exports = { Peer, drawAll };
