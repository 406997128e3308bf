'use strict';
// The commands of operators, on the real servers: what they record is what leases find.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const { after, before, describe, test } = require('node:test');

const { gate, isStorms, storm } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { Server, missing, unusual } = require('../support/lease/servers.js');
const { newToken, readText } = require('../support/lease/records.js');
const { connect } = require('../../js/stores/connect.js');
const { SnowFlake } = require('../support/support.js');

const TERMS = { ttl: 1000, maxClockSkew: 1000 };

/** Of a holder that no busy machine is too late for. */
const LONG = 600_000;
const LONG_FLAGS = ['--ttl', String(LONG), '--max-clock-skew', '1000', '--max-ahead', '0'];

const KEY = '41/3/5/2/12@1+1580486400000';

/**
 * What the client of ZooKeeper says if the machine has stopped the server: it waits for half a ttl, and for 2 s at
 * most. Then what a command says, which waits for 10 s.
 */
const STOPPED = /no response from connection|TimedOut|SessionExpired|did not answer within/;
const TRIES = 20;

/** Runs a command, again while the machine stops the server. */
async function runServed(args, options) {
  for (let tries = 1; ; tries++) {
    const answer = await run(args, options);
    if (tries === TRIES || !STOPPED.test(answer.stderr)) return { ...answer, tries };
  }
}

/** What a command prints with --json. */
async function json(...args) {
  const { stdout, stderr, code, tries } = await runServed([...args, '--json']);
  const [, url, flag] = args;
  // Its first try may have created it, and lost the reply.
  const hasCreated = flag === '--new' && tries > 1 && /exists already/.test(stderr);
  if (hasCreated) return (await json('slots', url)).namespace;
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

/** Leases, again while the machine stops the server. */
async function leaseServed(url, options) {
  for (let tries = 1; ; tries++) {
    try {
      return await SnowFlake.lease(url, options);
    } catch (error) {
      if (tries === TRIES || !STOPPED.test(error.message)) throw error;
    }
  }
}

async function refused(args, said, command = runServed) {
  const { code, stdout, stderr } = await command(args);
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.match(stderr, /^snowdrift: ERR_SNOWFLAKE_STORE: /);
  assert.match(stderr, said);
}

// Side by side: they mostly wait for moments to come. Nodes of all of them are this process's.
describe('operators', { concurrency: 3 }, () => {
  for (const [index, engine] of ['postgres', 'mysql', 'redis', 'etcd', 'zookeeper'].entries()) {
    describe(engine, { skip: unusual(engine), concurrency: 1 }, () => {
      const datacenterId = index;
      let server;
      before(async () => {
        server = await Server.start(engine);
      });
      after(() => server?.stop());

      const urlOf = (namespace) => `${server.url}?namespace=${namespace}`;
      const lease = (url, options) =>
        leaseServed(url, {
          datacenterId,
          scope: 'process',
          maxWait: 1000,
          callTimeout: 60_000,
          ...TERMS,
          ...options,
        });

      test('slots shows the record of the namespace above its slots', async () => {
        const url = urlOf('seen');
        await json('recover', url, '--new', ...LONG_FLAGS);
        // Named by a store in which others have namespaces, and a misspelled name is none of them.
        for (const name of ['sean', 'sen']) {
          await refused(
            ['slots', urlOf(name)],
            /Check its name( and schema)?: this store has ([a-z]+, )*seen\. /,
          );
        }
        const values = [...LONG_FLAGS, '--layout', 'node'];
        await refused(['recover', urlOf('sean'), ...values], /this store has .*pass --lost\. /);
        await refused(['slots', urlOf('sean')], /no record/);
        const flake = await lease(url, { ttl: LONG });
        try {
          const { ceiling } = flake.lease;
          const { namespace, slots } = await json('slots', url);
          const { id, ...rest } = namespace;
          assert.match(id, /^[0-9a-f]{16}$/);
          assert.deepEqual(rest, { layout: KEY, ...TERMS, ttl: LONG, maxAhead: 0, floor: null });
          const [slot, ...others] = slots;
          assert.deepEqual(
            [slot.datacenterId, slot.workerId, slot.state, slot.pid, others.length],
            [datacenterId, flake.workerId, 'held', process.pid, 0],
          );
          const apart = slot.ceiling - ceiling;
          if (isStorms) assert.ok(Math.abs(apart) <= 2000, `${apart} ms`);
          const env = { SNOWDRIFT_LEASE: url };
          const { stdout, code } = await runServed(['slots'], { env });
          assert.equal(code, 0);
          assert.match(
            stdout,
            /^store .*seen.*\nnamespace ID +[0-9a-f]{16}\nlayout +node \(41\/3\/5\/2\/12@1\+1580486400000\)\n/,
          );
          assert.match(stdout, /\nfloor +none\n\ndatacenter .*\n\d +\d+ +held .* in \d+ (s|min)\n/);
          assert.match(stdout, /\nHeld worker IDs: 1 of 32 in datacenter \d\n$/);
        } finally {
          await flake[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
        }
      });

      test('slots names the records that nobody can read, and shows the others', async () => {
        const url = urlOf('damaged');
        await json('recover', url, '--new', ...LONG_FLAGS);
        const flake = await lease(url, { ttl: LONG });
        const register = await connect(new URL(url));
        const { signal } = new AbortController();
        const read = async (key) => (await register.read(key, { signal })).record;
        const write = async (key, text) => {
          const { token } = (await read(key)) ?? {};
          await register.write(key, { token: newToken(), text }, token, { signal });
        };
        const { text, size } = await read('namespace').then((record) => ({
          ...readText(record.text),
          ...record,
        }));
        const bucket = Math.floor(flake.workerId / size);
        const { text: own } = await read(`${datacenterId}/${bucket}`);
        // Of other datacenters, so that nobody has them.
        await write('6/0', 'snowdrift9 bucket');
        // With a ceiling of a day in another century.
        const line = /\n(.*)$/.exec(own)[1].replace(/^\d+((?: \S+){4}) \d+/, `2$1 ${2 ** 40}`);
        await write('7/0', `${own.split('\n')[0]}\n1 damaged\n${line}`);
        await write('namespace', `${text} ${size === 32 ? '6-7' : '24 28'}`);
        const { namespace, slots } = await json('slots', url);
        assert.equal(namespace.ttl, LONG);
        const shown = slots.map((slot) => [slot.datacenterId, slot.workerId, slot.state]);
        assert.deepEqual(shown, [
          [datacenterId, flake.workerId, 'held'],
          [6, undefined, 'unusable'],
          [7, 1, 'unusable'],
          [7, 2, 'unusable'],
        ]);
        const { stdout, code } = await runServed(['slots', url]);
        assert.equal(code, 0);
        assert.match(
          stdout,
          /\nunusable: datacenter 6, .*the key 6\/0 is no record of this version/,
        );
        assert.match(
          stdout,
          /\nunusable: datacenter 7, worker 1, .*the key 7\/0 has a line of workerId 1 that is damaged/,
        );
        assert.match(stdout, /workerId 2 that has a ceiling that no holder can have: 20/);
        await flake.close();
        const { replaced, unusable } = await json('recover', url);
        assert.deepEqual(replaced, ['the line of workerId 1 in the record 7/0']);
        assert.deepEqual([unusable.length, unusable.join().match(/[67]\/0/g)], [2, ['6/0', '7/0']]);
        await write('namespace', 'snowdrift9 namespace');
        await register.close();
        const seen = await json('slots', url);
        assert.deepEqual([Object.keys(seen.namespace), seen.slots.length], [['fault'], 3]);
        const { stdout: last } = await runServed(['slots', url]);
        assert.match(last, /the key namespace is no record of this version/);
        await refused(['recover', url], /another format: the key namespace/);
        await refused(['recover', url, '--new'], /exists already: /);
      });

      test('recover --new creates once, and the first holder does not wait', async () => {
        const url = urlOf('ahead');
        const ttl = ['--ttl', String(LONG)];
        const created = await json('recover', url, '--new', ...ttl, '--layout', 'twitter');
        assert.deepEqual(
          [created.layout, created.ttl, created.floor],
          ['41/5/5/0/12@1+1288834974657', LONG, null],
        );
        await refused(['recover', url, '--new'], new RegExp(`exists already.*${created.id}`));
        const started = Date.now();
        const flake = await lease(url, { layout: 'twitter', ttl: LONG });
        flake.nextId();
        assert.ok(Date.now() - started < LONG / 3, 'far less than its ttl');
        assert.equal(flake.lease.floor, null);
        flake.close();
        const { namespace } = await json('slots', url);
        assert.deepEqual(namespace, created);
      });
    });
  }

  test('recover of the wrong schema is refused, and names those that have leases', {
    skip: gate ?? missing('postgres'),
  }, async () => {
    const server = await Server.start('postgres');
    try {
      const client = new (require('pg').Client)(server.url);
      await client.connect();
      await client.query('CREATE SCHEMA ids');
      const inIds = `${server.url}?schema=ids`;
      await json('recover', inIds, '--new');
      const said = /Check its name and schema: this store has schema ids\. .* --lost/;
      await refused(['recover', server.url], said);
      const values = ['--layout', 'node', ...LONG_FLAGS];
      await refused(['recover', server.url, ...values], said);
      const { rows } = await client.query("SELECT to_regclass('public.snowdrift_records') AS made");
      await client.end();
      assert.equal(rows[0].made, null, 'no table was created');
      const { floor } = await json('recover', server.url, '--lost', ...values);
      assert.ok(floor > Date.now());
      const { namespace } = await json('slots', inIds);
      assert.equal(namespace.floor, null);
    } finally {
      await server.stop();
    }
  });

  test('a call to a silent server ends', { skip: storm ?? missing('postgres') }, async () => {
    const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    try {
      const url = `postgres://user@127.0.0.1:${silent.address().port}/db`;
      await refused(['recover', url], /did not answer within 10000 ms/, run);
    } finally {
      silent.close();
    }
  });
});
