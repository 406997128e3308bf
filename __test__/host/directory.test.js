'use strict';
// A directory of slots under real processes that are stopped, on disks that fail, whose files are deleted, in layouts of long
// ticks. Two hosts are two directories of pages. src/host/tests shows the same in virtual time.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { cpSync, mkdtempSync, renameSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const nodeTest = require('node:test');

const { gate } = require('../support/amount.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { readLine } = require('../support/lease/slot-file.js');
const { onMachine } = require('../support/machine.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { Peer } = require('../support/peer.js');
const { SnowFlake, layouts, refuses, until } = require('../support/support.js');

const linux = process.platform === 'linux' ? undefined : 'processes are stopped as on Linux';
const NODE = { datacenterId: 1, workerId: 3 };
const FILE = 'datacenter-1-worker-3.slot';

/** A scene: `state` is a directory to be, `start(options, host)` starts a Drawer on a host. */
function scene(name, body, skip) {
  nodeTest.test(name, { skip: skip ?? linux }, async (t) => {
    const parent = mkdtempSync(join(tmpdir(), 'snowdrift-directory-'));
    process.env.SNOWDRIFT_SHARED = createDirectory();
    const processes = [];
    t.after(async () => {
      for (const one of processes) one.kill('SIGKILL');
      await Promise.all(processes.map(({ ended }) => ended));
      removeDirectory(parent);
    });
    const begin = (one) => {
      processes.push(one);
      return one;
    };
    const state = join(parent, 'ids');
    const start = (options, env) => begin(new Drawer({ ...NODE, state, ...options }, env));
    const peer = () => begin(new Peer());
    await body({ t, state, start, peer });
  });
}

const host = () => ({ SNOWDRIFT_SHARED: createDirectory() });

scene(
  'a stopped process loses its slot to another host, says so, and repeats nothing',
  async (it) => {
    const ttl = 1500;
    const stopped = it.start({ ttl, maxWait: 0 }, host());
    const { lease } = await stopped.opened();
    await stopped.drawn(500);
    stopped.kill('SIGSTOP');
    const begun = performance.now();
    const other = it.start({ ttl, waitForSlot: 120_000 }, host());
    const { lease: next } = await other.opened();
    assert.ok(performance.now() - begun > ttl / 2, 'it is watched for half a ttl');
    assert.ok(next.floor >= lease.ceiling, `${next.floor}, ${lease.ceiling}`);
    await other.drawn(500);
    stopped.kill('SIGCONT');
    await until(() => stopped.losses.length > 0);
    assert.equal(stopped.losses[0].lease.lost, 'taken');
    await until(() => stopped.refused.has('ERR_SNOWFLAKE_LEASE_EXPIRED'));
    const before = stopped.count;
    await other.stop();
    await stopped.drawn(before + 500);
    assert.ok(stopped.warnings.some(({ code }) => code === 'SNOWFLAKE_SLOT_LOST'));
    assert.equal(countDuplicatesOf([stopped.ids(), other.ids()]), 0);
  },
);

onMachine(
  'a disk that is full stops nobody before the ceiling, and IDs go on when it has room',
  async ({ machine, start, state }) => {
    const ENOSPC = 28;
    const drawer = start({ ...NODE, state, ttl: 1000, maxWait: 0 });
    await drawer.drawn(100);
    machine.diskError = ENOSPC;
    await until(() => drawer.refused.has('ERR_SNOWFLAKE_STORE'));
    const full = drawer.count;
    machine.diskError = 0;
    await drawer.drawn(full + 500);
    const { lease } = await drawer.stop();
    assert.deepEqual([lease.state, drawer.losses], ['held', []]);
    assert.equal(countDuplicatesOf([drawer.ids()]), 0);
  },
);

scene(
  'a deleted file stops a busy thread, until all that others may issue has passed',
  async (it) => {
    const busy = it.peer();
    await busy.run(
      (scene, given) => {
        scene.flake = new scene.SnowFlake(given);
      },
      { ...NODE, state: it.state, ttl: 1000 },
    );
    const drawing = busy.run(({ flake }) => {
      const ids = [];
      const { ceiling } = flake.lease;
      const end = Date.now() + 120_000;
      try {
        // In one turn: no event reaches it.
        while (Date.now() < end) if (ids.push(flake.nextId()) > 4096) ids.length = 0;
      } catch ({ code, message }) {
        return { code, message, ceiling, state: flake.lease.state };
      }
    });
    await until(() => readLine(join(it.state, FILE))?.kind === 'held');
    rmSync(join(it.state, FILE));
    const { code, message } = await drawing;
    assert.match(code, /^ERR_SNOWFLAKE_(LEASE_EXPIRED|WINDOW)$/, message);
    const deleted = Date.now();
    // It takes the slot again, above all that others could have taken in between.
    const ids = await busy.run(async ({ flake }) => {
      const end = Date.now() + 120_000;
      for (;;) {
        try {
          return flake.nextIds(100);
        } catch (refused) {
          if (Date.now() > end) throw refused;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    assert.ok(SnowFlake.parse(ids[0]).timestamp > deleted + 10_000);
    const other = it.start({ ttl: 1000 }, host());
    const { code: inUse, message: why } = await other.opened();
    assert.equal(inUse, 'ERR_SNOWFLAKE_IN_USE', why);
  },
  gate,
);

scene('a copy of a directory in use is refused on its host', async ({ state, start }) => {
  const holder = start({ ttl: 60_000 });
  await holder.drawn(100);
  const copy = `${state}-copy`;
  cpSync(state, copy, { recursive: true });
  const refused = await start({ state: copy }).opened();
  assert.equal(refused.code, 'ERR_SNOWFLAKE_IN_USE', refused.message);
  // Also after the holder was killed: its last IDs are in no file.
  holder.kill('SIGKILL');
  await holder.ended;
  assert.equal((await start({ state: copy }).opened()).code, 'ERR_SNOWFLAKE_IN_USE');
  const next = start({ ttl: 60_000, maxWait: 10_000 });
  await next.drawn(100);
  assert.equal(countDuplicatesOf([holder.ids(), next.ids()]), 0);
});

scene(
  'a directory that is moved away is missed, and found when it is back',
  async ({ t, state }) => {
    const told = [];
    const tell = (lease, channel) => told.push([channel.replace('snowdrift:lease-', ''), lease]);
    const channels = ['taken', 'renewed', 'failing', 'lost', 'released'].map(
      (name) => `snowdrift:lease-${name}`,
    );
    for (const channel of channels) subscribe(channel, tell);
    const flake = new SnowFlake({ ...NODE, state, ttl: 3000, maxWait: 0 });
    t.after(() => {
      for (const channel of channels) unsubscribe(channel, tell);
      flake.close();
    });
    flake.nextId();
    renameSync(state, `${state}-moved`);
    await until(() => flake.lease.state === 'failing');
    assert.match(flake.lease.failure, /cannot find the directory .*ids: No such file/);
    // Up to the ceiling, as before.
    if (Date.now() < flake.lease.ceiling - 500) assert.ok(flake.nextId());
    renameSync(`${state}-moved`, state);
    const { renewals } = flake.lease;
    await until(() => flake.lease.state === 'held' && flake.lease.renewals > renewals);
    assert.ok(flake.nextId());
    flake.close();
    const names = told.map(([name]) => name).filter((name) => name !== 'renewed');
    assert.deepEqual(
      [names[0], names.at(-1), names.includes('failing')],
      ['taken', 'released', true],
    );
    assert.ok(!names.includes('lost') && told.some(([name]) => name === 'renewed'));
  },
);

/** A layout of ticks that long, the present one of which ends in so many ms. */
function ending(tickMs, ms) {
  const now = Date.now();
  return { ...layouts.node, timestampBits: 31, tickMs, epoch: now + ms - 10_000 * tickMs };
}

scene(
  'after a close IDs begin with the next tick: a constructor waits a second for it',
  async ({ state }) => {
    const layout = ending(1000, 1000);
    const open = () => new SnowFlake({ ...NODE, state, layout, maxWait: 0 });
    const tickOf = (id) => SnowFlake.parse(id, layout).timestamp;
    const first = open();
    const tick = tickOf(first.nextId());
    first.close();
    const second = open();
    const next = tickOf(second.nextId());
    second.close();
    assert.ok(next > tick, `${next} after ${tick}`);
  },
);

scene(
  'a tick of a minute is waited for by lease(), and a constructor says when it ends',
  async ({ state }) => {
    const layout = ending(60_000, 4000);
    const options = { datacenterId: 1, layout, maxWait: 0 };
    const first = await SnowFlake.lease(pathToFileURL(state), options);
    const issued = first.nextId();
    first.close();
    const { workerId } = first;
    const second = new SnowFlake({ ...options, workerId, state });
    // A busy machine may come to the next tick before.
    if (Date.now() < layout.epoch + 10_000 * 60_000 - 1500) {
      const { message, retryAfterMs } = refuses(() => second.nextId(), 'ERR_SNOWFLAKE_WINDOW');
      assert.match(message, /20\d\d-\d\d-\d\dT/);
      assert.ok(retryAfterMs > 0 && retryAfterMs <= 4000, String(retryAfterMs));
    }
    second.close();
    const third = await SnowFlake.lease(pathToFileURL(state), { ...options });
    assert.ok(third.nextId() > issued);
    third.close();
  },
  gate,
);
