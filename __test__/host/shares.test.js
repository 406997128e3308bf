'use strict';
// One sequence per host, flat out: processes or threads have equal shares, by each kind of call. tests/host has all kinds of
// processes at once, kills and lost pages.
//
//   TESTS=storms TESTS_TIMES=30 node --test __test__/host/shares.test.js

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { cpus } = require('node:os');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { storm } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { createDirectory } = require('../support/own-directory.js');
const { Peer } = require('../support/peer.js');
const { entry, layouts, runWorker } = require('../support/support.js');

const linux =
  process.platform === 'linux' ? undefined : 'tried on Linux, with its memory file system';
const DRAW_MS = 2000;
/** The least share of one of many, of the mean. */
const FAIR = { quiet: 0.8, busy: 0.1 };
/** A machine that holds up a process shows nothing in that round: it is drawn again, so often at most. */
const ROUNDS = 8;
const MANY = 16;

const node = { datacenterId: 1, workerId: 3 };

/** In a process or a thread: draws for a time by one kind of call. Answers all IDs, and the codes of refusals. */
async function draw({ flake }, kind, begin, end) {
  const calls = {
    loop: () => BigUint64Array.from({ length: 500 }, () => flake.nextId()),
    batch: () => flake.nextIds(400_000),
    async: async () => BigUint64Array.of(await flake.nextIdAsync()),
  };
  const parts = [];
  const refusals = [];
  await new Promise((resolve) => setTimeout(resolve, begin - Date.now()));
  while (Date.now() < end) {
    try {
      const ids = calls[kind]();
      parts.push(kind === 'async' ? await ids : ids);
    } catch ({ code, message }) {
      refusals.push(code ?? message);
    }
  }
  const ids = new BigUint64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    ids.set(part, at);
    at += part.length;
  }
  return { ids, refusals };
}

/** By what draws: has MANY of them draw at one time. Answers what each met, and when they began. */
const DRAWS = {
  async processes(kind, options, env) {
    const peers = Array.from({ length: MANY }, () => new Peer({ env }));
    try {
      const opened = await Promise.all(peers.map((peer) => peer.open(options)));
      assert.equal(new Set(opened.map(({ page }) => page)).size, 1);
      const begin = Date.now() + 100;
      const met = peers.map((peer) => peer.run(draw, kind, begin, begin + DRAW_MS));
      return { met: await Promise.all(met), begin };
    } finally {
      await Promise.all(peers.map((peer) => peer.end()));
    }
  },
  async threads(kind, options, env) {
    // They load the package until then.
    const begin = Date.now() + 4000;
    const script = `
      const { parentPort, workerData } = require('node:worker_threads');
      const flake = new (require(${JSON.stringify(entry)}).SnowFlake)(workerData);
      (${draw})({ flake }, '${kind}', ${begin}, ${begin + DRAW_MS}).then((met) => parentPort.postMessage(met));`;
    const met = Array.from({ length: MANY }, () => runWorker(script, { workerData: options, env }));
    return { met: await Promise.all(met), begin };
  },
};

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

/** How many IDs are of the ticks in which all drew: their first and last calls begin and end at other times. */
function countOf(ids, begin, { datacenterBits, workerBits, clockBackBits, sequenceBits, epoch }) {
  const shift = BigInt(datacenterBits + workerBits + clockBackBits + sequenceBits);
  const [from, to] = [begin + 200, begin + DRAW_MS - 100].map((ms) => BigInt(ms - epoch) << shift);
  return ids.reduce((count, id) => count + Number(from <= id && id < to), 0);
}

for (const [what, drawAll] of Object.entries(DRAWS)) {
  for (const kind of ['loop', 'batch', 'async']) {
    test(`${MANY} ${what} of the same call, ${kind}, have equal shares`, {
      skip: storm ?? linux,
    }, async (t) => {
      // Of calls that take longer than their share of a tick, the processors' time would be shared out.
      const layout = kind === 'async' ? { ...layouts.node, sequenceBits: 6 } : layouts.node;
      await reached(async () => {
        const env = { SNOWDRIFT_SHARED: createDirectory() };
        const { met, begin } = await drawAll(kind, { ...node, layout }, env);
        const shares = met.map(({ ids }) => countOf(ids, begin, layout));
        const mean = shares.reduce((sum, share) => sum + share, 0) / MANY;
        const least = Math.min(...shares) / mean;
        t.diagnostic(`slowest share ${least.toFixed(2)} of the mean`);
        assert.equal(countDuplicatesOf(met.map(({ ids }) => ids)), 0);
        assert.deepEqual(
          met.flatMap(({ refusals }) => refusals),
          [],
        );
        return (bars) => (least >= FAIR[bars] ? undefined : shares.join());
      });
    });
  }
}
