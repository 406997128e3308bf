'use strict';
// Processes that lease slots of a store of their parent's, and the parent's side of them. The parent sees
// each call, and answers it when it likes.
//
// Run as a script, this file is the process.

const { spawn } = require('node:child_process');
const { once } = require('node:events');

const CALLS = ['read', 'write', 'now'];

/** A process that leases, seen from its parent. */
class Sharer {
  #child;
  #store;
  #answers = new Map();
  #count = 0;
  /** Of the process itself, not of the command that runs it. */
  #pid;
  /** Codes of its warnings. */
  warnings = [];

  /**
   * @param store where its calls go
   * @param env added to the environment, such as another host's SNOWDRIFT_SHARED
   * @param under a command that runs it
   */
  static async start(store, { env = {}, under = [] } = {}) {
    const sharer = new Sharer();
    sharer.#store = store;
    const [command, ...args] = [...under, process.execPath, __filename];
    sharer.#child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // IDs are BigInts.
      serialization: 'advanced',
    });
    const started = once(sharer.#child, 'message').then(([pid]) => pid);
    const ended = once(sharer.#child, 'exit').then(() => {
      throw new Error('the process ended before it was ready');
    });
    ended.catch(() => {});
    sharer.#pid = await Promise.race([started, ended]);
    sharer.#child.on('message', (message) => sharer.#hear(message));
    return sharer;
  }

  async #hear({ warning, call, values, id, answer, error }) {
    if (warning !== undefined) return this.warnings.push(warning);
    if (call === undefined) {
      const { resolve, reject } = this.#answers.get(id);
      return error === undefined ? resolve(answer) : reject(Object.assign(new Error(), error));
    }
    const { signal } = new AbortController();
    const reply = await this.#store[call](...values, { signal }).then(
      (answered) => ({ id, answered }),
      ({ message }) => ({ id, failed: message }),
    );
    // It may be killed meanwhile.
    if (this.#child.connected) this.#child.send(reply, () => {});
  }

  /** Has it do one of the things below. */
  #do(what, ...args) {
    const id = this.#count++;
    const answer = new Promise((resolve, reject) => this.#answers.set(id, { resolve, reject }));
    this.#child.send({ id, what, args });
    return answer;
  }

  lease(options) {
    return this.#do('lease', options);
  }

  open(options) {
    return this.#do('open', options);
  }

  report() {
    return this.#do('report');
  }

  close() {
    return this.#do('close');
  }

  /** IDs that it draws for some ms, and until it has so many, as BigInts; refusals are passed over. */
  draw(ms, least) {
    return this.#do('draw', ms, least);
  }

  get pid() {
    return this.#pid;
  }

  /** Stops or continues it. */
  signal(signal) {
    process.kill(this.#pid, signal);
  }

  async kill(signal = 'SIGKILL') {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    process.kill(this.#pid, signal);
    await exited;
  }
}

function run() {
  const { SnowFlake } = require('../../..');
  const calls = new Map();
  let count = 0;
  let flake;
  const store = { name: 'of the parent' };
  for (const call of CALLS) {
    store[call] = (...values) =>
      new Promise((resolve, reject) => {
        calls.set(count, { resolve, reject });
        // Without the options: a signal stays here.
        process.send({ id: count++, call, values: values.slice(0, -1) });
      });
  }
  const things = {
    async lease(options) {
      flake = await SnowFlake.lease(store, options);
      return flake.lease;
    },
    async open(options) {
      flake = new SnowFlake(options);
    },
    async report() {
      return flake.lease;
    },
    async close() {
      await flake.close();
    },
    async draw(ms, least = 0) {
      const ids = [];
      const end = Date.now() + ms;
      // Once at least, on a machine that is late.
      do {
        try {
          for (let n = 0; n < 10; n++) ids.push(flake.nextId());
        } catch {}
        await new Promise((resolve) => setTimeout(resolve, 1));
      } while (Date.now() < end || ids.length < least);
      return ids;
    },
  };
  process.on('warning', ({ code }) => process.send({ warning: code }));
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ id, answered, failed, what, args }) => {
    if (what === undefined) {
      const { resolve, reject } = calls.get(id);
      return failed === undefined ? resolve(answered) : reject(new Error(failed));
    }
    try {
      process.send({ id, answer: await things[what](...args) });
    } catch ({ code, message }) {
      process.send({ id, error: { code, message } });
    }
  });
  process.send(process.pid);
}

if (require.main === module) run();

module.exports = { Sharer };
