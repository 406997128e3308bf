'use strict';
// The commands of operators, on the real servers: what they record is what leases find.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const os = require('node:os');
const { after, before, describe, mock, test } = require('node:test');

const { isStorms, storm } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { Server, missing, unusual } = require('../support/lease/servers.js');
const { newToken, readText } = require('../support/lease/records.js');
const { connect } = require('../../js/stores/connect.js');
const { SnowFlake, layouts, rejects } = require('../support/support.js');

const TERMS = { ttl: 1000, maxClockSkew: 1000 };
const FLAGS = ['--ttl', '1000', '--max-clock-skew', '1000', '--max-ahead', '0'];

/** Of a holder that no busy machine is too late for. */
const LONG = 600_000;
const LONG_FLAGS = ['--ttl', String(LONG), ...FLAGS.slice(2)];

/** How far off a store's clock may be, with what is added for that. */
const SECOND = 1000;

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

let named = Promise.resolve();

/** Opens on a host of another name. One at a time: the name is the whole process's. */
function onHost(name, open) {
  const opened = named.then(async () => {
    const { mock: hostname } = mock.method(os, 'hostname', () => name);
    try {
      return await open();
    } finally {
      hostname.restore();
    }
  });
  named = opened.catch(() => {});
  return opened;
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
            /Check its name: this store has ([a-z]+, )*seen\. /,
          );
        }
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
            /^namespace +[0-9a-f]{16}\nlayout +41\/3\/5\/2\/12@1\+1580486400000\n/,
          );
          assert.match(stdout, /\nfloor +none\n\ndatacenter .*\n\d +\d+ +held /);
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
        assert.match(stdout, /the key 6\/0 is no record of this version/);
        assert.match(stdout, /the key 7\/0 has a line of workerId 1 that is damaged/);
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

      test('what a holder wrote is escaped where it is shown, and bounded', async () => {
        const url = urlOf('forged');
        const evil = `\x1b[2J\x9b31m\u202e\nheld\r${'x'.repeat(300)}`;
        const layout = { ...layouts.node, workerBits: 0, sequenceBits: 17 };
        await json('recover', url, '--new', ...LONG_FLAGS, '--layout', '41/3/0/2/17');
        const flake = await onHost(evil.slice(0, 250), () => lease(url, { layout, ttl: LONG }));
        // Its line has 64 bytes for a host, and no control character.
        const shown = '[2J31m\\u202eheldxxx';
        const isClean = (text) => assert.doesNotMatch(text, /(?!\n)\p{Cc}|\u202e/u);
        const error = await rejects(lease(url, { layout, ttl: LONG }), 'ERR_SNOWFLAKE_NO_SLOT');
        isClean(error.message);
        assert.doesNotMatch(error.message, /\n/);
        assert.ok(error.message.includes(shown), error.message);
        assert.ok(error.holders[0].host.startsWith(shown));
        const { stdout } = await runServed(['slots', url]);
        isClean(stdout);
        assert.match(stdout, /heldxxx/);
        const { slots } = await json('slots', url);
        assert.ok(slots[0].host.startsWith(shown) && slots[0].host.length < 200);
        await flake.close();
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

      test('limits rise with the holders that have higher ones', { skip: storm }, async () => {
        const url = urlOf('raised');
        await json('recover', url, '--new', ...FLAGS);
        (await lease(url, { ttl: 2000, maxAhead: 50 })).close();
        const { namespace } = await json('slots', url);
        const { ttl, maxClockSkew, maxAhead } = namespace;
        assert.deepEqual([ttl, maxClockSkew, maxAhead], [2000, 1000, 50]);
      });

      test('recover raises the floor of a namespace above what its holders can have issued', {
        skip: storm,
      }, async () => {
        const url = urlOf('lifted');
        await json('recover', url, '--new', ...FLAGS);
        const before = Date.now();
        const { floor, ttl } = await json('recover', url, '--ttl', '3000');
        const least = before + 3000 + 2000 - SECOND;
        // The command knows the store's clock to within the time that its call took.
        const took = Date.now() - before;
        const most = Date.now() + 5000 + SECOND + took;
        assert.ok(least <= floor && floor <= most, `${floor - before} ms, after ${took} ms`);
        assert.equal(ttl, 3000);
        await refused(['recover', url, '--layout', 'twitter'], /another layout or epoch/);
        const { stdout, stderr } = await runServed(['recover', url]);
        assert.match(stdout, /The first IDs have times after 20\d\d-/, stderr);
        const flake = await lease(url, { ttl: 3000 });
        assert.ok(flake.lease.floor >= floor);
        flake.close();
      });

      test('an unreachable server is an error without the password', async () => {
        const url = new URL(urlOf('away'));
        const [port] = url.port.split(',');
        url.port = port === '1' ? '2' : '1';
        if (engine !== 'etcd' && engine !== 'zookeeper') url.password = 'secret';
        const { code, stderr } = await run(['slots'], { env: { SNOWDRIFT_LEASE: url.href } });
        assert.equal(code, 1);
        assert.match(stderr, /^snowdrift: ERR_SNOWFLAKE_STORE: .*:1\b/);
        assert.ok(!stderr.includes('secret'));
      });
    });
  }

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
