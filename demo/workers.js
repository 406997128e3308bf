'use strict';
// Cluster workers that draw IDs at the same time, and the comparison of all their IDs.

const cluster = require('node:cluster');
const { once } = require('node:events');
const { SnowFlake } = require('snowdrift');

const { countDuplicates, number, printTable } = require('./output.js');

const WORKERS = 4;

// Workers that still start would complain that their channel is closed.
process.on('exit', () => {
  for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGKILL');
});

function fail(message) {
  console.error(message);
  process.exit(1);
}

/** Returns workers that are ready to draw. Each has `envOf` its number in its environment. */
async function fork(envOf) {
  cluster.setupPrimary({ exec: require.resolve('./worker.js'), serialization: 'advanced' });
  const workers = Array.from({ length: WORKERS }, (_, n) =>
    cluster.fork({ datacenterId: 1, ...envOf(n) }),
  );
  for (const worker of workers) {
    worker.on('error', ({ message }) => fail(`worker ${worker.id}: ${message}`));
    worker.on('exit', (code, signal) => {
      if (worker.exitedAfterDisconnect) return;
      // Ctrl+C signals all processes, and may have reached this one first.
      if (signal === 'SIGINT') process.exit(130);
      fail(`worker ${worker.id} ended with ${signal ?? `code ${code}`}`);
    });
  }
  await Promise.all(workers.map(answerOf));
  return workers;
}

async function end(workers) {
  for (const worker of workers) worker.disconnect();
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
}

async function answerOf(worker) {
  const [answer] = await once(worker, 'message');
  if (answer.failure) fail(`worker ${worker.id}: ${answer.failure}`);
  return answer;
}

/** Has all workers draw at the same time. Returns { ids, ms } of each, and the number of duplicates among all. */
async function draw(workers, count, name) {
  const answers = workers.map(answerOf);
  for (const worker of workers) worker.send({ name, count });
  const drawn = (await Promise.all(answers)).map(({ ms, bigints, strings }) => ({
    ms,
    ids: [bigints, BigUint64Array.from(strings.split(','), BigInt)],
  }));
  const all = new BigUint64Array(2 * count * workers.length);
  for (const [n, ids] of drawn.flatMap(({ ids }) => ids).entries()) all.set(ids, n * count);
  return { drawn, total: all.length, duplicates: countDuplicates(all) };
}

async function showOwnNodes(count, lease) {
  const whose = lease === undefined ? 'each with its own workerId' : 'with a leased workerId';
  console.log(`1. ${WORKERS} cluster workers, ${whose}, generate IDs at the same time:`);
  console.log(`   ${number(count)} as BigInt each, and as many as strings.\n`);
  const leased = { workerId: undefined, DEMO_LEASE: lease };
  const workers = await fork((workerId) => (lease === undefined ? { workerId } : leased));
  const { drawn, total, duplicates } = await draw(workers, count, 'snowdrift');
  await end(workers);
  const last = drawn.map(({ ids }) => SnowFlake.parse(ids[1].at(-1)));
  printTable(
    last.map(({ id, date, workerId, sequence }, n) => ({
      workerId,
      'IDs/s': number((2 * count * 1000) / drawn[n].ms),
      'its last ID': id,
      time: date.toISOString(),
      sequence,
    })),
  );
  console.log(`\n   A BigInt: ${last[0].id}n. A string, for ORMs: '${last[0].id}'.`);
  console.log(`   Duplicates among all ${number(total)} IDs: ${number(duplicates)}`);
  return duplicates;
}

async function showOneNode(count) {
  console.log(
    `\n2. ${WORKERS} cluster workers, all with datacenterId=1 and workerId=3. With snowdrift`,
  );
  console.log('   they share one sequence. With a plain JavaScript class, as many projects have');
  console.log('   it, each process counts on its own.\n');
  const workers = await fork(() => ({ workerId: 3 }));
  const ours = await draw(workers, count, 'snowdrift');
  const plain = await draw(workers, count, 'a plain class');
  await end(workers);
  printTable(
    Object.entries({ snowdrift: ours, 'a plain class': plain }).map(
      ([generator, { total, duplicates }]) => ({
        generator,
        IDs: number(total),
        duplicates: number(duplicates),
      }),
    ),
  );
  return ours.duplicates;
}

module.exports = { showOneNode, showOwnNodes };
