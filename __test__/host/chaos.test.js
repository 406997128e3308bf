'use strict';
// One sequence per host, flat out and in chaos: processes, cluster workers, threads, rings and two copies
// of the package at once on one node; killed, stopped, on a clock that jumps and with pages that are
// unlinked. All that was drawn is compared.
//
//   TESTS=storms TESTS_TIMES=30 TESTS_SEED=7 node --test __test__/host/chaos.test.js

const assert = require('node:assert/strict');
const { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } = require('node:fs');
const { cpus, tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const nodeTest = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { amount, seed, storm } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const {
  FlatOut,
  countBetween,
  duplicatesIn,
  idsIn,
  monotonicMs,
  sortedIds,
} = require('../support/flat-out.js');
const { onMachine } = require('../support/machine.js');
const { createDirectory } = require('../support/own-directory.js');
const { layouts, seeded } = require('../support/support.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
const SECONDS = amount(2, 2);
const KILLS = amount(200, 200);
const SEED = seed ?? 1;
/** The least share of the IDs that the ticks have room for. A quiet machine reaches 0.98. */
const SHARE = { quiet: 0.9, busy: 0.1 };
/** The least share of one of many, of the mean. */
const FAIR = { quiet: 0.8, busy: 0.1 };
/** A machine that holds up a process shows nothing in that round: it is drawn again, so often at most. */
const ROUNDS = 8;
const MANY = 16;
const IDS_A_MS = 4096;

const memory = linux ? undefined : createDirectory();
const skip = storm ?? linux;

function scene(name, body) {
  nodeTest.test(name, { skip }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'snowdrift-chaos-'));
    const SNOWDRIFT_SHARED = mkdtempSync(join(memory, 'shared-'));
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

/** Whether other processes leave half of the processors idle, by a few looks. */
async function isQuiet() {
  let running = 0;
  for (let look = 0; look < 10; look++) {
    await sleep(10);
    // This one is counted, too.
    running += Number(readFileSync('/proc/loadavg', 'utf8').match(/(\d+)\//)[1]) - 1;
  }
  return running / 10 < cpus().length / 2;
}

/**
 * Has rounds until one reaches its bars. A machine that does other work shares out its processors as it likes, so that
 * the bars are those of a busy one, unless it is quiet before a round and after it.
 * @param round has the processes draw; answers a function that returns why bars were missed, or undefined
 */
async function reached(round) {
  const missed = [];
  while (missed.length < ROUNDS) {
    const before = await isQuiet();
    const why = await round();
    const bars = before && (await isQuiet()) ? 'quiet' : 'busy';
    const reason = why(bars);
    if (reason === undefined) return;
    missed.push(`${bars}: ${reason}`);
  }
  assert.fail(missed.join('; '));
}

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
  const tick = (ms) => BigInt(Math.round(ms) - layouts.node.epoch);
  const [from, to] = [tick(begin + 200), tick(begin + seconds * 1000 - 100)];
  return { met, from, to, ticks: Number(to - from) };
}

/** How many of sorted IDs are of those ticks. */
function countOf(ids, { from, to }, { datacenterBits, workerBits, clockBackBits, sequenceBits }) {
  const shift = BigInt(datacenterBits + workerBits + clockBackBits + sequenceBits);
  return countBetween(ids, from << shift, to << shift);
}

function refusalsOf(met) {
  return met.flatMap(({ refusals }) => Object.entries(refusals));
}

/** Another installation of the package. */
function copyTo(directory) {
  const root = join(dirname(require.resolve('../..')), '..');
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
  scene(`${count} processes of every kind and 4 threads draw one sequence`, async (it) => {
    const copy = copyTo(it.directory);
    await reached(async () => {
      const all = crowd(count, copy).map(([how, job]) => it.start(how, job));
      for (const [n, kind] of ['loop', 'some', 'loop', 'many'].entries()) {
        all.push(
          it.start('thread', { kind, isCached: n === 2, ...(n === 3 ? { entry: copy } : {}) }),
        );
      }
      const drawn = await drawAll(all, SECONDS);
      const { met, ticks } = drawn;
      const ids = sortedIds(all.map(({ file }) => file));
      const share = countOf(ids, drawn, layouts.node) / (ticks * IDS_A_MS);
      it.t.diagnostic(`${ids.length} IDs, ${(share * 100).toFixed(1)}% of the ceiling`);
      assert.equal(duplicatesIn(ids), 0);
      assert.equal(
        ids.length,
        met.reduce((sum, { count }) => sum + count, 0),
      );
      assert.deepEqual(refusalsOf(met), []);
      assert.ok(share <= 1);
      return (bars) => (share >= SHARE[bars] ? undefined : `${share} of the ceiling`);
    });
  });
}

for (const how of ['process', 'thread']) {
  for (const kind of ['loop', 'batch', 'async']) {
    scene(
      `${MANY} ${how === 'thread' ? 'threads' : 'processes'} of the same call, ${kind}, have equal shares`,
      async (it) => {
        // Of calls that take longer than their share of a tick, the processors' time would be shared out.
        const options = kind === 'async' ? { layout: { ...layouts.node, sequenceBits: 6 } } : {};
        await reached(async () => {
          const all = Array.from({ length: MANY }, () => it.start(how, { kind, options }));
          const drawn = await drawAll(all, SECONDS);
          const { met } = drawn;
          const { layout = layouts.node } = options;
          const shares = all.map(({ file }) => countOf(idsIn(file), drawn, layout));
          const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
          const least = Math.min(...shares) / mean;
          const longest = Math.max(...met.map((one) => one.longest));
          it.t.diagnostic(
            `slowest share ${least.toFixed(2)} of the mean, largest ${(Math.max(...shares) / mean).toFixed(2)}; longest call ${longest.toFixed(1)} ms`,
          );
          assert.equal(duplicatesIn(sortedIds(all.map(({ file }) => file))), 0);
          assert.deepEqual(refusalsOf(met), []);
          return (bars) => (least >= FAIR[bars] ? undefined : shares.join());
        });
      },
    );
  }
}

/** How many processes are alive, or on their way. */
const ALIVE = 8;

/**
 * Kills, stops and resumes processes of one node at random moments. Each that was killed is followed by
 * another. `disturb` is called in between.
 */
async function chaos({ start, drawers, t }, options, kills, random, disturb) {
  const alive = new Set();
  const begin = () => {
    const drawer = start({ ...NODE, ...options, cached: drawers.length % 4 === 3 });
    const opened = drawer.opened().then(({ code, message }) => {
      assert.ok(!code, message);
      alive.add(drawer);
    });
    opened.catch(() => {});
    return opened;
  };
  const any = () => [...alive][Math.floor(random() * alive.size)];
  let starting = Array.from({ length: ALIVE }, begin);
  for (let kill = 0; kill < kills; kill++) {
    await sleep(random() * 30);
    disturb(random);
    if (alive.size < ALIVE / 2) {
      await Promise.all(starting);
      starting = [];
    }
    const stopped = any();
    stopped.kill('SIGSTOP');
    const victim = any();
    alive.delete(victim);
    if (random() < 0.5) await sleep(random() * 30);
    victim.kill('SIGKILL');
    stopped.kill('SIGCONT');
    await victim.ended;
    starting.push(begin());
  }
  await Promise.all(starting);
  return async () => {
    const last = [...alive];
    await Promise.all(last.map((drawer) => drawer.drawn(drawer.ids().length + 1)));
    // A busy machine may let few of them run before they are killed.
    const isMuch = () => drawers.reduce((sum, { count }) => sum + count, 0) > 50 * kills;
    while (!isMuch()) await Promise.all(last.map((drawer) => drawer.drawn(drawer.count + 50)));
    for (const drawer of last) drawer.kill('SIGKILL');
    await Promise.all(last.map(({ ended }) => ended));
    const drawn = drawers.map((drawer) => drawer.ids());
    const count = drawn.reduce((sum, { length }) => sum + length, 0);
    t.diagnostic(`seed ${SEED}: ${count} IDs of ${drawn.length} processes, ${kills} kills`);
    assert.ok(drawn.length === kills + ALIVE && count > 50 * kills, `only ${count} IDs`);
    assert.equal(countDuplicatesOf(drawn), 0);
  };
}

/** Removes the pages of a machine, and nothing that says that there were any. */
function unlinkPages({ env }) {
  const directory = join(env.SNOWDRIFT_SHARED, `snowdrift-${process.getuid()}`);
  if (!existsSync(directory)) return;
  for (const name of readdirSync(directory)) {
    if (name.endsWith('.page')) rmSync(join(directory, name), { force: true });
  }
}

const stormOnMachine = (name, body) => onMachine(name, body, { skip });

/** Layouts, and how far the clock jumps at most, ms: one without counter bits waits until it is back. */
const CHAOS = {
  'the default layout': [{}, 10_000],
  'a layout of 32 IDs a ms': [
    { maxWait: 100, layout: { ...layouts.node, clockBackBits: 4, sequenceBits: 5 } },
    10_000,
  ],
  'a layout without counter bits': [{ maxWait: 100, layout: 'twitter' }, 100],
};

for (const [name, [options, furthest]] of Object.entries(CHAOS)) {
  const kills = Math.ceil(KILLS / Object.keys(CHAOS).length);
  stormOnMachine(`${kills} kills, stops and clock jumps repeat nothing on ${name}`, async (it) => {
    const random = seeded(SEED);
    let offset = 0;
    let last = Date.now();
    const end = await chaos(it, options, kills, random, () => {
      const now = Date.now();
      // Often to where it was before, so that used ticks are come back to.
      offset = random() < 0.5 ? offset - (now - last) : (random() - 0.5) * furthest;
      last = now;
      it.machine.clock = offset;
    });
    // All of them issue again, at the latest when the clock has passed all that was.
    it.machine.clock = 6000;
    await end();
  });
}

stormOnMachine(`${KILLS} kills, stops and unlinked pages repeat nothing`, async (it) => {
  let offset = 0;
  const end = await chaos(it, {}, KILLS, seeded(SEED), (random) => {
    offset += random() * 20;
    it.machine.clock = offset;
    unlinkPages(it.machine);
  });
  await end();
});
