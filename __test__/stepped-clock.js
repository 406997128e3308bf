'use strict';
// How tests step the wall clock under the real addon: a process of its own with clock-shim preloaded
// (see clock-shim/src/lib.rs), whose clock it steps itself or has stepped from outside.

const { existsSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const { entry, runScript } = require('./support.js');

const SHIM = join(__dirname, '..', 'target', 'release', 'libclock_shim.so');

/** Why there are no stepped clocks here, or undefined. In CI that is a failure. */
function missing() {
  if (existsSync(SHIM)) return undefined;
  const reason =
    process.platform === 'linux'
      ? 'the clock shim is not built: cargo build --release --package clock-shim'
      : `clocks are stepped by LD_PRELOAD, which ${process.platform} has not`;
  if (process.env.CI && process.platform === 'linux') throw new Error(reason);
  return reason;
}

/** Offers `step(ms)` to a script: the wall clock is then that far off, at once. */
const PRELUDE = `
  const { closeSync, openSync, writeSync } = require('node:fs');
  const { SnowFlake, layouts } = require(${JSON.stringify(entry)});
  const shim = openSync(process.env.CLOCK_SHIM, 'r+');
  const step = (ms) => writeSync(shim, new BigInt64Array([BigInt(Math.round(ms * 1e6))]), 0, 8, 0);
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
async function underSteppedClock(body) {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-clock-'));
  try {
    const file = join(folder, 'offset');
    writeFileSync(file, Buffer.alloc(8));
    const script = `${PRELUDE}
      (async () => {${body}})().then((answer) => console.log(JSON.stringify(answer)));`;
    const env = { LD_PRELOAD: SHIM, CLOCK_SHIM: file };
    const { stdout, stderr, code, signal } = await runScript(script, { env });
    if (code !== 0) throw new Error(`${signal ?? code}: ${stderr}`);
    return JSON.parse(stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

module.exports = { missing, underSteppedClock };
