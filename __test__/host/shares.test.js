'use strict';
// One sequence per host, flat out: processes or threads have equal shares, by each kind of call. tests/host has all kinds of
// processes at once, kills and lost pages.
//
//   TESTS=storms TESTS_TIMES=30 node --test __test__/host/shares.test.js

const assert = require('node:assert/strict');
const { mkdtempSync, readFileSync, rmSync } = require('node:fs');
const { cpus, tmpdir } = require('node:os');
const { join } = require('node:path');
const nodeTest = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { amount, storm } = require('../support/amount.js');
const {
  FlatOut,
  countBetween,
  duplicatesIn,
  idsIn,
  monotonicMs,
  sortedIds,
} = require('../support/flat-out.js');
const { createDirectory } = require('../support/own-directory.js');
const { layouts } = require('../support/support.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
const SECONDS = amount(2, 2);
/** The least share of one of many, of the mean. */
const FAIR = { quiet: 0.8, busy: 0.1 };
/** A machine that holds up a process shows nothing in that round: it is drawn again, so often at most. */
const ROUNDS = 8;
const MANY = 16;

const memory = linux ? undefined : createDirectory();
const skip = storm ?? linux;

function scene(name, body) {
  nodeTest.test(name, { skip }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'snowdrift-shares-'));
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
  return { met, from, to };
}

/** How many of sorted IDs are of those ticks. */
function countOf(ids, { from, to }, { datacenterBits, workerBits, clockBackBits, sequenceBits }) {
  const shift = BigInt(datacenterBits + workerBits + clockBackBits + sequenceBits);
  return countBetween(ids, from << shift, to << shift);
}

function refusalsOf(met) {
  return met.flatMap(({ refusals }) => Object.entries(refusals));
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
