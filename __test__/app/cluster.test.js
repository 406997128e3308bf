'use strict';
// Workers of node:cluster, forked as an application forks them: with one workerId, with one each, and with a lease.

const assert = require('node:assert/strict');
const cluster = require('node:cluster');
const { once } = require('node:events');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { afterEach, before, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { removeDirectory } = require('../support/own-directory.js');
const { isQuick, isStorms } = require('../support/amount.js');
const { SnowFlake, countDuplicates } = require('../support/support.js');
const { limitWait } = require('../support/limit-wait.js');

const DRAWN = isStorms ? 200_000 : isQuick ? 5000 : 20_000;
const running = new Set();

before(() => {
  const exec = join(__dirname, '../support/cluster-worker.js');
  cluster.setupPrimary({ exec, args: [String(DRAWN)], execArgv: [] });
});

afterEach(async () => {
  await Promise.all([...running].map(killed));
});

/** Forks a worker. Resolves with it, and with all that it has drawn. */
async function drawn(environment) {
  const worker = cluster.fork(environment);
  running.add(worker);
  worker.once('exit', () => running.delete(worker));
  const ended = once(worker, 'exit').then(() => assert.fail('it ended before it had drawn'));
  ended.catch(() => {});
  const [{ ids, scope }] = await limitWait(
    Promise.race([once(worker, 'message'), ended]),
    () => `the IDs of worker ${worker.id}`,
  );
  const workerIds = [...new Set(ids.map((id) => SnowFlake.parse(id).workerId))];
  return { worker, ids, scope, workerIds };
}

async function killed(worker) {
  const ended = once(worker, 'exit');
  worker.process.kill('SIGKILL');
  await ended;
}

const drawnBy = (environments) => Promise.all(environments.map(drawn));
const assertUnique = (all) => assert.equal(countDuplicates(all.flatMap(({ ids }) => ids)), 0);

test('workers with one workerId share a sequence', async () => {
  const all = await drawnBy(Array(4).fill({ datacenterId: 1, workerId: 3 }));
  assertUnique(all);
  for (const { scope, workerIds } of all) assert.deepEqual([scope, workerIds], ['host', [3]]);
});

test('each worker issues IDs of the workerId in its environment', async () => {
  const all = await drawnBy([0, 1, 2].map((workerId) => ({ datacenterId: 1, workerId })));
  assertUnique(all);
  assert.deepEqual(
    all.map(({ workerIds }) => workerIds),
    [[0], [1], [2]],
  );
});

test('a worker that replaces a killed one continues above its IDs', async () => {
  const node = { datacenterId: 1, workerId: 3 };
  const all = await drawnBy([node, node]);
  for (let deaths = isStorms ? 34 : 2; deaths > 0; deaths--) {
    await killed(all.at(-1).worker);
    const next = await drawn(node);
    assert.ok(BigInt(next.ids[0]) > BigInt(all.at(-1).ids.at(-1)));
    all.push(next);
  }
  assertUnique(all);
});

test('workers with the lease of a directory share one slot', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-cluster-'));
  try {
    const SNOWDRIFT_LEASE = pathToFileURL(directory).href;
    const all = await drawnBy(Array(3).fill({ datacenterId: 1, SNOWDRIFT_LEASE }));
    assertUnique(all);
    assert.equal(new Set(all.flatMap(({ workerIds }) => workerIds)).size, 1);
    await Promise.all([...running].map(killed));
  } finally {
    removeDirectory(directory);
  }
});
