'use strict';
// The default scope on every system: real processes on one page, which are killed, and whose page loses its
// name. Run on macOS and Windows before a release, where pages are files of a disk.

const assert = require('node:assert/strict');
const { renameSync, rmSync, unlinkSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { after, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { amount, gate } = require('../support/amount.js');
const { createDirectory } = require('../support/own-directory.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { SnowFlake, entry, refuses, runScript, runWorker, slow } = require('../support/support.js');

const isWine = process.env.UNDER_WINE === '1';
/** How many processes are killed. Wine starts them slowly. */
const KILLS = isWine || gate ? 6 : amount(15, 30);

const own = createDirectory();
process.env.SNOWDRIFT_SHARED = own;
const open = [];
after(() => {
  for (const flake of open) flake.close();
  rmSync(own, { recursive: true, force: true, maxRetries: 20 });
});

const node = (workerId) => ({ datacenterId: 1, workerId });

/** The page of a node, which this process shares. */
function shared(workerId) {
  const flake = new SnowFlake(node(workerId));
  const { page, scope } = flake.stats();
  assert.equal(scope, 'host');
  open.push(flake);
  return { flake, page };
}

test('two processes draw from one page', async () => {
  const { flake, page } = shared(1);
  const drawers = [new Drawer(node(1)), new Drawer(node(1))];
  await Promise.all(drawers.map((drawer) => drawer.drawn(3000)));
  const here = BigUint64Array.from({ length: 3000 }, () => flake.nextId());
  const answers = await Promise.all(drawers.map((drawer) => drawer.stop()));
  assert.deepEqual(
    answers.map(({ stats }) => [stats.scope, stats.page]),
    [
      ['host', page],
      ['host', page],
    ],
  );
  assert.ok(page.startsWith(own), page);
  assert.equal(flake.stats().issued, here.length);
  assert.equal(countDuplicatesOf([here, ...drawers.map((drawer) => drawer.ids())]), 0);
});

test('two processes that do not share issue equal IDs, which this test finds', async () => {
  // Of a tick that lasts, so that it does not depend on who runs when.
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const layout = ${JSON.stringify(slow)};
    const flake = new SnowFlake({ layout, datacenterId: 1, workerId: 2, scope: 'process' });
    console.log(String(flake.nextId()));`;
  const runs = [await runScript(script), await runScript(script)];
  for (const { stderr } of runs) assert.equal(stderr, '');
  assert.equal(new Set(runs.map(({ stdout }) => stdout.trim())).size, 1);
});

test('threads share the page with processes', async () => {
  const { flake, page } = shared(3);
  const drawer = new Drawer(node(3));
  const draw = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const flake = new SnowFlake(${JSON.stringify(node(3))});
    require('node:worker_threads').parentPort.postMessage([flake.stats().page, flake.nextIds(2000)]);`;
  const threads = await Promise.all([runWorker(draw), runWorker(draw)]);
  await drawer.drawn(1000);
  await drawer.stop();
  for (const [its] of threads) assert.equal(its, page);
  assert.equal(
    countDuplicatesOf([drawer.ids(), flake.nextIds(2000), ...threads.map(([, ids]) => ids)]),
    0,
  );
});

test('processes that are killed while they draw issue nothing twice', async () => {
  const all = [];
  const begin = () => {
    const drawer = new Drawer(node(4));
    all.push(drawer);
    return drawer;
  };
  const running = [begin(), begin(), begin()];
  for (let kills = 0; kills < KILLS; kills++) {
    const victim = running[kills % running.length];
    await victim.drawn(50);
    await sleep(Math.random() * 5);
    victim.kill('SIGKILL');
    await victim.ended;
    running[kills % running.length] = begin();
  }
  await Promise.all(running.map((drawer) => drawer.stop()));
  const ids = all.map((drawer) => drawer.ids());
  assert.ok(ids.every(({ length }) => length > 0));
  assert.equal(countDuplicatesOf(ids), 0);
});

/** Wine sometimes keeps the name of a deleted file that is mapped, so that no next page can have it. */
const pending = isWine && 'wine may keep the name of a file that was deleted in use';

test('a page that loses its name while it is in use issues nothing twice', {
  skip: pending,
}, async () => {
  const { flake, page } = shared(5);
  const drawers = [new Drawer(node(5)), new Drawer(node(5))];
  const taken = [];
  let losses = 0;
  for (let round = 0; round < 40 && losses < 10; round++) {
    const drawn = drawers.map((drawer) => drawer.ids().length);
    await Promise.all(drawers.map((drawer, n) => drawer.drawn(drawn[n] + 100)));
    try {
      if (round % 2) renameSync(page, join(dirname(page), `away-${round}`));
      else unlinkSync(page);
      losses++;
    } catch (failure) {
      // Windows does not delete a file that is mapped. Elsewhere nobody may have made the next page yet.
      const codes = process.platform === 'win32' ? ['EPERM', 'EBUSY', 'EACCES'] : ['ENOENT'];
      assert.ok(codes.includes(failure.code), failure);
    }
    taken.push(flake.nextIds(100));
  }
  const answers = await Promise.all(drawers.map((drawer) => drawer.stop()));
  assert.ok(losses >= 5, `${losses} of 40`);
  for (const { stats } of answers) assert.equal(stats.page, page);
  assert.equal(countDuplicatesOf([...taken, ...drawers.map((drawer) => drawer.ids())]), 0);
});

test('a directory that cannot hold pages is an error, never a reason to share less', () => {
  const failure = (directory) => {
    process.env.SNOWDRIFT_SHARED = directory;
    try {
      return refuses(() => new SnowFlake(node(6)), 'ERR_SNOWFLAKE_STORE').message;
    } finally {
      process.env.SNOWDRIFT_SHARED = own;
    }
  };
  assert.match(failure(join(own, 'missing')), /missing/);
});
