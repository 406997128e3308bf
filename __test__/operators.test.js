'use strict';
// The commands of operators, on the real servers: what they record is what leases find.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { Drawer } = require('./drawer.js');
const { deleteNamespace } = require('./lease/namespaces.js');
const { Server, missing } = require('./lease/servers.js');
const { SnowFlake, countDuplicates, layouts, rejects } = require('./support.js');

const MAIN = join(__dirname, '..', 'js', 'cli', 'main.js');
const TERMS = { ttl: 1000, maxClockSkew: 1000 };
const FLAGS = ['--ttl', '1000', '--max-clock-skew', '1000', '--max-ahead', '0'];

/** How far off a store's clock may be, with what is added for that. */
const SECOND = 1000;

const KEY = '41/3/5/2/12@1+1580486400000';

/** Runs a command. Its URL comes by the environment if it is not among `args`. */
async function run(args, url) {
  const { SNOWDRIFT_LEASE, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: url === undefined ? env : { ...env, SNOWDRIFT_LEASE: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...output };
}

async function json(...args) {
  const { code, stdout, stderr } = await run([...args, '--json']);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

async function refused(args, said, url) {
  const { code, stdout, stderr } = await run(args, url);
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.match(stderr, /^snowdrift: ERR_SNOWFLAKE_STORE: /);
  assert.match(stderr, said);
}

for (const engine of ['postgres', 'mysql', 'redis', 'etcd', 'zookeeper']) {
  describe(engine, { skip: missing(engine) }, () => {
    let server;
    before(async () => {
      server = await Server.start(engine);
    });
    after(() => server?.stop());

    const urlOf = (namespace) => `${server.url}?namespace=${namespace}`;
    const lease = (url, options) =>
      SnowFlake.lease(url, { datacenterId: 2, maxWait: 1000, ...TERMS, ...options });

    test('slots shows the record of the namespace above its slots', async () => {
      const url = urlOf('seen');
      assert.deepEqual(await json('slots', url), { namespace: null, slots: [] });
      await json('create', url, '--new', ...FLAGS);
      const flake = await lease(url);
      try {
        const { namespace, slots } = await json('slots', url);
        const { id, ...rest } = namespace;
        assert.match(id, /^[0-9a-f]{32}$/);
        assert.deepEqual(rest, { layout: KEY, ...TERMS, maxAhead: 0, floor: null });
        const [slot, ...others] = slots;
        assert.deepEqual(
          [slot.datacenterId, slot.workerId, slot.state, slot.pid, others.length],
          [2, flake.workerId, 'held', process.pid, 0],
        );
        assert.ok(Math.abs(slot.ceiling - flake.lease.ceiling) <= 2 * TERMS.ttl);
        const { stdout, code } = await run(['slots'], url);
        assert.equal(code, 0);
        assert.match(
          stdout,
          /^namespace +[0-9a-f]{32}\nlayout +41\/3\/5\/2\/12@1\+1580486400000\n/,
        );
        assert.match(stdout, /\nfloor +none\n\ndatacenter .*\n2 +\d+ +held /);
      } finally {
        await flake[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
      }
    });

    test('create creates once, and its first holder does not wait', async () => {
      const url = urlOf('ahead');
      const created = await json('create', url, '--new', '--ttl', '60000', '--layout', 'twitter');
      assert.deepEqual(
        [created.layout, created.ttl, created.floor],
        ['41/5/5/0/12@1+1288834974657', 60_000, null],
      );
      await refused(['create', url, '--new'], new RegExp(`is there already.*${created.id}`));
      const started = Date.now();
      const flake = await lease(url, { layout: 'twitter', ttl: 60_000 });
      flake.nextId();
      assert.ok(Date.now() - started < 10_000, 'far less than its ttl');
      assert.equal(flake.lease.floor, null);
      flake.close();
      const { namespace } = await json('slots', url);
      assert.deepEqual(namespace, created);
    });

    test('raise raises what holders may have, and lowers nothing', async () => {
      const url = urlOf('raised');
      await refused(['raise', url, '--ttl', '5000'], /no record of a namespace/);
      await json('create', url, '--new', ...FLAGS);
      const { message } = await rejects(lease(url, { ttl: 2000 }), 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, /snowdrift raise URL --ttl 2000/);
      const raised = await json('raise', url, '--ttl', '2000', '--max-ahead', '50');
      assert.deepEqual([raised.ttl, raised.maxClockSkew, raised.maxAhead], [2000, 1000, 50]);
      (await lease(url, { ttl: 2000, maxAhead: 50 })).close();
      const { stdout } = await run(['raise', url, '--ttl', '1000', '--max-clock-skew', '1300']);
      assert.match(stdout, /\nttl +2000 ms\nmaxClockSkew +1300 ms\n.*ttl stays 2000 ms/s);
    });

    test('recover lifts the floor of a namespace above what its holders can have issued', async () => {
      const url = urlOf('lifted');
      await json('create', url, '--new', ...FLAGS);
      const before = Date.now();
      const { floor, ttl } = await json('recover', url, '--ttl', '3000');
      const least = before + 3000 + 1000 - SECOND;
      assert.ok(least <= floor && floor <= Date.now() + 4000 + SECOND, `${floor - before}`);
      assert.equal(ttl, 3000);
      await refused(['recover', url, '--layout', 'twitter'], /another layout or epoch/);
      const { stdout } = await run(['recover', url]);
      assert.match(stdout, /The first IDs have times after 20\d\d-/);
      const flake = await lease(url, { ttl: 3000 });
      assert.ok(flake.lease.floor >= floor);
      flake.close();
    });

    test('where the record is gone, recover creates it above all that its holders had', async () => {
      const url = urlOf('gone');
      const layout = { ...layouts.node, workerBits: 0 };
      const bits = ['--layout', '41/3/0/2/12'];
      await json('create', url, '--new', ...FLAGS, ...bits);
      const options = { engine: url, datacenterId: 2, layout, ...TERMS };
      const holder = new Drawer(options);
      await holder.drawn(500);
      const { lease: last } = await holder.opened();
      holder.kill('SIGKILL');
      await holder.ended;
      await deleteNamespace(server, 'gone');
      await refused(['recover', url], /--layout, --ttl, --max-clock-skew, --max-ahead/);
      await refused(['recover', url, ...FLAGS], /what its holders had: --layout;/);
      const { floor } = await json('recover', url, ...FLAGS, ...bits);
      assert.ok(floor >= last.ceiling);
      const next = await lease(url, { layout });
      assert.ok(next.lease.floor >= floor, `${next.lease.floor} of ${floor}`);
      const ids = [...holder.ids(), ...next.nextIds(500)];
      next.close();
      assert.equal(countDuplicates(ids), 0);
    });

    test('a server that is away is said, without the password', async () => {
      const url = new URL(urlOf('away'));
      const [port] = url.port.split(',');
      url.port = port === '1' ? '2' : '1';
      if (engine !== 'etcd' && engine !== 'zookeeper') url.password = 'secret';
      const { code, stderr } = await run(['slots'], url.href);
      assert.equal(code, 1);
      assert.match(stderr, /^snowdrift: ERR_SNOWFLAKE_STORE: .*:1\b/);
      assert.ok(!stderr.includes('secret'));
    });
  });
}

test('a server that stays silent is given up', { skip: missing('postgres') }, async () => {
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  try {
    const url = `postgres://user:secret@127.0.0.1:${silent.address().port}/db`;
    await refused(['recover', url], /did not answer within 10000 ms/);
  } finally {
    silent.close();
  }
});
