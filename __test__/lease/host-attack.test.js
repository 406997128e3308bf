'use strict';
// Attacks on slots that a host's processes share: each was found by trying, and gave equal IDs, a slot
// lost for nothing, or a blocked event loop.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, readdirSync, unlinkSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const { describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { pathToFileURL } = require('node:url');

const { gate, storm } = require('../support/amount.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { faulty } = require('../support/lease/faulty.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { Server, missing } = require('../support/lease/servers.js');
const { Sharer } = require('../support/lease/sharer.js');
const { memory } = require('../../js/stores/memory.js');
const {
  CachedSnowFlake,
  SnowFlake,
  layouts,
  refuses,
  rejects,
  runScript,
  until,
} = require('../support/support.js');

const options = { datacenterId: 1 };
/** Longer than a busy machine stops a process. */
const PATIENT = { ...options, ttl: 60_000, callTimeout: 60_000 };
/** One slot only. */
const narrow = { ...layouts.node, workerBits: 0 };
const TEST = {
  skip: process.platform !== 'linux' && 'tried on Linux',
};

/** The files of pages. */
function pages(shared = process.env.SNOWDRIFT_SHARED) {
  return readdirSync(shared)
    .flatMap((user) => readdirSync(join(shared, user)).map((name) => join(shared, user, name)))
    .filter((path) => path.endsWith('.page'));
}

function deletePages() {
  for (const path of pages()) unlinkSync(path);
}

/** Leases once the pages of others are removed: one of them may have a page again before that. */
async function leaseAfter(remove, lease) {
  let leased;
  await until(async () => {
    remove();
    try {
      leased = await lease();
      return true;
    } catch (failure) {
      if (!/_(CONFLICT|NO_SLOT)$/.test(failure.code)) throw failure;
      return false;
    }
  });
  return leased;
}

/** Draws from all by turns, for some ms. Refusals are passed over. */
function drawByTurns(flakes, ms) {
  const ids = [];
  for (const end = Date.now() + ms; Date.now() < end; ) {
    for (const flake of flakes) {
      try {
        ids.push(flake.nextId());
      } catch {}
    }
  }
  return ids;
}

function assertDistinct(ids) {
  assert.equal(ids.length - new Set(ids).size, 0, `of ${ids.length} IDs some are equal`);
}

describe('two holders of one node', TEST, () => {
  test('an instance that cannot be opened leaves no page of a slot that it released', async () => {
    const store = memory();
    const tooLarge = CachedSnowFlake.lease(store, { ...options, boostPower: 13 });
    await rejects(tooLarge, 'ERR_SNOWFLAKE_CONFIG');
    assert.deepEqual(pages(), []);
  });

  test('a page that others joined and gave up is not created again for the same slot', {
    skip:
      storm ??
      (spawnSync('strace', ['-V']).status !== 0 && 'there is no strace to stop a process with'),
  }, async (t) => {
    const store = memory();
    const narrowest = { ...options, layout: narrow };
    // After each file that it creates, the last of which is the page.
    const delay = 'inject=renameat2:delay_exit=3000000';
    const under = ['strace', '-f', '-o', '/dev/null', '-e', 'trace=renameat2', '-e', delay];
    const elsewhere = { env: { SNOWDRIFT_SHARED: createDirectory() } };
    const [slow, quick, other] = await Promise.all([
      Sharer.start(store, { under }),
      Sharer.start(store),
      Sharer.start(store, elsewhere),
    ]);
    t.after(() => Promise.all([slow, quick, other].map((sharer) => sharer.kill())));
    const first = slow.lease({ ...narrowest, waitForSlot: 5000 }).catch(() => {});
    await until(() => pages().length > 0);
    await quick.lease(narrowest);
    await quick.close();
    // Refused while the slow one has the slot.
    await other.lease(narrowest).catch(() => {});
    await first;
    const drawn = await Promise.all([slow, other].map((sharer) => sharer.draw(200)));
    assertDistinct(drawn.flat());
    assert.ok(drawn.flat().length > 0);
  });

  test('a node that a host lease has is not opened beside it with scope process', async (t) => {
    const flake = await SnowFlake.lease(memory(), options);
    const state = mkdtempSync(join(tmpdir(), 'snowdrift-'));
    t.after(() => removeDirectory(state));
    const { workerId } = flake;
    const beside = { ...options, workerId, scope: 'process' };
    refuses(() => new SnowFlake({ ...beside, state }), 'ERR_SNOWFLAKE_CONFLICT');
    const filed = await SnowFlake.lease(pathToFileURL(state), { ...options, scope: 'process' });
    assert.notEqual(filed.workerId, workerId);
    await Promise.all([flake.close(), filed.close()]);
  });

  test('a deleted page issues nothing beside the node opened otherwise', async (t) => {
    const flake = await SnowFlake.lease(memory(), options);
    const { workerId } = flake;
    const other = await Sharer.start(memory());
    t.after(() => other.kill());
    deletePages();
    refuses(() => new SnowFlake({ ...options, workerId }), 'ERR_SNOWFLAKE_CONFLICT');
    await other.open({ ...options, workerId });
    // Draws in another process begin while this one is busy.
    const drawing = other.draw(150);
    const ids = drawByTurns([flake], 250);
    assertDistinct([...ids, ...(await drawing)]);
    await flake.close();
  });

  test('a deleted page issues nothing beside the same worker ID of another namespace', async (t) => {
    const patient = { ...PATIENT, layout: narrow };
    const one = await SnowFlake.lease(memory(), patient);
    const other = await Sharer.start(memory());
    t.after(() => Promise.all([one.close(), other.kill()]));
    await leaseAfter(deletePages, () => other.lease(patient));
    const drawing = other.draw(150);
    const ids = drawByTurns([one], 250);
    const drawn = await drawing;
    assert.ok(drawn.length > 0);
    assertDistinct([...ids, ...drawn]);
  });

  /** One worker ID, and few numbers. */
  const SCARCE = {
    ms: { ...layouts.node, datacenterBits: 0, workerBits: 0, sequenceBits: 1 },
    s: {
      ...layouts.uid,
      ...{ timestampBits: 32, workerBits: 0, sequenceBits: 4, epoch: 1580486400000 },
    },
  };

  for (const [unit, scarce] of Object.entries(SCARCE)) {
    for (const [n, stores] of [
      ['memory', 'memory'],
      ['file', 'memory'],
      ['memory', 'file'],
    ].entries()) {
      // A page of another namespace keeps the worker ID until its ceiling has passed. So each test has its own.
      const layout = { ...scarce, epoch: scarce.epoch + 1000 * n };
      const how = `ticks of a ${unit}, leases from ${stores.join(' and ')}`;
      test(`a removed directory repeats nothing that another namespace took ahead: ${how}`, {
        skip: (unit === 's' || stores[1] === 'file') && gate,
      }, async (t) => {
        const leased = { datacenterId: 0, layout, maxAhead: 60_000 };
        const directory = mkdtempSync(join(tmpdir(), 'snowdrift-'));
        const sharers = await Promise.all([Sharer.start(memory()), Sharer.start(memory())]);
        t.after(async () => {
          await Promise.all(sharers.map((sharer) => sharer.kill()));
          removeDirectory(directory);
        });
        /** Leases by a store of its own. Returns what draws some IDs. */
        const lease = async (store, sharer) => {
          if (store === 'memory') {
            await sharers[sharer].lease({ ...leased, ttl: 60_000, callTimeout: 60_000 });
            return () => sharers[sharer].draw(20);
          }
          const flake = await SnowFlake.lease(pathToFileURL(directory), leased);
          t.after(() => flake.close());
          return async () => drawByTurns([flake], 20);
        };
        const first = await lease(stores[0], 0);
        const ids = [];
        // Further than the next lease takes.
        const isFar = (id) => SnowFlake.parse(id, layout).timestamp > Date.now() + 10_000;
        do ids.push(...(await first()));
        while (ids.length === 0 || !isFar(ids.at(-1)));
        const home = dirname(pages()[0]);
        const second = await leaseAfter(
          () => removeDirectory(home),
          () => lease(stores[1], 1),
        );
        // A ceiling or a floor may be near: then it goes on soon.
        const before = ids.length;
        do ids.push(...(await second()));
        while (ids.length === before);
        assertDistinct(ids);
      });
    }
  }

  test('a lease whose floor is maxAhead ahead of the clock issues at once', async () => {
    // The first ID lies in the last tick that it may take. A lease waits until that is so.
    const layout = { ...SCARCE.s, epoch: SCARCE.s.epoch + 10_000 };
    const options = { ...PATIENT, datacenterId: 0, layout, maxAhead: 5500, maxWait: 0 };
    const flake = await SnowFlake.lease(memory(), options);
    const { timestamp } = flake.parse(flake.nextId());
    assert.ok(timestamp > Date.now() && timestamp <= Date.now() + options.maxAhead, `${timestamp}`);
    await flake.close();
  });

  test('a page of a slot of a copied database is not joined', async (t) => {
    const production = new Map();
    const short = { ...PATIENT, ttl: 1000, maxClockSkew: 200 };
    const first = await SnowFlake.lease(memory({ stored: production }), short);
    await first.close();
    const staging = new Map(production);
    const elsewhere = { env: { SNOWDRIFT_SHARED: createDirectory() } };
    const [other, here] = await Promise.all([
      Sharer.start(memory({ stored: production }), elsewhere),
      Sharer.start(memory({ stored: production })),
    ]);
    t.after(() => Promise.all([other.kill(), here.kill()]));
    const { slot } = await other.lease(short);
    const { workerId } = slot;
    const trial = await SnowFlake.lease(memory({ stored: staging }), { ...short, workerId });
    const { owner } = trial.lease;
    const own = await here.lease(short);
    assert.notEqual(own.owner, owner);
    assert.ok(![workerId, trial.workerId].includes(own.slot.workerId));
    assert.deepEqual([trial.lease.owner, trial.lease.lost], [owner, undefined], 'it is not taken');
    await trial.close();
    const drawn = await Promise.all([here, other].map((sharer) => sharer.draw(100)));
    assertDistinct(drawn.flat());
  });

  test('a process on a copied store neither renews the page of the store nor ends it', async (t) => {
    // As by a snapshot of the database: the same records, and so the same token in the slot that this host has.
    const [production, copy] = [new Map(), new Map()];
    const copied = faulty({ stored: copy });
    // For half a ttl nobody else ends its page: no busy machine stops the holder for so long.
    const short = { ...PATIENT, layout: narrow, ttl: 6000, maxClockSkew: 1000 };
    const elsewhere = { env: { SNOWDRIFT_SHARED: createDirectory() } };
    const [holder, trial, rival] = await Promise.all([
      Sharer.start(memory({ stored: production })),
      Sharer.start(copied),
      Sharer.start(memory({ stored: production }), elsewhere),
    ]);
    t.after(() => Promise.all([holder, trial, rival].map((sharer) => sharer.kill())));
    const { owner, slot, renewals } = await holder.lease(short);
    for (const [key, value] of production) copy.set(key, value);
    // Its page is that of the holder, until its store does not show a renewal.
    assert.equal((await trial.lease({ ...short, ttl: 1000 })).owner, owner);
    assertDistinct((await Promise.all([holder, trial].map((sharer) => sharer.draw(100)))).flat());
    await until(async () => (await trial.report()).lost === 'reverted');
    await until(async () => (await holder.report()).renewals > renewals + 3);
    assert.deepEqual(
      copied.calls.filter(({ does }) => ['take', 'renew', 'release'].includes(does)),
      [],
    );
    // The slot is still this host's, by production: another host does not get it after a ttl.
    await rejects(rival.lease(short), 'ERR_SNOWFLAKE_NO_SLOT');
    const { state, ...lease } = await holder.report();
    assert.deepEqual([state, lease.owner, lease.slot], ['held', owner, slot]);
  });

  const HOUR_MS = 3_600_000;
  for (const [ticks, layout, [maxAhead, openedAhead], count] of [
    [
      'of a second',
      { ...layouts.uid, workerBits: 10, timestampBits: 31, epoch: 1580486400000 },
      [0, 0],
      1000,
    ],
    ['issued ahead', { ...layouts.node, sequenceBits: 4 }, [HOUR_MS, 0], 1600],
    ['issued ahead, and a record', { ...layouts.node, sequenceBits: 5 }, [HOUR_MS, HOUR_MS], 3200],
  ]) {
    test(`a slot that was released is remembered on this host: ticks ${ticks}`, async (t) => {
      const leased = { datacenterId: 0, layout, maxAhead };
      const state = mkdtempSync(join(tmpdir(), 'snowdrift-'));
      t.after(() => removeDirectory(state));
      const flake = await SnowFlake.lease(memory(), leased);
      const { workerId } = flake;
      const ids = [...flake.nextIds(count)];
      await flake.close();
      const opened = { ...leased, workerId, maxWait: 0, maxAhead: openedAhead };
      if (openedAhead > 0) opened.state = state;
      const other = await Sharer.start(memory());
      t.after(() => other.kill());
      await other.open(opened);
      ids.push(...(await other.draw(20)));
      const here = new SnowFlake(opened);
      try {
        ids.push(...here.nextIds(100));
      } catch ({ code }) {
        // Until the clock has passed what was issued.
        assert.ok(['ERR_SNOWFLAKE_WINDOW', 'ERR_SNOWFLAKE_EXHAUSTED'].includes(code), code);
      }
      here.close();
      assertDistinct(ids);
    });
  }

  for (const state of [false, true]) {
    const how = state ? 'with state' : 'without state';
    test(`a deleted page is remembered on this host: the node opened ${how}`, {
      skip: state && gate,
    }, async (t) => {
      const second = { ...layouts.uid, workerBits: 10, timestampBits: 31, epoch: 1580486400000 };
      // A node of this test alone: one that was never opened has no page, nor ever had.
      const layout = { ...second, epoch: second.epoch + 1000 * (1 + Number(state)) };
      const leased = { datacenterId: 0, layout };
      const directory = mkdtempSync(join(tmpdir(), 'snowdrift-'));
      t.after(() => removeDirectory(directory));
      const other = await Sharer.start(memory());
      t.after(() => other.kill());
      await sleep(1000 - (Date.now() % 1000));
      const flake = await SnowFlake.lease(memory(), leased);
      const { workerId } = flake;
      const ids = [...flake.nextIds(1000)];
      deletePages();
      await flake.close();
      const opened = { ...leased, workerId, maxWait: 0, ...(state ? { state: directory } : {}) };
      const here = new SnowFlake(opened);
      try {
        ids.push(...here.nextIds(100));
      } catch ({ code }) {
        assert.ok(['ERR_SNOWFLAKE_WINDOW', 'ERR_SNOWFLAKE_EXHAUSTED'].includes(code), code);
      }
      await here.close();
      await other.open(opened);
      ids.push(...(await other.draw(20)));
      assertDistinct(ids);
    });
  }
});

describe('a slot that is lost', TEST, () => {
  test('no process of the host takes a slot of a store that went back before the floor is raised', async (t) => {
    const layout = { ...layouts.node, workerBits: 1 };
    const time = new LeaseTime();
    t.after(() => time.end());
    const terms = { ...PATIENT, layout, ttl: 3000 };
    const one = faulty();
    const two = faulty({ stored: one.stored });
    const flakes = [];
    for (const store of [one, two]) flakes.push(await time.run(SnowFlake.lease(store, terms)));
    const { owner, slot, renewals } = flakes[0].lease;
    assert.equal(flakes[1].lease.owner, owner);
    const backup = new Map(one.stored);
    await time.until(() => flakes[0].lease.renewals > renewals);
    const { ceiling } = flakes[0].lease;
    const floors = [];
    for (const store of [one, two]) {
      store.fault = (call) => {
        // A renewal of the slot that somebody has by now changes nothing.
        if (call.does !== 'take' || call.owner === owner) return;
        floors.push(one.namespace.floor);
      };
    }
    // A backup was restored, and somebody has the slot by it.
    one.restore(backup);
    one.steal(slot.workerId, { now: time.now() });
    await time.until(() =>
      flakes.every(({ lease }) => lease.state === 'held' && lease.owner !== owner),
    );
    assert.ok(floors.length > 0);
    const least = ceiling - layout.epoch;
    assert.ok(
      floors.every((floor) => floor >= least),
      `${floors}: a slot is taken of a restored namespace before its floor is above what was issued`,
    );
    await time.run(Promise.all(flakes.map((flake) => flake.close())));
  });

  test('ZooKeeper keeps the slot when the process that acquired it closes', {
    skip: missing('zookeeper') ?? storm,
    timeout: 300_000,
  }, async (t) => {
    const server = await Server.start('zookeeper');
    t.after(() => server.stop());
    const { connect } = require('../../js/stores/connect.js');
    const leased = { ...options, layout: narrow, ttl: 10_000, callTimeout: 60_000 };
    const [one, two] = await Promise.all(
      [0, 1].map(async () => await connect(new URL(server.url))),
    );
    const first = await SnowFlake.lease(one, leased);
    const second = await SnowFlake.lease(two, leased);
    t.after(() => second.close());
    const { owner } = second.lease;
    await first.close();
    const env = { SNOWDRIFT_SHARED: createDirectory() };
    const script = `
      const { SnowFlake } = require('../..');
      SnowFlake.lease(${JSON.stringify(server.url)}, ${JSON.stringify({ ...leased, waitForSlot: 3000 })})
        .then(() => console.log('taken'), ({ code }) => console.log(code)).then(() => process.exit());`;
    const other = await runScript(script, { env });
    assert.equal(other.stdout.trim(), 'ERR_SNOWFLAKE_NO_SLOT');
    assert.deepEqual([second.lease.owner, second.lease.state], [owner, 'held']);
  });
});

test(
  'processes that start at once after all were killed join the page that is left',
  TEST,
  async (t) => {
    const store = memory();
    const { read } = store;
    let delay = 0;
    // They look at the page of before at one time.
    store.read = async (...values) => {
      await sleep(delay);
      return read(...values);
    };
    const start = () => Promise.all([0, 1, 2].map(() => Sharer.start(store)));
    const lease = (sharers) =>
      Promise.all(sharers.map((sharer) => sharer.lease({ ...PATIENT, layout: narrow })));
    const killed = await start();
    const [before] = await lease(killed);
    const ids = await Promise.all(killed.map((sharer) => sharer.draw(20)));
    await Promise.all(killed.map((sharer) => sharer.kill()));
    const sharers = await start();
    t.after(() => Promise.all(sharers.map((sharer) => sharer.kill())));
    delay = 50;
    const leases = await lease(sharers);
    // Nobody is left to show that the store is the page's own, and not a copy: one of them takes the line over later.
    assert.deepEqual(
      leases.map(({ owner }) => owner),
      Array(3).fill(before.owner),
    );
    ids.push(...(await Promise.all(sharers.map((sharer) => sharer.draw(20)))));
    assertDistinct(ids.flat());
  },
);

describe('a process that cannot share', TEST, () => {
  test('leases a slot of its own where it has the node open otherwise', async (t) => {
    const store = memory();
    const other = await Sharer.start(store);
    t.after(() => other.kill());
    const { slot } = await other.lease(PATIENT);
    const own = new SnowFlake({ ...options, workerId: slot.workerId, scope: 'process' });
    const flake = await SnowFlake.lease(store, PATIENT);
    assert.notEqual(flake.workerId, slot.workerId);
    own.close();
    await flake.close();
  });

  test('leases a slot of its own for a ring of another size', async () => {
    const store = memory();
    const small = await CachedSnowFlake.lease(store, { ...options, boostPower: 1 });
    const large = await CachedSnowFlake.lease(store, { ...options, boostPower: 2 });
    assertDistinct([...small.nextIds(1000), ...large.nextIds(1000)]);
    await Promise.all([small.close(), large.close()]);
  });

  test('a process without a free file descriptor does not take a page for missing', async (t) => {
    const store = memory();
    const other = await Sharer.start(store);
    t.after(() => other.kill());
    await other.lease(PATIENT);
    // By a copy, since it is the script's own.
    const stored = {};
    for (const key of ['namespace', '1/0']) {
      const { record } = await store.read(key, { signal: new AbortController().signal });
      stored[`default/${key}`] = `${record.token} ${record.text}`;
    }
    const script = `
      const fs = require('node:fs');
      const { SnowFlake } = require('../..');
      const { memory } = require('../../js/stores/memory.js');
      const store = memory({ stored: new Map(Object.entries(${JSON.stringify(stored)})) });
      const taken = [];
      let isLast = false;
      let count = 0;
      const { read, write } = store;
      store.read = async (...values) => {
        try {
          while (isLast) taken.push(fs.openSync('/dev/null'));
        } catch {}
        return read(...values);
      };
      store.write = async (...values) => {
        count++;
        while (taken.length > 0) fs.closeSync(taken.pop());
        return write(...values);
      };
      (async () => {
        // Loads all that a lease takes.
        const first = await SnowFlake.lease(memory(), { datacenterId: 2 });
        await first.close();
        isLast = true;
        const code = await SnowFlake.lease(store, { datacenterId: 1 }).then(() => 'leased', ({ code }) => code);
        console.log(count, code);
        process.exit();
      })();`;
    const child = spawn(
      'sh',
      ['-c', 'ulimit -n 128; exec "$0" -e "$1"', process.execPath, script],
      {
        cwd: __dirname,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [[printed]] = await Promise.all([once(child.stdout, 'data'), once(child, 'close')]);
    assert.equal(String(printed).trim(), '0 ERR_SNOWFLAKE_STORE', 'writes, and its end');
  });
});
