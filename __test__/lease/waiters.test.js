'use strict';
// Calls that are given up while the application's pool has no connection for them.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { gate } = require('../support/amount.js');
const { redis } = require('../../js/stores/redis.js');
const { workerNode } = require('../../js/stores/worker-node.js');
const { CLIENTS } = require('../support/lease/clients.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, layouts, rejects, until } = require('../support/support.js');

const OPTIONS = { datacenterId: 1, ttl: 60_000, scope: 'process' };
/** Of WORKER_NODE. */
const ROWS = { ...OPTIONS, datacenterId: 0, layout: { ...layouts.uid, epoch: Date.UTC(2026, 5) } };

for (const [engine, clients] of Object.entries(CLIENTS)) {
  describe(`on ${engine}`, { skip: missing(engine) }, () => {
    let server;
    before(async () => {
      server = await Server.start(engine);
    });
    after(() => server?.stop());

    const pools = Object.entries(clients)
      .filter(([, { waiting }]) => waiting !== undefined)
      .map(([name, client]) => [name, client, OPTIONS]);
    if (pools.length > 0) {
      const [[name, client]] = pools.filter(([each]) => /pool/i.test(each));
      pools.push([`${name} for WORKER_NODE`, { ...client, store: workerNode }, ROWS]);
    }
    for (const [
      n,
      [name, { connect, store: storeOf, hold, waiting, end }, options],
    ] of pools.entries()) {
      test(`${name}: at most one of them waits, and the next call takes its turn`, {
        skip: n > 0 && gate,
      }, async (t) => {
        const pool = await connect(server.url);
        t.after(() => end(pool));
        const store = storeOf(pool);
        const release = await hold(pool);
        let turn;
        try {
          for (let n = 0; n < 5; n++) {
            const late = SnowFlake.lease(store, { ...options, callTimeout: 100 });
            await rejects(late, 'ERR_SNOWFLAKE_STORE');
            assert.equal(waiting(pool), 1);
          }
          turn = SnowFlake.lease(store, { ...options, callTimeout: 60_000 });
          const other = SnowFlake.lease(store, { ...options, callTimeout: 100 });
          await rejects(other, 'ERR_SNOWFLAKE_STORE');
          assert.equal(waiting(pool), 2);
        } finally {
          await release();
        }
        await (await turn).close();
        // Also the one that nobody adopted.
        await until(() => waiting(pool) === 0);
        (await hold(pool))();
      });
    }
  });
}

test('a client of redis without a connection: none stays in its queue', {
  skip: missing('redis'),
}, async (t) => {
  const server = await Server.start('redis');
  const client = require('redis').createClient({ url: server.url, commandsQueueMaxLength: 1 });
  client.on('error', () => {});
  await client.connect();
  t.after(() => client.destroy());
  await server.stop();
  await until(() => !client.isReady);
  for (let n = 0; n < 5; n++) {
    const late = SnowFlake.lease(redis(client), { ...OPTIONS, callTimeout: 100 });
    const { message } = await rejects(late, 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /did not answer within 100 ms/);
  }
});
