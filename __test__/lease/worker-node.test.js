'use strict';
// Worker IDs from UidGenerator's table WORKER_NODE, on real servers: in a table that is used as meant, and in one
// that is emptied under living holders.

const assert = require('node:assert/strict');
const { hostname } = require('node:os');
const { after, afterEach, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { storm } = require('../support/amount.js');
const { inRounds } = require('../support/lease/rounds.js');
const { Server, missing } = require('../support/lease/servers.js');
const { Peer } = require('../support/peer.js');
const { SnowFlake, countDuplicates, layouts, until } = require('../support/support.js');

/** UidGenerator's own DDL for MySQL; the same in PostgreSQL's words. */
const WORKER_NODE = {
  mysql: `CREATE TABLE WORKER_NODE (
    ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL,
    TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL,
    CREATED TIMESTAMP NOT NULL, PRIMARY KEY (ID)) COMMENT = 'DB WorkerID Assigner', ENGINE = INNODB`,
  postgres: `CREATE TABLE WORKER_NODE (
    ID BIGSERIAL NOT NULL, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL,
    TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL,
    CREATED TIMESTAMP NOT NULL, PRIMARY KEY (ID))`,
};

describe('UidGenerator', { concurrency: 2 }, () => {
  for (const engine of ['mysql', 'postgres']) {
    // UidGenerator's own table is one of MySQL.
    const skip = missing(engine) ?? (engine === 'mysql' ? undefined : storm);
    describe(`WORKER_NODE on ${engine}`, { skip, concurrency: 1 }, () => {
      const { workerNode } = require('../../js/stores/worker-node.js');
      // Other IDs in each test: this process remembers what it has issued under a worker ID.
      let epoch = Date.UTC(2026, 0, engine === 'mysql' ? 1 : 2);
      const newLayout = () => ({ ...layouts.uid, epoch: epoch++ });
      let server;
      let pool;
      let query;
      before(async () => {
        server = await Server.start(engine);
        if (engine === 'mysql') {
          const options = { uri: server.url, connectTimeout: 0 };
          pool = require('mysql2/promise').createPool(options);
          query = async (text) => (await pool.query(text))[0];
        } else {
          pool = new (require('pg').Pool)({ connectionString: server.url });
          // A server that is killed ends connections that are not in use.
          pool.on('error', () => {});
          query = async (text) => (await pool.query(text)).rows;
        }
        await query(WORKER_NODE[engine]);
      });
      after(async () => {
        await pool.end();
        await server.stop();
      });

      for (const made of ['created on first use', 'of UidGenerator']) {
        test(`each lease is a row of a table ${made}, and its ID the worker ID`, async () => {
          await query('DROP TABLE WORKER_NODE');
          if (made === 'of UidGenerator') await query(WORKER_NODE[engine]);
          const layout = newLayout();
          const workerIds = [];
          for (let n = 0; n < 3; n++) {
            const flake = await SnowFlake.lease(workerNode(pool, { type: 'container' }), {
              layout,
              ttl: 60_000,
              callTimeout: 60_000,
            });
            workerIds.push(flake.parse(flake.nextId()).workerId);
            flake.close();
          }
          assert.deepEqual(workerIds, [1, 2, 3], 'never reused');
          const rows = await query('SELECT * FROM WORKER_NODE ORDER BY ID');
          assert.equal(rows.length, 3);
          const [row] = rows.map((one) =>
            Object.fromEntries(
              Object.entries(one).map(([key, value]) => [key.toUpperCase(), value]),
            ),
          );
          assert.deepEqual([row.HOST_NAME, row.TYPE], [hostname().slice(0, 64), 1]);
          assert.match(row.PORT, new RegExp(`^\\d{13}-${process.pid}$`));
          assert.ok(Math.abs(new Date(row.CREATED) - Date.now()) < 86_400_000);
        });
      }

      test('an ID past the layout is an error, not a wrap', async () => {
        const small = { ...newLayout(), workerBits: 2, sequenceBits: 33 };
        const { code, message } = await SnowFlake.lease(workerNode(pool), {
          layout: small,
          callTimeout: 60_000,
        }).then(
          () => assert.fail('it was not refused'),
          (error) => error,
        );
        assert.equal(code, 'ERR_SNOWFLAKE_NO_SLOT');
        assert.match(message, /assigned worker ID 4, and the layout's worker IDs end at 3/);
      });

      test('a layout with datacenters is refused', async () => {
        await assert.rejects(SnowFlake.lease(workerNode(pool), { datacenterId: 1 }), {
          code: 'ERR_SNOWFLAKE_CONFIG',
        });
      });

      test('a worker ID of the table may borrow future seconds', async () => {
        const flake = await SnowFlake.lease(workerNode(pool), {
          layout: newLayout(),
          ttl: 60_000,
          callTimeout: 60_000,
          maxAhead: 3000,
          maxWait: 0,
        });
        // Of three seconds at least, without a wait.
        const ids = flake.nextIds(3 * 8192);
        const [first, last] = [ids[0], ids.at(-1)].map((id) => flake.parse(id).timestamp);
        assert.ok(last >= first + 2000, `${last - first} ms`);
        assert.equal(countDuplicates([...ids]), 0);
        await flake.close();
      });

      /** How each database is emptied such that it assigns the first IDs again. */
      const EMPTY = {
        mysql: ['TRUNCATE TABLE WORKER_NODE'],
        postgres: ['TRUNCATE TABLE WORKER_NODE RESTART IDENTITY'],
      };
      /** Ticks of a ms: within a second of `uid` nothing would be seen. Few IDs, to compare them all. */
      const holding = {
        layout: { ...layouts.node, datacenterBits: 0, workerBits: 8, sequenceBits: 5 },
        ttl: 1000,
        maxClockSkew: 500,
        callTimeout: 60_000,
      };
      const peers = [];
      afterEach(() => Promise.all(peers.splice(0).map((peer) => peer.end())));

      /** A process that holds a lease. */
      async function holder(options = {}, naming = {}) {
        const peer = new Peer();
        peers.push(peer);
        const workerId = await peer.run(
          async (scene, engine, url, options, naming) => {
            const { workerNode } = scene.require('../../js/stores/worker-node.js');
            const pool =
              engine === 'mysql'
                ? scene.require('mysql2/promise').createPool({ uri: url, connectTimeout: 0 })
                : new (scene.require('pg').Pool)({ connectionString: url });
            pool.on('error', () => {});
            scene.flake = await scene.SnowFlake.lease(workerNode(pool, naming), options);
            return scene.flake.workerId;
          },
          engine,
          server.url,
          { ...holding, ...options },
          naming,
        );
        return Object.assign(peer, {
          workerId,
          lease: () => peer.run(({ flake }) => flake.lease),
          warnings: () => peer.run(({ warnings }) => warnings.map(({ code }) => code)),
        });
      }

      /** Until it has renewed its lease that many times more. */
      async function renewed(peer, times = 2) {
        const { renewals } = await peer.lease();
        await until(async () => (await peer.lease()).renewals >= renewals + times);
      }

      const warned = (peer, code) => until(async () => (await peer.warnings()).includes(code));

      async function empty() {
        for (const statement of EMPTY[engine]) await query(statement);
      }

      test('holders of a table that is emptied notice it, and repeat nothing of each other', {
        skip: storm,
      }, async () => {
        // On a busy machine the slow one may look first, or draws may end before it does.
        await inRounds('the fast one notices first', async () => {
          await empty();
          const slow = await holder({ ttl: 2400 });
          const fast = await holder();
          const drawing = [slow.draw(4000), fast.draw(4000)];
          await renewed(slow, 1);
          await empty();
          // It takes the other one's worker ID, which has 800 ms to go until it looks.
          let isTaken = false;
          await until(async () => {
            const [{ slot }, codes] = await Promise.all([fast.lease(), slow.warnings()]);
            isTaken = slot.workerId === slow.workerId && codes.length === 0;
            return isTaken || codes.length > 0;
          });
          await warned(fast, 'SNOWFLAKE_NAMESPACE_LOST');
          await warned(slow, 'SNOWFLAKE_NAMESPACE_LOST');
          const newcomer = await holder();
          const drawn = await Promise.all([...drawing, newcomer.draw(2000)]);
          assert.equal(countDuplicates(drawn.flatMap(({ ids }) => [...ids])), 0);
          await until(async () => (await fast.lease()).state === 'held');
          const isRefused = drawn
            .slice(0, 2)
            .every(({ refusals }) => refusals.ERR_SNOWFLAKE_WINDOW > 0);
          if (!isTaken) return false;
          assert.deepEqual(await fast.warnings(), ['SNOWFLAKE_NAMESPACE_LOST']);
          return isRefused;
        });
      });

      test('a row of another process with the same host and port is not its own', {
        skip: storm,
      }, async () => {
        await empty();
        const naming = { host: 'app', port: '80' };
        const peer = await holder({ ttl: 4000 }, naming);
        // Both databases have whole seconds at least.
        await sleep(1100);
        await empty();
        await query(
          "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('app', '80', 2, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)",
        );
        await warned(peer, 'SNOWFLAKE_NAMESPACE_LOST');
        await until(async () => (await peer.lease()).slot.workerId === 2);
      });

      test('one that comes before a holder renews has its worker ID', async () => {
        await empty();
        const first = await holder({ ttl: 600_000 });
        await empty();
        const second = await holder({ ttl: 600_000 });
        assert.deepEqual([first.workerId, second.workerId], [1, 1]);
      });

      test('a holder keeps its worker ID when old rows are deleted', { skip: storm }, async () => {
        const old = await holder();
        const { workerId } = await holder();
        await query(`DELETE FROM WORKER_NODE WHERE ID < ${workerId}`);
        await renewed(old);
        assert.deepEqual([(await old.lease()).state, await old.warnings()], ['held', []]);
      });
    });
  }
});
