'use strict';
// The primary of the demo: forks the workers, shows their progress, compares and decodes all IDs.

const cluster = require('node:cluster');
const { SnowFlake, layouts } = require('snowdrift');
const { forkWorkers } = require('snowdrift/cluster');

const KINDS = ['bigint', 'string'];
const CEILING = 2 ** layouts.node.sequenceBits * 1000;

const number = (value) => Math.round(value).toLocaleString('en-US');
const percent = (part) => `${(part * 100).toFixed(1)}%`;

/** Progress: one line a worker that is redrawn on a terminal; else a line where a worker is done. */
class Progress {
  #lines;

  constructor(workers) {
    this.#lines = Array.from({ length: workers }, (_, n) => `worker ${n}: starting`);
    if (process.stdout.isTTY) process.stdout.write(`${this.#lines.join('\n')}\n`);
  }

  show(workerId, kind, done, count) {
    const line = `worker ${workerId}: ${kind.padEnd(6)} ${number(done)} of ${number(count)}`;
    this.#lines[workerId] = line;
    if (process.stdout.isTTY) {
      process.stdout.write(`\x1b[${this.#lines.length}A\x1b[J${this.#lines.join('\n')}\n`);
    } else if (done === count) {
      console.log(line);
    }
  }
}

function run({ workers, datacenterId, count }) {
  console.log(
    `${workers} workers draw ${number(count)} IDs each as BigInt and ${number(count)} as strings ...`,
  );
  cluster.setupPrimary({ exec: require.resolve('./index.js'), serialization: 'advanced' });
  const started = Date.now();
  const progress = new Progress(workers);
  const drawn = [];
  for (let place = 0; place < workers; place++) {
    for (const kind of KINDS) {
      drawn.push({ place, kind, ids: new BigUint64Array(count), length: 0, ms: 0 });
    }
  }

  const group = forkWorkers({ count: workers, datacenterId });
  group.on('fork', (worker, place) => {
    worker.on('message', ({ kind, workerId, ids, done, ms }) => {
      const mine = drawn.find((one) => one.place === place && one.kind === kind);
      // With a lease, any that was free.
      mine.workerId = workerId;
      for (const id of ids) mine.ids[mine.length++] = typeof id === 'string' ? canonical(id) : id;
      mine.ms = ms;
      progress.show(place, kind, done, count);
    });
  });
  group.on('died', ({ workerId, code, signal }) => {
    console.error(`worker ${workerId} ended with ${signal ?? `code ${code}`}`);
    process.exit(1);
  });
  group.ended.then(() => report(drawn, { datacenterId, count, started, ended: Date.now() }));
}

/** The ID of a string, which must be the one way to write it. */
function canonical(text) {
  const id = BigInt(text);
  if (String(id) !== text) throw new Error(`'${text}' is not how ${id} is written`);
  return id;
}

function report(drawn, { datacenterId, count, started, ended }) {
  const rows = drawn.map(({ workerId, kind, length, ms }) => ({
    worker: workerId,
    as: kind,
    IDs: number(length),
    ms: number(ms),
    'IDs/s': number((length / ms) * 1000),
    'of the ceiling': percent(((length / ms) * 1000) / CEILING),
  }));
  console.table(rows);
  console.log('Comparing all of them, and decoding each ...');

  const missing = drawn.filter(({ length }) => length !== count).length;
  const duplicates = countDuplicates(drawn);
  const wrong = drawn.reduce(
    (sum, one) => sum + countWrong(one, { datacenterId, started, ended }),
    0,
  );
  const total = drawn.reduce((sum, { length }) => sum + length, 0);
  console.log(`duplicates among all ${number(total)} IDs: ${duplicates}`);
  console.log(`IDs that do not decode to their worker and this minute: ${wrong}`);
  for (const { ids, length } of drawn.filter(({ kind }) => kind === 'string')) {
    console.log(JSON.stringify(SnowFlake.parse(ids[length - 1])));
  }
  process.exitCode = duplicates + wrong + missing === 0 ? 0 : 1;
}

/** By comparing the IDs themselves: sorted, equal ones are neighbours. */
function countDuplicates(drawn) {
  const all = new BigUint64Array(drawn.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const { ids, length } of drawn) {
    all.set(ids.subarray(0, length), at);
    at += length;
  }
  all.sort();
  let duplicates = 0;
  for (let i = 1; i < all.length; i++) if (all[i] === all[i - 1]) duplicates++;
  return duplicates;
}

function countWrong({ workerId, ids, length }, { datacenterId, started, ended }) {
  let wrong = 0;
  for (let i = 0; i < length; i++) {
    const id = SnowFlake.parse(ids[i]);
    const whose = id.datacenterId === datacenterId && id.workerId === workerId;
    if (!whose || id.timestamp < started || id.timestamp > ended) wrong++;
  }
  return wrong;
}

module.exports = { run };
