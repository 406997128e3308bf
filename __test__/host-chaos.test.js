'use strict';
// One sequence per host, flat out and in chaos: processes, cluster workers, threads, rings and two copies
// of the package at once on one node; killed, stopped, on a clock that jumps and with pages that are
// unlinked. All that was drawn is compared.
//
//   HOST_CHAOS_SECONDS=60 CHAOS_KILLS=1000 CHAOS_SEED=7 node --test __test__/host-chaos.test.js

const assert = require('node:assert/strict');
const { cpSync, mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const nodeTest = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { Drawer, countDuplicatesOf } = require('./drawer.js');
const {
  FlatOut,
  countBetween,
  duplicatesIn,
  idsIn,
  monotonicMs,
  sortedIds,
} = require('./flat-out.js');
const { Machine, missing } = require('./machine.js');
const { createDirectory } = require('./own-directory.js');
const { layouts, seeded } = require('./support.js');

const linux = process.platform === 'linux' ? undefined : `pages are opt-in on ${process.platform}`;
const SECONDS = Number(process.env.HOST_CHAOS_SECONDS ?? 2);
const KILLS = Number(process.env.CHAOS_KILLS ?? 60);
const SEED = Number(process.env.CHAOS_SEED ?? 1);
/** Of the IDs that the ticks have room for. A quiet machine reaches 0.98. */
const SHARE = Number(process.env.HOST_CHAOS_SHARE ?? 0.9);
const IDS_A_MS = 4096;

function scene(name, { skip = linux } = {}, body) {
  nodeTest.test(name, { skip }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'snowdrift-chaos-'));
    const SNOWDRIFT_SHARED = createDirectory();
    const env = { SNOWDRIFT_SHARED };
    const all = [];
    const start = (how, job) => {
      const file = join(directory, `${all.length}`);
      const one = new FlatOut(how, { ...job, options: { ...NODE, ...job.options }, file, env });
      all.push(one);
      return one;
    };
    // Threads of this process take its own.
    const before = process.env.SNOWDRIFT_SHARED;
    process.env.SNOWDRIFT_SHARED = SNOWDRIFT_SHARED;
    try {
      await body({ t, start, directory });
    } finally {
      process.env.SNOWDRIFT_SHARED = before;
      for (const one of all) one.kill('SIGKILL');
      await Promise.allSettled(all.map(({ ended }) => ended));
      rmSync(directory, { recursive: true });
      rmSync(SNOWDRIFT_SHARED, { recursive: true });
    }
  });
}

const NODE = { datacenterId: 1, workerId: 3 };

/**
 * Has all of them draw for that long, once all are open.
 * @returns what each met, and the share of each in the ticks in which all drew
 */
async function drawAll(all, seconds) {
  const pages = new Set((await Promise.all(all.map(({ ready }) => ready))).map(({ page }) => page));
  assert.equal(pages.size, 1, [...pages].join());
  const begin = Date.now();
  const end = monotonicMs() + seconds * 1000;
  const met = await Promise.all(all.map((one) => one.draw(end)));
  // Messages take some ms to come to all of them; the last calls take longer.
  const tick = (ms) => BigInt(Math.round(ms) - layouts.node.epoch) << 22n;
  const [from, to] = [tick(begin + 200), tick(begin + seconds * 1000 - 100)];
  return { met, from, to, ticks: Number((to - from) >> 22n) };
}

function refusalsOf(met) {
  return met.flatMap(({ refusals }) => Object.entries(refusals));
}

/** Another installation of the package. */
function copyTo(directory) {
  const root = join(dirname(require.resolve('..')), '..');
  for (const name of ['js', 'package.json']) {
    cpSync(join(root, name), join(directory, 'copy', name), { recursive: true });
  }
  return join(directory, 'copy/js/index.js');
}

/** Who draws at once: how each runs, and by which calls. */
function crowd(count, copy) {
  const kinds = ['loop', 'some', 'many', 'string'];
  return Array.from({ length: count }, (_, n) => {
    const how = n % 8 === 5 ? 'worker' : 'process';
    const job = { kind: kinds[n % 4] };
    if (n % 8 === 1) job.entry = copy;
    if (n % 8 === 4) job.isCached = true;
    return [how, job];
  });
}

for (const count of [2, 8, 64]) {
  scene(`${count} processes of every kind and 4 threads draw one sequence`, {}, async (it) => {
    const copy = copyTo(it.directory);
    const all = crowd(count, copy).map(([how, job]) => it.start(how, job));
    for (const [n, kind] of ['loop', 'some', 'loop', 'many'].entries()) {
      all.push(
        it.start('thread', { kind, isCached: n === 2, ...(n === 3 ? { entry: copy } : {}) }),
      );
    }
    const { met, from, to, ticks } = await drawAll(all, SECONDS);
    const ids = sortedIds(all.map(({ file }) => file));
    const share = countBetween(ids, from, to) / (ticks * IDS_A_MS);
    it.t.diagnostic(`${ids.length} IDs, ${(share * 100).toFixed(1)}% of the ceiling`);
    assert.equal(duplicatesIn(ids), 0);
    assert.equal(
      ids.length,
      met.reduce((sum, { count }) => sum + count, 0),
    );
    assert.deepEqual(refusalsOf(met), []);
    assert.ok(share >= SHARE, `${share}`);
    assert.ok(share <= 1);
  });
}

for (const how of ['process', 'thread']) {
  for (const kind of ['loop', 'batch', 'async']) {
    scene(`16 ${how}s of the same call, ${kind}, have equal shares`, {}, async (it) => {
      const all = Array.from({ length: 16 }, () => it.start(how, { kind }));
      const { met, from, to } = await drawAll(all, Math.max(2, SECONDS / 6));
      const shares = all.map(({ file }) => countBetween(idsIn(file), from, to));
      const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
      const least = Math.min(...shares) / mean;
      const longest = Math.max(...met.map((one) => one.longest));
      it.t.diagnostic(
        `slowest share ${least.toFixed(2)} of the mean, largest ${(Math.max(...shares) / mean).toFixed(2)}; longest call ${longest.toFixed(1)} ms`,
      );
      assert.equal(duplicatesIn(sortedIds(all.map(({ file }) => file))), 0);
      assert.deepEqual(refusalsOf(met), []);
      assert.ok(least >= 0.8, shares.join());
    });
  }
}
