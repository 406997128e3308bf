'use strict';
// A directory of slots under real processes: one is stopped, the disk is full, the directory is moved. src/registry/host/tests
// has more of it, in virtual time. Two hosts are two directories of pages.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { mkdtempSync, renameSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const nodeTest = require('node:test');

const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { onMachine } = require('../support/machine.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { SnowFlake, until } = require('../support/support.js');

const linux = process.platform === 'linux' ? undefined : 'processes are stopped as on Linux';
const NODE = { datacenterId: 1, workerId: 3 };

/** A scene: `state` is a directory to be, `start(options, host)` starts a Drawer on a host. */
function scene(name, body) {
  nodeTest.test(name, { skip: linux }, async (t) => {
    const parent = mkdtempSync(join(tmpdir(), 'snowdrift-directory-'));
    process.env.SNOWDRIFT_SHARED = createDirectory();
    const processes = [];
    t.after(async () => {
      for (const one of processes) one.kill('SIGKILL');
      await Promise.all(processes.map(({ ended }) => ended));
      removeDirectory(parent);
    });
    const state = join(parent, 'ids');
    const start = (options, env) => {
      const drawer = new Drawer({ ...NODE, state, ...options }, env);
      processes.push(drawer);
      return drawer;
    };
    await body({ t, state, start });
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
