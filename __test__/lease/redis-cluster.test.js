'use strict';
// Redis Cluster, of six processes: the contract with each client, hosts whose master is killed again and again, and a failover that
// loses what was confirmed.
//
//   TESTS=storms node --test __test__/lease/redis-cluster.test.js

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { redis } = require('../../js/stores/redis.js');
const { amount, storm } = require('../support/amount.js');
const { Drawer, countDuplicatesOf } = require('../support/drawer.js');
const { ofClient } = require('../support/lease/clients.js');
const { RedisCluster } = require('../support/lease/redis-cluster.js');
const { inTime } = require('../support/lease/rounds.js');
const { missing } = require('../support/lease/servers.js');
const { limitWait } = require('../support/limit-wait.js');
const { Machine, missing: noMachine } = require('../support/machine.js');
const { layouts, runScript } = require('../support/support.js');

const skip = missing('redis') ?? storm;
const ignore = () => {};

const CLIENTS = {
  'a Cluster of ioredis'({ urls }, namespace) {
    const client = new (require('ioredis').Cluster)(urls);
    client.on('error', ignore);
    return ofClient(redis(client, { namespace }), async () => client.disconnect());
  },

  async 'createCluster() of redis'({ urls }, namespace) {
    const client = require('redis').createCluster({ rootNodes: urls.map((url) => ({ url })) });
    client.on('error', ignore);
    await client.connect();
    return ofClient(redis(client, { namespace }), async () =>
      (client.destroy ?? client.disconnect).call(client),
    );
  },

  'a URL': ({ url }, namespace) => connect(new URL(`${url}&namespace=${namespace}`)),
};

describe('Redis Cluster', { skip, concurrency: 1 }, () => {
  let cluster;
  before(async () => {
    cluster = await RedisCluster.start();
  });
  after(() => cluster?.stop());

  for (const [name, open] of Object.entries(CLIENTS)) {
    registerContract(name, (namespace) => open(cluster, namespace), { limit: 240_000 });

    test(`${name}: writes again soon after the master of its namespace was killed`, async (t) => {
      const register = await open(cluster, 'default');
      const options = () => ({ signal: AbortSignal.timeout(1000) });
      const write = async (before) => {
        const token = require('node:crypto').randomBytes(8).toString('hex');
        const record = { token, text: 'x' };
        return { token, ...(await register.write('0/0', record, before, options())) };
      };
      const found = await register.read('0/0', options());
      let { token } = await write(found.record?.token);
      const start = performance.now();
      const killed = await cluster.failOver();
      const next = async () => {
        for (;;) {
          const reply = await write(token).catch(ignore);
          if (reply?.isWritten) return reply;
          // One whose reply was lost.
          const { record } = await register.read('0/0', options()).catch(() => ({}));
          if (record !== undefined) token = record.token;
          await sleep(50);
        }
      };
      await limitWait(next(), 'it writes', { ms: 60_000 });
      t.diagnostic(`after ${Math.round(performance.now() - start)} ms`);
      await cluster.rejoin(killed);
      await register.close();
    });

    test(`${name}: names the namespaces of all nodes`, async () => {
      const names = Array.from({ length: 8 }, (_, n) => `on-all-${n}`);
      const { signal } = new AbortController();
      for (const namespace of names) {
        const register = await open(cluster, namespace);
        const before = (await register.read('namespace', { signal })).record?.token;
        await register.write('namespace', { token: 'a'.repeat(16), text: 'x' }, before, { signal });
        await register.close();
      }
      const register = await open(cluster, 'default');
      // A lease has read its namespace before.
      await register.read('namespace', { signal });
      const found = await register.namespaces({ signal });
      await register.close();
      assert.deepEqual(found.filter((one) => names.includes(one)).sort(), names);
    });
  }
});

/** A process holds on for so long at most when nobody answers, ms, and for a busy machine. */
const END_MS = 4000 + 1500;

test('a process with a lease from a URL can end while all nodes of a cluster are silent', {
  skip,
}, async () => {
  const cluster = await RedisCluster.start();
  const script = `
    const options = { datacenterId: 1, ttl: 2000, maxClockSkew: 1000, callTimeout: 60_000 };
    require('../..').SnowFlake.lease('${cluster.url}', options).then(async (flake) => {
      for (const pid of ${JSON.stringify(cluster.pids)}) process.kill(pid, 'SIGSTOP');
      const start = performance.now();
      process.on('exit', () => console.log(Math.round(performance.now() - start)));
      await flake.close();
    });`;
  try {
    await inTime(END_MS, async () => {
      const { stdout, stderr } = await runScript(script);
      cluster.signal('SIGCONT');
      assert.match(stdout, /^\d+$/m, stderr);
      return Number(stdout);
    });
  } finally {
    await cluster.stop();
  }
});

const [TTL, SKEW, AHEAD, CALL] = [2000, 1500, 200, 500];

describe('hosts on Redis Cluster', { skip: skip ?? noMachine() }, () => {
  test('three hosts of three processes, whose master is killed: no ID twice, and all issue again', async (t) => {
    const cluster = await RedisCluster.start();
    const machines = Array.from({ length: 3 }, () => new Machine());
    const options = {
      ...{ engine: cluster.url, datacenterId: 1, ttl: TTL, maxClockSkew: SKEW, maxAhead: AHEAD },
      ...{ callTimeout: CALL, pause: 20 },
      layout: { ...layouts.node, datacenterBits: 5, workerBits: 2 },
    };
    const start = ({ env }) => new Drawer(options, env);
    const drawers = machines.flatMap((machine) => [1, 2, 3].map(() => start(machine)));
    const dead = [];
    const again = () =>
      Promise.all(drawers.map((drawer) => drawer.drawn(drawer.ids().length + 100)));
    const took = [];
    try {
      await again();
      for (let round = 0; round < amount(4, 4); round++) {
        // And one process.
        const n = round % drawers.length;
        drawers[n].kill('SIGKILL');
        dead.push(drawers[n]);
        drawers[n] = start(machines[Math.floor(n / 3)]);
        const killed = await cluster.failOver();
        const since = performance.now();
        await again();
        took.push(Math.round(performance.now() - since));
        await cluster.rejoin(killed);
        await sleep(TTL);
      }
    } finally {
      for (const drawer of drawers) drawer.kill('SIGKILL');
      await Promise.all(drawers.map(({ ended }) => ended));
      await cluster.stop();
      for (const machine of machines) machine.remove();
    }
    const drawn = [...drawers, ...dead].map((drawer) => drawer.ids());
    const count = drawn.reduce((sum, { length }) => sum + length, 0);
    t.diagnostic(`${count} IDs, all again ${took.join(', ')} ms after the failover`);
    assert.equal(countDuplicatesOf(drawn), 0);
  });
});
