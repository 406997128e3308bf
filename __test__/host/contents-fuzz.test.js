'use strict';
// Whatever is written to a page or a slot file while processes use it: the addon refuses it or goes on, and Node does
// not crash or hang. Equal IDs are no fault of random bytes: who can write there can forge them. Nor is truncation,
// which ends the processes that use a page: SECURITY.md says so.
//
//   TESTS=storms TESTS_TIMES=100 TESTS_SEED=7 node --test __test__/host/contents-fuzz.test.js

const assert = require('node:assert/strict');
const {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { crc32 } = require('node:zlib');

const { amount, gate, seed, storm } = require('../support/amount.js');
const { BLOCKS } = require('../support/lease/slot-file.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { Peer } = require('../support/peer.js');
const { seeded } = require('../support/support.js');

const linux = process.platform === 'linux' ? undefined : 'pages are tried on Linux';
const ROUNDS = amount(30, 300);
const SEED = seed ?? 1;
/** The longest that a round may take. Its calls are bounded by maxWait, or by the 10 s of an opening: of 4, and more. */
const LONGEST_MS = 240_000;

const EXTREMES = [0n, 1n, 2n, 0xffn, 1n << 12n, 1n << 31n, 1n << 32n, (1n << 53n) + 1n];
EXTREMES.push((1n << 62n) - 1n, (1n << 63n) - 1n, 1n << 63n, (1n << 64n) - 2n, (1n << 64n) - 1n);

/** Bytes with a change. `sealed`: the checks of their sums pass. */
function mutated(bytes, random) {
  const changed = Buffer.from(bytes);
  const below = (n) => Math.floor(random() * n);
  const word = () => {
    if (random() < 0.5) return EXTREMES[below(EXTREMES.length)];
    return BigInt(below(2 ** 32)) << BigInt(below(33));
  };
  // Where something is: the rest is mostly zeros.
  const used = [...changed.keys()].filter((at) => changed[at] !== 0);
  const place = () => (random() < 0.7 && used.length > 0 ? used[below(used.length)] : below(3200));
  const kind = below(6);
  if (kind === 0) changed[place()] ^= 1 << below(8);
  else if (kind <= 3) {
    for (let n = 0; n < kind; n++) changed.writeBigUInt64LE(word(), place() & ~7);
  } else if (kind === 4) {
    for (let n = 0; n < 32; n++) changed[place()] = below(256);
  } else {
    const [from, to] = [below(changed.length - 512), below(changed.length - 512)];
    changed.copy(changed, to, from, from + 8 * below(64));
  }
  return changed;
}

/** Makes the sum of a page's header right, or those of a slot file's blocks. */
function sealed(bytes, isPage) {
  if (!crc32) return bytes;
  if (isPage) bytes.writeUInt32LE(crc32(bytes.subarray(0, 252)), 252);
  for (const at of isPage ? [] : BLOCKS) {
    const length = Math.min(bytes.readUInt32LE(at + 4), bytes.length - at - 24);
    bytes.writeUInt32LE(crc32(bytes.subarray(at + 4, at + 24 + length)), at);
  }
  return bytes;
}

/** Writes a file in place, as its user could. */
function overwrite(path, bytes) {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, 0);
  closeSync(file);
}

/** In the process: everything that an application can do with a generator. Answers what was refused how often, and IDs. */
async function use(scene, { options, isLease, directory, isReopened }) {
  const { SnowFlake, require } = scene;
  const native = require('../../js/runtime/native.js');
  const seen = {};
  const drawn = [];
  const attempt = async (call) => {
    try {
      await call();
    } catch (error) {
      if (!/^ERR_SNOWFLAKE_[A-Z_]+$/.test(error.code)) throw error;
      seen[error.code] = (seen[error.code] ?? 0) + 1;
    }
  };
  const { memory } = require('../../js/stores/memory.js');
  scene.store ??= memory();
  const opened = async () =>
    isLease ? await SnowFlake.lease(scene.store, options) : new SnowFlake(options);
  if (isReopened) {
    await scene.flake?.close();
    scene.flake = undefined;
  }
  if (scene.flake === undefined) {
    await attempt(async () => {
      scene.flake = await opened();
    });
  }
  const { flake } = scene;
  const shared = process.env.SNOWDRIFT_SHARED;
  await attempt(() => native.hostPages(shared));
  if (flake === undefined) {
    if (directory !== undefined) await attempt(() => native.lookAtRecord(directory, '1/3'));
    return { seen, drawn };
  }
  for (let turn = 0; turn < 3; turn++) {
    for (let n = 0; n < 20; n++) await attempt(() => drawn.push(flake.nextId()));
    await attempt(() => flake.nextIds(5000));
    await attempt(() => flake.nextIdAsync());
    await attempt(() => JSON.stringify(flake.stats(), (_, value) => String(value)));
    await attempt(() => JSON.stringify(flake.lease, (_, value) => String(value)));
    await attempt(async () => {
      const another = await opened();
      try {
        another.nextId();
      } finally {
        await another.close();
      }
    });
    if (directory !== undefined) await attempt(() => native.lookAtRecord(directory, '1/3'));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return { seen, drawn };
}

const KINDS = {
  'a page': () => ({ options: {} }),
  'a page with state, and its slot file': (state) => ({
    options: { state, ttl: 1000 },
    directory: state,
  }),
  'the page of a lease from a directory, and its slot file': (state) => ({
    options: { lease: `file://${state}`, ttl: 1000, datacenterId: 1 },
    directory: state,
  }),
  'the page of a lease from a store': () => ({
    options: { datacenterId: 1, ttl: 1500, callTimeout: 300, maxClockSkew: 100 },
    isLease: true,
  }),
};

/** Where a process is held up, its lease expires. */
const STORMS = ['the page of a lease from a store'];

for (const [name, sceneOf] of Object.entries(KINDS)) {
  test(`${name}: overwritten at random in use, ${ROUNDS} times`, {
    skip: linux ?? (STORMS.includes(name) ? storm : gate),
    timeout: 15 * 60_000,
  }, async (t) => {
    const random = seeded(SEED);
    const shared = createDirectory();
    const state = mkdtempSync(join(tmpdir(), 'snowdrift-fuzz-'));
    const given = sceneOf(state);
    const env = { SNOWDRIFT_SHARED: shared };
    if (given.options.datacenterId !== undefined) env.workerId = undefined;
    let peer = new Peer({ env });
    t.after(async () => {
      await peer.end();
      removeDirectory(state);
    });
    const seen = {};
    let drawn = 0;
    const run = async (isReopened) => {
      const late = sleep(LONGEST_MS, 'late', { ref: false });
      const ended = await Promise.race([peer.run(use, { ...given, isReopened }), late]);
      assert.notEqual(ended, 'late', 'the process hangs');
      for (const [code, times] of Object.entries(ended.seen)) {
        seen[code] = (seen[code] ?? 0) + times;
      }
      drawn += Number(ended.drawn.length > 0);
      return ended.drawn.length > 0;
    };
    const filesOf = () => {
      const pages = join(shared, readdirSync(shared)[0]);
      return [pages, state]
        .flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)))
        .filter((path) => /\.(page|slot)$/.test(path));
    };
    /** With the markers, which are second names of the pages. */
    const removeAll = () => {
      for (const path of filesOf()) {
        rmSync(path, { force: true });
        rmSync(path.replace(/\.page$/, '.born'), { force: true });
      }
    };
    await run(true);
    for (let round = 0; round < ROUNDS; round++) {
      for (const path of filesOf()) {
        if (random() < 0.3) continue;
        try {
          const whole = readFileSync(path);
          const bytes = mutated(whole, random);
          overwrite(path, random() < 0.5 ? sealed(bytes, path.endsWith('.page')) : bytes);
        } catch (failure) {
          // A thread that renews has replaced it at this moment.
          if (failure.code !== 'ENOENT') throw failure;
        }
      }
      const isReopened = random() < 0.5;
      const isDrawing = await run(isReopened).catch((error) => {
        error.message = `seed ${SEED}, round ${round}: ${error.message}`;
        throw error;
      });
      if (isDrawing && random() < 0.7) continue;
      removeAll();
      if (isDrawing) continue;
      // A process remembers the highest tick of a page, and issues none below it.
      await peer.end();
      peer = new Peer({ env });
    }
    // More than once: a process that is held up may lose a lease as short as this one.
    let doesContinue = false;
    for (let tries = 0; tries < 5 && !doesContinue; tries++) {
      await peer.end();
      removeAll();
      peer = new Peer({ env });
      doesContinue = await run(true);
    }
    assert.ok(doesContinue, 'without the files and the processes, IDs continue');
    t.diagnostic(`seed ${SEED}: IDs in ${drawn} rounds; refused: ${JSON.stringify(seen)}`);
    assert.ok(drawn > ROUNDS / 4, 'most of what is written stops all IDs');
    assert.ok(Object.keys(seen).length > 0, 'nothing that is written is noticed');
  });
}
