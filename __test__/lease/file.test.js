'use strict';
// Slots that are leased from a directory, by processes that share them. Who renews, takes over and gives up is tested in virtual
// time: src/registry/host/tests/directory.rs.

const assert = require('node:assert/strict');
const { mkdtempSync, readdirSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const nodeTest = require('node:test');
const { fileURLToPath, pathToFileURL } = require('node:url');

const { amount, storm } = require('../support/amount.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { readLine } = require('../support/lease/slot-file.js');
const { Peer, drawAll } = require('../support/peer.js');
const { SnowFlake, rejects, runWorker, entry } = require('../support/support.js');

const skip = process.platform !== 'linux' && 'tried on Linux, with its memory file system';
/** Longer than a busy machine stops a process. */
const TTL = 60_000;

/** A scene: `directory()` of slots, `host()` that starts processes which share pages. All end with it. */
function scene(name, body, why) {
  nodeTest.test(name, { skip: skip || why, timeout: 300_000 }, async () => {
    const peers = [];
    const directories = [];
    const directory = () => {
      directories.push(mkdtempSync(join(tmpdir(), 'snowdrift-lease-')));
      return pathToFileURL(directories.at(-1)).href;
    };
    const host = () => {
      const shared = createDirectory();
      const start = () => {
        peers.push(new Peer({ env: { SNOWDRIFT_SHARED: shared } }));
        return peers.at(-1);
      };
      return { start, files: () => pagesIn(shared) };
    };
    try {
      await body({ directory, host });
    } finally {
      await Promise.all(peers.map((peer) => peer.end()));
      for (const path of directories) removeDirectory(path);
    }
  });
}

/**
 * One that is a storm. Processes that lease at the same time wait 2 s for each other, and one that closes waits 1 s
 * for its page's end.
 */
function stormScene(name, body) {
  scene(name, body, storm);
}

/** Whether all slots of a directory are free. Their pages stay. */
function isFree(url) {
  const directory = fileURLToPath(url);
  const slots = readdirSync(directory).filter((name) => name.startsWith('datacenter-'));
  return slots.every((name) => readLine(join(directory, name))?.kind !== 'held');
}

/** The names of the pages in a host's directory, and of their markers. */
function pagesIn(shared) {
  const names = readdirSync(shared, { recursive: true });
  return names.filter((name) => /\.(page|born)$/.test(name));
}

/** Has a process lease its `flake`; answers its `lease`. */
function lease(peer, url, options) {
  return peer.run(
    async (scene, url, options) => {
      scene.flake = await scene.SnowFlake.lease(url, options);
      return scene.flake.lease;
    },
    url,
    { datacenterId: 1, ttl: TTL, ...options },
  );
}

const close = (peer) => peer.run((scene) => scene.flake.close());

/** What rejects in another process. */
const refusal = (promise) => promise.then(assert.fail, (error) => error);

stormScene(
  'processes that lease at the same moment, again and again, share one slot each time',
  async ({ directory, host }) => {
    const { start } = host();
    const peers = Array.from({ length: 4 }, start);
    for (let round = 0; round < 20; round++) {
      const url = directory();
      const moment = Date.now() + 20;
      const at = (scene, moment, url) => {
        while (Date.now() < moment);
        return scene.SnowFlake.lease(url, { datacenterId: 1 }).then((flake) => {
          scene.flake = flake;
          return flake.workerId;
        });
      };
      const workerIds = await Promise.all(peers.map((peer) => peer.run(at, moment, url)));
      assert.equal(new Set(workerIds).size, 1, `round ${round}: ${workerIds}`);
      const drawn = await drawAll(peers, 1);
      assert.equal(countDuplicatesOf(drawn), 0);
      await Promise.all(peers.map(close));
      assert.ok(isFree(url));
    }
  },
);

scene("scope 'process' takes a slot a call", async ({ directory, host }) => {
  const url = directory();
  const { start, files } = host();
  const [peer, other] = [start(), start()];
  const alone = { scope: 'process' };
  const leases = [
    await lease(peer, url),
    await lease(peer, url, alone),
    await lease(peer, url, alone),
  ];
  leases.push(await lease(other, url, alone), await lease(other, url));
  assert.deepEqual(
    leases.map(({ slot, scope }) => [slot.workerId, scope]),
    [
      [0, 'host'],
      [1, 'process'],
      [2, 'process'],
      [3, 'process'],
      [0, 'host'],
    ],
  );
  assert.equal(leases[1].renewer, undefined);
  assert.equal(files().length, 2);
});

scene(
  'processes with state and with a lease share a slot of the directory, and nobody else has its node',
  async ({ directory, host }) => {
    const url = directory();
    const { start } = host();
    const [one, other] = [start(), start()];
    const state = new URL(url).pathname;
    const claim = { datacenterId: 1, workerId: 0, state, ttl: TTL };
    await one.open(claim);
    assert.equal((await lease(other, url)).slot.workerId, 0);
    assert.equal(countDuplicatesOf(await drawAll([one, other])), 0);
    await close(one);
    assert.equal((await one.open(claim)).scope, 'host');
    assert.equal(countDuplicatesOf(await drawAll([one, other])), 0);
    await close(one);
    const { code, message } = await one.refusal({ datacenterId: 1, workerId: 0 });
    assert.equal(code, 'ERR_SNOWFLAKE_CONFLICT');
    assert.match(message, new RegExp(`worker-0\\.page is used .* by process ${other.pid},`));
    const ahead = await refusal(lease(one, url, { maxAhead: 7 }));
    assert.equal(ahead.code, 'ERR_SNOWFLAKE_CONFLICT');
    assert.match(
      ahead.message,
      new RegExp(`maxAhead is 7 ms in this process, and 0 ms .*such as process ${other.pid}:`),
    );
  },
);

stormScene(
  'threads, calls and the default instance of a process share it, too',
  async ({ directory }) => {
    const url = directory();
    const flakes = [];
    for (let n = 0; n < 3; n++) flakes.push(await SnowFlake.lease(url, { datacenterId: 1 }));
    const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { parentPort } = require('node:worker_threads');
    const ids = SnowFlake.nextIds(1000);
    parentPort.postMessage([SnowFlake.default.lease.slot.workerId, ids]);`;
    const env = { ...process.env, datacenterId: '1', SNOWDRIFT_LEASE: url };
    const answers = await Promise.all([0, 1].map(() => runWorker(script, { env })));
    assert.deepEqual(
      [...flakes, ...flakes].map(({ workerId }) => workerId),
      [0, 0, 0, 0, 0, 0],
    );
    assert.deepEqual(
      answers.map(([workerId]) => workerId),
      [0, 0],
    );
    const drawn = flakes.map((flake) => flake.nextIds(1000));
    assert.equal(countDuplicatesOf([...drawn, ...answers.map(([, ids]) => ids)]), 0);
    const { message } = await rejects(
      SnowFlake.lease(url, { datacenterId: 1, ttl: 2000 }),
      'ERR_SNOWFLAKE_CONFLICT',
    );
    assert.match(message, /open under a lease from file:.* with ttl 10000: pass the same scope/);
    await Promise.all(flakes.map((flake) => flake.close()));
    assert.ok(isFree(url));
  },
);

/** How often; 100,000 take six minutes. */
const TIMES = amount(40, 300);

scene('opens and closes leave a page for each slot, and nothing else', async ({ directory }) => {
  const [url, other] = [directory(), directory()];
  let page;
  for (let n = 0; n < TIMES; n++) {
    const options = { datacenterId: 1 + (n % 3), ttl: TTL };
    const flakes = [await SnowFlake.lease(n % 5 ? url : other, options)];
    if (n % 7 === 0) flakes.push(await SnowFlake.lease(url, options));
    for (const flake of flakes) flake.nextId();
    ({ page } = flakes[0].stats());
    for (const flake of flakes) await flake.close();
  }
  // The page of a slot stays: an old copy of the slot's file may be put back.
  const [pages, others] = [/\.(page|born)$/, ['README', 'leases.lock']];
  const names = readdirSync(dirname(page));
  assert.deepEqual(names.filter((name) => !pages.test(name)).sort(), others);
  const slots = [url, other].flatMap((one) => readdirSync(fileURLToPath(one))).sort();
  const nodes = new Set(slots.filter((name) => name.startsWith('datacenter-')));
  assert.deepEqual(names.filter((name) => name.endsWith('.page')).length, nodes.size);
});
