'use strict';
// Nothing repeats on one host: real processes, killed, stopped and restarted on a machine whose clock
// steps, whose disk fails and whose power is cut.
//
//   TESTS=storms TESTS_TIMES=100 TESTS_SEED=7 node --test __test__/host/crash.test.js

const assert = require('node:assert/strict');
const { copyFileSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { amount, seed, storm } = require('../support/amount.js');
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
      await first.drawn(100);
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
  'after kill -9 and a clock that has jumped ahead IDs go on at once',
  async ({ machine, start, state }) => {
    const options = { datacenterId: 1, workerId: 2, state, ttl: 60_000 };
    const first = start(options);
    await first.drawn(500);
    first.kill('SIGKILL');
    await first.ended;
    machine.clock = 3_600_000;
    const second = start(options);
    await second.drawn(500);
    const { refusals } = await second.stop();
    assert.deepEqual(refusals, {});
    assert.equal(countDuplicatesOf([first.ids(), second.ids()]), 0);
  },
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

onMachine(
  'an old copy that is put back after a clean close repeats nothing in one boot, whatever the clock shows',
  async ({ machine, start, state }) => {
    const options = { datacenterId: 1, workerId: 2, state };
    const file = join(state, 'datacenter-1-worker-2.slot');
    const live = async () => {
      const drawer = start(options);
      await drawer.drawn(3000);
      await drawer.stop();
      return drawer;
    };
    await live();
    copyFileSync(file, `${file}.old`);
    const second = await live();
    copyFileSync(`${file}.old`, file);
    standBefore(machine, second);
    const third = start(options);
    const { lease } = await third.opened();
    assert.ok(lease.floor >= SnowFlake.parse(second.ids().at(-1)).timestamp);
    standBefore(machine, second, 50);
    await third.drawnPast(second);
    assert.equal(countDuplicatesOf([second.ids(), third.ids()]), 0);
  },
);
