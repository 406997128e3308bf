'use strict';
// Connections that break after some bytes of the server: by silence, a reset, an end, or bytes that are no reply. No
// event, exception or rejection of a client ends the process. A lease is held or refused, and the next one works.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { amount, gate, isStorms, seed, storm } = require('../support/amount.js');
const { lieAboutBytes, unparsable } = require('../support/lease/liar.js');
const { Server, missing } = require('../support/lease/servers.js');
const { runScript, until } = require('../support/support.js');

/** For each: the options of a URL with TLS, and the clients of applications. */
const ENGINES = {
  postgres: { options: '?sslmode=verify-full', clients: ['pg.Pool'] },
  mysql: { options: '?ssl={}', clients: ['mysql2 pool'] },
  redis: { options: '', clients: ['ioredis', 'redis'] },
  // Its driver loops for ever over a reply of 0 bytes: docs/store-security.md says so.
  mongodb: { clients: ['MongoClient'], ways: ['stall', 'reset', 'end'] },
  etcd: { options: '', clients: [] },
  zookeeper: { clients: [] },
};

const WAYS = ['stall', 'reset', 'end', 'garbage'];

/** How far a lease comes: it gets fewer bytes. */
const MOST_BYTES = 8000;
/** Of the gate: in MySQL's greeting and at its end, in the handshake of TLS, in replies. */
const SOME_BYTES = [0, 1, 4, 5, 9, 40, 90, 95, 110, 500, 1300, 1500, 1700, 2500, 5000];

const SCRIPT = `require(${JSON.stringify(require.resolve('../support/lease/broken.js'))})`;

for (const [engine, { options, clients, ways = WAYS }] of Object.entries(ENGINES)) {
  for (const tls of [false, true]) {
    // ZooKeeper's client is not of Node: zookeeper-tls.test.js has its TLS.
    if (tls && options === undefined) continue;
    const isUsual = engine === 'mysql' ? tls : ['postgres', 'redis'].includes(engine) && !tls;
    const skip = missing(engine) ?? (isUsual ? engine === 'mysql' && gate : storm);
    describe(`${engine}${tls ? ' by TLS' : ''}`, { skip, concurrency: isStorms ? 1 : 2 }, () => {
      let server;
      before(async () => {
        server = await Server.start(engine, { tls });
        // It listens before it serves.
        if (tls) await until(async () => (await leases('url', 'stall', [])).afterwards === 'held');
      });
      after(() => server?.stop());

      const leases = async (client, how, bytes) => {
        const { stdout, stderr, code } = await runScript(SCRIPT, {
          env: {
            ...(tls ? server.trusting : {}),
            ...{ SERVER: `${server.url}${tls ? options : ''}`, CLIENT: client, HOW: how },
            BYTES: JSON.stringify(bytes),
          },
        });
        assert.equal(code, 0, stderr);
        return JSON.parse(stdout);
      };

      const run = async (client, how, bytes) => {
        const { outcomes, escaped, afterwards } = await leases(client, how, bytes);
        assert.deepEqual(escaped, []);
        assert.equal(afterwards, 'held');
        // Those that broke hold their slots for a while. Garbage may be read as any setting.
        const known = ['ERR_SNOWFLAKE_STORE', 'ERR_SNOWFLAKE_NO_SLOT', 'held', 'not connected'];
        if (how === 'garbage') known.push('ERR_SNOWFLAKE_CONFIG', 'ERR_SNOWFLAKE_CLOCK_SKEW');
        assert.deepEqual(
          outcomes.filter((outcome) => !known.includes(outcome)),
          [],
        );
      };

      for (const how of ways) {
        const isQuick =
          `${engine} ${how}` === 'postgres stall' || `${engine} ${how}` === 'redis garbage';
        test(`a lease of a URL, ${how}`, { skip: isQuick ? undefined : gate }, () =>
          run('url', how, SOME_BYTES),
        );
        // What a client of the application throws while it parses is the application's.
        for (const client of how === 'garbage' ? ['url'] : ['url', ...clients]) {
          test(`${client}, ${how}, after many numbers of bytes`, { skip: storm }, (t) => {
            // All of them take hours: in the nights, each has its turn.
            const step = amount(97, 31);
            const first = (seed ?? Date.now()) % step;
            t.diagnostic(`TESTS_SEED=${first}`);
            const count = Math.floor(MOST_BYTES / step);
            return run(
              client,
              how,
              Array.from({ length: count }, (_, n) => first + n * step),
            );
          });
        }
      }
    });
  }
}

test('postgres, bytes with an escape that is none: the call fails', async () => {
  const server = await lieAboutBytes();
  const script = `require('../..').SnowFlake.lease('postgres://app:x@127.0.0.1:${server.port}/app', { datacenterId: 1 })
    .catch(({ code }) => console.log(code));`;
  const { stdout } = await runScript(script);
  server.close();
  assert.equal(stdout, 'ERR_SNOWFLAKE_STORE\n');
});

const STORES = {
  'postgres, a URL': ['postgres', 'postgres://app:x@'],
  'postgres, a pool of the application': ['postgres'],
  'redis, a URL': ['redis', 'redis://'],
};
for (const [name, [engine, url]] of Object.entries(STORES)) {
  test(`${name}: what a client throws while it parses fails the call, and no process`, async () => {
    const server = await unparsable[engine]();
    const script = `
      const { Pool } = require('pg');
      const { postgres } = require('snowdrift/lease/postgres');
      const pool = () => postgres(new Pool({ host: '127.0.0.1', port: ${server.port}, user: 'app' }));
      const store = ${url === undefined ? 'pool()' : `'${url}127.0.0.1:${server.port}'`};
      require('../..').SnowFlake.lease(store, { datacenterId: 1, callTimeout: 60_000 })
        .catch(({ code, message }) => console.log(code, message));`;
    const { stdout, stderr } = await runScript(script);
    server.close();
    assert.match(stdout, /^ERR_SNOWFLAKE_STORE .*(Unknown auth|Maximum call stack)/, stderr);
  });
}

test('postgres, a pool of the application: losing an idle connection ends no process', async () => {
  const server = await lieAboutBytes();
  const script = `
    const { Pool } = require('pg');
    const { postgres } = require('snowdrift/lease/postgres');
    const pool = new Pool({ host: '127.0.0.1', port: ${server.port}, user: 'app' });
    pool.on('remove', () => console.log('lost'));
    const { signal } = new AbortController();
    postgres(pool).now({ signal }).catch(() => console.log('failed'));`;
  const { stdout, code, stderr } = await runScript(script);
  server.close();
  assert.deepEqual({ stdout, code }, { stdout: 'lost\n', code: 0 }, stderr);
});
