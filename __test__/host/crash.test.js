'use strict';
// Nothing repeats on one host: real processes, killed, stopped and restarted on a machine whose clock
// steps, whose disk fails and whose power is cut.
//
//   TESTS=storms TESTS_TIMES=100 TESTS_SEED=7 node --test __test__/host/crash.test.js

const assert = require('node:assert/strict');
const { copyFileSync, existsSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { amount, gate, isStorms, seed, storm } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { onMachine } = require('../support/machine.js');
const { SnowFlake, layouts, seeded, until } = require('../support/support.js');

const KILLS = amount(200, 200);
const SEED = seed ?? 1;

/**
 * 8 workers on 8 slots, killed at random moments and restarted at once, while the clock is shifted
 * back and forth. Answers all that was drawn.
 */
async function chaos({ machine, start, drawers }, options, kills) {
  const random = seeded(SEED);
  const alive = new Map();
  const startSlot = (workerId) => {
    const drawer = start({ datacenterId: 1, workerId, ...options });
    const opened = drawer.opened().then(({ code, message }) => {
      assert.ok(!code, message);
      alive.set(workerId, drawer);
    });
    opened.catch(() => {});
    return opened;
  };
  let starting = Array.from({ length: 8 }, (_, workerId) => startSlot(workerId));
  let offset = 0;
  for (let kill = 0; kill < kills; kill++) {
    await sleep(random() * 60);
    offset = Math.max(-5000, Math.min(5000, offset + (random() - 0.5) * 3000));
    machine.clock = offset;
    if (alive.size < 4) {
      await Promise.all(starting);
      starting = [];
    }
    const victim = [...alive.keys()][Math.floor(random() * alive.size)];
    const drawer = alive.get(victim);
    alive.delete(victim);
    drawer.kill('SIGKILL');
    await drawer.ended;
    starting.push(startSlot(victim));
  }
  await Promise.all(starting);
  // All of them issue again, at the latest when the clock has passed all that was.
  machine.clock = 6000;
  const last = [...alive.values()];
  await Promise.all(last.map((drawer) => drawer.drawn(drawer.ids().length + 1)));
  // A busy machine may let few of them run before they are killed.
  const isMuch = () => drawers.reduce((sum, { count }) => sum + count, 0) > 100 * kills;
  while (!isMuch()) await Promise.all(last.map((drawer) => drawer.drawn(drawer.count + 50)));
  for (const drawer of last) drawer.kill('SIGKILL');
  await Promise.all(last.map(({ ended }) => ended));
  return drawers.map((drawer) => drawer.ids());
}

onMachine(
  `${KILLS} kills of 8 workers under a clock that rolls back and jumps repeat nothing`,
  async (scene) => {
    const drawn = await chaos(scene, { state: scene.state }, KILLS);
    const count = drawn.reduce((sum, { length }) => sum + length, 0);
    scene.t.diagnostic(`seed ${SEED}: ${count} IDs of ${drawn.length} processes`);
    assert.ok(drawn.length === KILLS + 8 && count > 100 * KILLS, `only ${count} IDs`);
    assert.equal(countDuplicatesOf(drawn), 0);
  },
  { skip: storm },
);

onMachine(
  'a process alone without a state repeats IDs, so that these tests can fail',
  async ({ machine, start }) => {
    const options = { datacenterId: 1, workerId: 2, scope: 'process' };
    // A busy machine may run the second one in none of the ms in which the first one drew.
    for (let round = 0; round < 20; round++) {
      const first = start(options);
      await first.drawn(10_000);
      first.kill('SIGKILL');
      await first.ended;
      // However long it takes to start.
      standBefore(machine, first, 600_000);
      const second = start(options);
      await second.opened();
      standBefore(machine, first, 50);
      await second.drawnPast(first);
      second.kill('SIGKILL');
      await second.ended;
      if (countDuplicatesOf([first.ids(), second.ids()]) > 0) return;
      machine.clock = 0;
    }
    assert.fail('no ID was repeated');
  },
  { skip: storm },
);

onMachine(
  'a process alone without a state repeats nothing while the clock runs on',
  async ({ machine, start }) => {
    const drawers = [];
    for (let life = 0; life < 4; life++) {
      // No lower than before: what is drawn in a ms that another life drew in is theirs.
      machine.clock = life * 2;
      const drawer = start({ datacenterId: 1, workerId: 2, scope: 'process' });
      await drawer.drawn(1000);
      drawer.kill('SIGKILL');
      await drawer.ended;
      drawers.push(drawer.ids());
    }
    assert.equal(countDuplicatesOf(drawers), 0);
  },
);

for (const [how, more] of [
  ['on the host’s page', {}],
  ['of a process alone', { scope: 'process' }],
]) {
  onMachine(
    `IDs that maxAhead took ahead are not repeated by a restart ${how}`,
    async ({ machine, start, state }) => {
      const options = {
        ...{ datacenterId: 1, workerId: 2, state, maxAhead: 60_000, maxWait: 5000 },
        // Two IDs in 100 ms, so that even a busy machine takes them ahead of the clock, by 40 s.
        layout: { ...layouts.node, sequenceBits: 1, tickMs: 100 },
        ...more,
      };
      const first = start(options);
      await first.drawn(800);
      first.kill('SIGKILL');
      await first.ended;
      const { timestamp } = SnowFlake.parse(first.ids().at(-1), options.layout);
      assert.ok(timestamp > Date.now() + 1000);
      // Below what the first one took ahead, where the next IDs would come into it. A process alone knows of it by its
      // record only: it is further below than IDs may be.
      const isAlone = more.scope === 'process';
      const back = timestamp - (isAlone ? 90_000 : 45_000) - Date.now();
      machine.clock = back;
      const second = start(options);
      await second.opened();
      if (isAlone) {
        await until(() => second.refused.has('ERR_SNOWFLAKE_WINDOW'));
        assert.equal(second.count, 0);
        // Where IDs above the ceiling may be taken ahead, so that it waits for none.
        machine.clock = back + 95_000;
      }
      await second.drawn(300);
      assert.equal(countDuplicatesOf([first.ids(), second.ids()]), 0);
    },
  );
}

onMachine(
  'after kill -9 and a clock rollback of a minute IDs continue at once, under the next counter value',
  async ({ machine, start, state }) => {
    const back = 60_000;
    const options = { datacenterId: 1, workerId: 2, state, ttl: 60_000 };
    const first = start(options);
    await first.drawn(2000);
    first.kill('SIGKILL');
    await first.ended;
    machine.clock = -back;
    const begin = Date.now();
    const second = start(options);
    await second.drawn(500);
    const { stats, refusals } = await second.stop();
    assert.deepEqual(refusals, {});
    assert.equal(stats.clockBack, 1);
    const id = SnowFlake.parse(second.ids()[0]);
    assert.equal(id.clockBack, 1);
    const [least, most] = [begin - back, Date.now() - back];
    assert.ok(id.timestamp >= least && id.timestamp <= most, `${id.timestamp}: ${least}..${most}`);
    assert.equal(countDuplicatesOf([first.ids(), second.ids()]), 0);
  },
);

onMachine(
  'a layout without counter bits refuses with retryAfterMs, or waits',
  async ({ machine, start, state }) => {
    const options = { datacenterId: 1, workerId: 2, state, layout: 'twitter' };
    const first = start(options);
    await first.drawn(1000);
    first.kill('SIGKILL');
    await first.ended;
    machine.clock = -60_000;
    const refused = start(options);
    await refused.opened();
    await until(() => refused.refused.size > 0);
    const { refusals } = await refused.stop();
    assert.equal(refused.ids().length, 0);
    assert.ok(refusals.ERR_SNOWFLAKE_CLOCK_BACK > 0, JSON.stringify(refusals));

    const waits = start({ ...options, maxWait: 5000 });
    await waits.opened();
    assert.equal(waits.count, 0);
    let last = first;
    // As a storm more than once, since it shows nothing where it is held up for longer than that.
    for (let round = 0; round < amount(1, 4); round++) {
      const { timestamp } = SnowFlake.parse(last.ids().at(-1), 'twitter');
      machine.clock = timestamp - 500 - Date.now();
      await waits.drawn(waits.count + 100);
      last = waits;
    }
    const { stats } = await waits.stop();
    if (isStorms) assert.ok(stats.waits > 0 && stats.waitedMs > 100, JSON.stringify(stats));
    assert.equal(countDuplicatesOf([first.ids(), waits.ids()]), 0);
  },
);

onMachine(
  'processes with one workerId and one state share its sequence, and outlive each other',
  async ({ start, state }) => {
    // One that opens the slot may be held up for longer than others wait for that.
    const options = { datacenterId: 1, workerId: 2, state, ttl: 60_000, waitForSlot: 60_000 };
    const drawers = [start(options), start(options)];
    for (let round = 0; round < amount(2, 8); round++) {
      const [first, second] = drawers.slice(-2);
      for (const drawer of [first, second]) {
        assert.equal((await drawer.opened()).code, undefined);
        await drawer.drawn(200);
      }
      first.kill('SIGKILL');
      await first.ended;
      await second.drawn(second.ids().length + 200);
      drawers.push(start(options));
    }
    const { refusals } = await drawers.at(-1).stop();
    assert.deepEqual(refusals, {});
    assert.equal(countDuplicatesOf(drawers.map((drawer) => drawer.ids())), 0);
  },
);

onMachine(
  'a process that is stopped for longer than its window holds up no other, and continues',
  async ({ start, state }) => {
    const options = { datacenterId: 1, workerId: 2, state, ttl: 1000, maxWait: 30_000 };
    const stopped = start(options);
    const { lease: before } = await stopped.opened();
    await stopped.drawn(500);
    stopped.kill('SIGSTOP');
    await sleep(2500);
    assert.ok(Date.now() > before.ceiling, 'its window has passed');
    const second = start(options);
    assert.equal((await second.opened()).code, undefined);
    await second.drawn(500);
    const drawn = stopped.ids().length;
    stopped.kill('SIGCONT');
    await stopped.drawn(drawn + 500);
    const { refusals, lease } = await stopped.stop();
    assert.deepEqual(refusals, {});
    assert.ok(lease.ceiling > before.ceiling);
    assert.equal(countDuplicatesOf([stopped.ids(), second.ids()]), 0);
  },
  { skip: gate },
);

/** Shifts the clock to some ms before a process began to draw. */
function standBefore(machine, drawer, ms = 1000) {
  machine.clock = SnowFlake.parse(drawer.ids()[0]).timestamp - ms - Date.now();
}

/** Draws, keeps an old copy of the slot's file, draws on within the window, is killed. */
async function dieWithAnOldCopy({ machine, start, state }) {
  machine.boot = 1;
  const options = { datacenterId: 1, workerId: 2, state, ttl: 60_000 };
  const file = join(state, 'datacenter-1-worker-2.slot');
  const first = start(options);
  await first.drawn(300);
  copyFileSync(file, `${file}.old`);
  await first.drawn(2000);
  first.kill('SIGKILL');
  await first.ended;
  copyFileSync(`${file}.old`, file);
  standBefore(machine, first);
  return { first, options };
}

onMachine('after a power cut nothing is issued below the ceiling', async (scene) => {
  const { machine, start } = scene;
  const { first, options } = await dieWithAnOldCopy(scene);
  machine.boot = 2;
  const second = start(options);
  const { lease } = await second.opened();
  assert.ok(lease.floor > SnowFlake.parse(first.ids().at(-1)).timestamp);
  await until(() => second.refused.has('ERR_SNOWFLAKE_WINDOW'));
  assert.equal(second.count, 0);
  machine.clock = lease.floor - Date.now() + 1;
  await second.drawn(1000);
  const { refusals } = await second.stop();
  assert.ok(refusals.ERR_SNOWFLAKE_WINDOW > 0);
  assert.equal(countDuplicatesOf([first.ids(), second.ids()]), 0);
});

onMachine('an old copy within one boot repeats nothing: the page knows', async (scene) => {
  const { first, options } = await dieWithAnOldCopy(scene);
  const second = scene.start(options);
  await second.opened();
  standBefore(scene.machine, first, 50);
  await second.drawnPast(first);
  assert.equal(countDuplicatesOf([first.ids(), second.ids()]), 0);
});

onMachine(
  'when the disk fills, IDs continue to the ceiling, stop, and continue by themselves',
  async ({ machine, start, state }) => {
    const ENOSPC = 28;
    const ttl = 1000;
    const drawer = start({ datacenterId: 1, workerId: 2, state, ttl });
    const timeOf = (id) => SnowFlake.parse(id).timestamp;
    await drawer.drawn(100);
    let hasContinued = false;
    // A machine that holds the process up until the ceiling has passed shows nothing in that round.
    for (let round = 0; round < 10 && !hasContinued; round++) {
      machine.diskError = ENOSPC;
      const full = Date.now();
      // A renewal that has begun by then has its ceiling by then.
      while (Date.now() <= full + 2 * ttl) await sleep(50);
      const stopped = drawer.ids();
      await sleep(500);
      const all = drawer.ids();
      const last = timeOf(all.at(-1));
      assert.ok(last <= full + ttl, `at ${last - full} ms`);
      const isRefused = drawer.refused.has('ERR_SNOWFLAKE_STORE');
      hasContinued = isRefused && last > full && all.length === stopped.length;
      machine.diskError = 0;
      await drawer.drawn(all.length + 100);
      const next = timeOf(drawer.ids()[all.length]);
      // What was drawn before the disk had room was written by the drawer later.
      assert.ok(next <= full + ttl || next > full + 2 * ttl, `at ${next - full} ms`);
    }
    assert.ok(hasContinued, 'up to the ceiling, and no further');
    const { refusals } = await drawer.stop();
    assert.ok(refusals.ERR_SNOWFLAKE_STORE > 0, JSON.stringify(refusals));
    assert.equal(countDuplicatesOf([drawer.ids()]), 0);
    assert.ok(existsSync(state));
  },
  { skip: storm },
);
