'use strict';
// Draws in every way, and prints what came of it, as JSON. Run as a user's application, by each runtime
// and as each package manager has installed it.

const http = require('node:http');
const { join } = require('node:path');
const { Worker } = require('node:worker_threads');

const COUNT = 20_000;
const NODE = { datacenterId: 1, workerId: 0 };

/** A sequence that is no limit. */
const WIDE = {
  timestampBits: 41,
  datacenterBits: 1,
  workerBits: 1,
  clockBackBits: 0,
  sequenceBits: 20,
  tickMs: 1,
  epoch: 1580486400000,
};

const times = (count, call) => Array.from({ length: count }, call);

/** Which entries there are, and what those say that miss a package. */
async function loadEntries(load) {
  const entries = {};
  for (const name of Object.keys(require('snowdrift/package.json').exports)) {
    if (name === './package.json') continue;
    try {
      const found = await load(`snowdrift${name.slice(1)}`);
      entries[name] = Object.keys(found).filter((key) => !/default|module.exports/.test(key));
    } catch ({ code, message }) {
      entries[name] = `${code}: ${message}`;
    }
  }
  return entries;
}

function drawInThread() {
  return new Promise((resolve, reject) => {
    const thread = new Worker(join(__dirname, 'thread.cjs'), {
      workerData: { node: NODE, count: COUNT },
    });
    thread.on('message', resolve).on('error', reject);
  });
}

async function drawAll({ CachedSnowFlake, SnowFlake }, { memory }) {
  const threads = [drawInThread(), drawInThread()];
  const flake = new SnowFlake(NODE);
  const cached = new CachedSnowFlake(NODE);
  const leased = await SnowFlake.lease(memory(), { datacenterId: 2 });
  const ids = [];
  for (const from of [flake, cached, leased]) {
    ids.push(
      ...times(COUNT, from.nextId),
      ...times(COUNT, from.nextIdString).map(BigInt),
      ...from.nextIds(COUNT),
      ...from.nextIdStrings(COUNT).map(BigInt),
      ...(await Promise.all(times(100, () => from.nextIdAsync()))),
    );
  }
  for (const drawn of await Promise.all(threads)) ids.push(...drawn);
  const parsed = flake.parse(String(ids[0]));
  flake.close();
  cached.close();
  await leased[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
  return {
    drawn: ids.length,
    different: new Set(ids).size,
    types: [...new Set(ids.map((id) => typeof id))],
    node: [parsed.datacenterId, parsed.workerId],
    state: leased.lease.state,
  };
}

/** The first and the last ID of a slot that a directory keeps. */
async function drawRecorded({ SnowFlake }) {
  const state = join(process.cwd(), 'state');
  const flake = new SnowFlake({ datacenterId: 1, workerId: 3, state });
  const ids = times(COUNT, flake.nextId);
  flake.close();
  const leased = await SnowFlake.lease(`file://${state}`, { datacenterId: 1 });
  ids.push(leased.nextId());
  leased.close();
  return { first: String(ids[0]), last: String(ids.at(-1)), rises: ids.every(isAbove(ids)) };
}

const isAbove = (ids) => (id, i) => i === 0 || id > ids[i - 1];

/** After which ways to pass a turn an ID is older than that. There should be none. */
async function staleAfter({ SnowFlake }) {
  const flake = new SnowFlake({ layout: WIDE, datacenterId: 1, workerId: 1 });
  const leaveAnOldBlock = () => {
    for (let i = 0; i < 700; i++) flake.nextId();
    const start = Date.now();
    while (Date.now() < start + 3);
  };
  const drawnAt = () => flake.parse(flake.nextId()).timestamp;
  const isStale = () => {
    const before = Date.now();
    return drawnAt() < before;
  };
  const server = http.createServer((_, response) => {
    const before = Date.now();
    const time = drawnAt();
    leaveAnOldBlock();
    response.end(JSON.stringify({ time, isStale: time < before }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const ways = {
    await: async () => {
      await undefined;
    },
    timer: () => new Promise((resolve) => setTimeout(resolve, 0)),
    immediate: () => new Promise((resolve) => setImmediate(resolve)),
    tick: () => new Promise((resolve) => process.nextTick(resolve)),
    message: () =>
      new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
          port1.close();
          resolve();
        };
        port2.postMessage(1);
      }),
  };
  const stale = new Set();
  for (const [way, pass] of Object.entries(ways)) {
    for (let round = 0; round < 20; round++) {
      leaveAnOldBlock();
      await pass();
      if (isStale()) stale.add(way);
    }
  }
  // Of requests that come together: an ID that is older than the request, or than its handler.
  for (let round = 0; round < 20; round++) {
    const sent = Date.now();
    const answers = await Promise.all(times(4, async () => (await fetch(url)).json()));
    if (answers.some(({ time }) => time < sent)) stale.add('request');
    if (answers.some((answer) => answer.isStale)) stale.add('handler');
  }
  server.closeAllConnections?.();
  server.close();
  return [...stale];
}

/** What a lease from a URL says whose client is not installed. */
async function askFor({ SnowFlake }, url) {
  try {
    await SnowFlake.lease(url, { datacenterId: 1 });
  } catch ({ name, code, message }) {
    return `${name} ${code}: ${message}`;
  }
  return 'nothing';
}

async function draw(load) {
  const snowdrift = await load('snowdrift');
  const clients = ['postgres', 'mysql', 'redis', 'zookeeper'];
  const said = await Promise.all(
    clients.map((scheme) => askFor(snowdrift, `${scheme}://127.0.0.1:1`)),
  );
  const report = {
    entries: await loadEntries(load),
    all: await drawAll(snowdrift, await load('snowdrift/lease/memory')),
    recorded: await drawRecorded(snowdrift),
    stale: await staleAfter(snowdrift),
    said,
  };
  console.log(JSON.stringify(report));
}

module.exports = { draw };
