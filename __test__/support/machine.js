'use strict';
// How tests put a machine under the real addon: processes of their own with machine-shim preloaded
// (see machine-shim/src/lib.rs), whose clock is shifted, whose disk fails and whose boot changes.

const {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join, resolve } = require('node:path');
const { test } = require('node:test');

const { skipped } = require('./amount.js');
const { Drawer } = require('./drawer.js');
const { createDirectory } = require('./own-directory.js');
const { entry, runScript } = require('./support.js');

/** As cargo builds it, which may have another folder; npm run planted has one that lacks it. */
const SHIM = [process.env.CARGO_TARGET_DIR, 'target']
  .filter(Boolean)
  .map((folder) => resolve(__dirname, '../..', folder, 'debug/libmachine_shim.so'))
  .find((path) => existsSync(path));

/** Why there are no such machines here, or undefined. */
function missing() {
  if (SHIM !== undefined) return undefined;
  const reason =
    process.platform === 'linux'
      ? 'the machine shim is not built: cargo build --package machine-shim'
      : `machines are simulated by LD_PRELOAD, which ${process.platform} has not`;
  return process.platform === 'linux' ? skipped(reason) : reason;
}

/** A machine and a directory on it. Its processes are those with its `env`. */
class Machine {
  #file;
  #memory;

  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), 'snowdrift-machine-'));
    const path = join(this.directory, 'machine');
    this.#file = openSync(path, 'w+');
    writeSync(this.#file, new BigInt64Array(5), 0, 40, 0);
    this.#memory = createDirectory();
    this.env = { LD_PRELOAD: SHIM, MACHINE_SHIM: path, SNOWDRIFT_SHARED: this.#memory };
  }

  #set(index, value) {
    writeSync(this.#file, new BigInt64Array([BigInt(Math.round(value))]), 0, 8, index * 8);
  }

  /** Its wall clock is that many ms off, at once. */
  set clock(ms) {
    this.#set(0, ms * 1e6);
  }

  /** The number of the error with which its disk flushes files; 0 for none. */
  set diskError(errno) {
    this.#set(1, errno);
  }

  /** Which boot it is in, from 1. Its memory is empty then. */
  set boot(number) {
    for (const name of readdirSync(this.#memory)) {
      rmSync(join(this.#memory, name), { recursive: true, force: true });
    }
    this.#set(2, number);
  }

  remove() {
    closeSync(this.#file);
    rmSync(this.#memory, { recursive: true, force: true });
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/**
 * A test on a machine of its own. `start(options, env)` starts a Drawer there, which is killed in the end; `state`
 * is a directory to be.
 */
function onMachine(name, body, { skip } = {}) {
  test(name, { skip: skip || missing() }, async (t) => {
    const machine = new Machine();
    const drawers = [];
    const start = (options, env) => {
      const drawer = new Drawer(options, { ...machine.env, ...env });
      drawers.push(drawer);
      return drawer;
    };
    try {
      const state = join(machine.directory, 'ids');
      await body({ t, machine, start, drawers, state });
    } finally {
      for (const drawer of drawers) drawer.kill('SIGKILL');
      await Promise.all(drawers.map(({ ended }) => ended));
      machine.remove();
    }
  });
}

/**
 * The start of a script. `shift(ms)` sets the wall clock that far off, at once. `stand(unixMs)` sets it to that time, where
 * it stands still.
 */
const PRELUDE = `
  const { closeSync, openSync, writeSync } = require('node:fs');
  const { SnowFlake, layouts } = require(${JSON.stringify(entry)});
  const shim = openSync(process.env.MACHINE_SHIM, 'r+');
  const set = (index, ms) => writeSync(shim, new BigInt64Array([BigInt(Math.round(ms * 1e6))]), 0, 8, index * 8);
  const shift = (ms) => set(0, ms);
  const stand = (unixMs) => set(4, unixMs);
  const countDuplicates = (ids) => ids.length - new Set(ids.map(String)).size;
  const warnings = [];
  process.removeAllListeners('warning');
  process.on('warning', ({ name, code, message }) => warnings.push({ name, code, message }));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const thrown = (call) => { try { call(); } catch (error) { return error; } };
`;

/**
 * Runs the body of an async function under a clock that it may step; answers what it returns, by way
 * of JSON.
 */
async function underShiftedClock(body) {
  const machine = new Machine();
  try {
    const script = `${PRELUDE}
      (async () => {${body}})().then((answer) => console.log(JSON.stringify(answer)));`;
    const { stdout, stderr, code, signal } = await runScript(script, { env: machine.env });
    if (code !== 0) throw new Error(`${signal ?? code}: ${stderr}`);
    return JSON.parse(stdout);
  } finally {
    machine.remove();
  }
}

module.exports = { Machine, missing, onMachine, underShiftedClock };
