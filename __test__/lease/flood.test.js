'use strict';
// Servers that send without an end: the call fails with what was wrong, after a bounded number of bytes, and the
// process goes on. Storms measure the memory.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

const { gate, storm } = require('../support/amount.js');
const { FLOODS, impersonate } = require('../support/lease/impostor.js');
const { postgres } = require('../../js/stores/postgres.js');
const { typeorm } = require('../../js/stores/typeorm.js');
const { SnowFlake, rejects, runScript } = require('../support/support.js');

/** The limit of a call, and of etcd's reply; what systems buffer between the ends comes on top. */
const MOST_BYTES = 2 ** 24;
const BUFFERED = 2 ** 25;
/** Those of a quick run. */
const QUICK = ['postgres, long', 'redis, long'];
/** What a process may need more than before, in MB. */
const MOST_MB = 200;

const leaseOf = (engine, port) =>
  SnowFlake.lease(`${engine}://app:x@127.0.0.1:${port}`, { datacenterId: 1, callTimeout: 60_000 });

describe('a server that sends without an end', () => {
  for (const [engine, kinds] of Object.entries(FLOODS)) {
    for (const kind of Object.keys(kinds)) {
      const skip = QUICK.includes(`${engine}, ${kind}`) ? undefined : gate;
      test(`${engine}, ${kind}: is refused`, { skip }, async () => {
        const server = await impersonate(engine, { kind });
        const { message } = await rejects(leaseOf(engine, server.port), 'ERR_SNOWFLAKE_STORE');
        if (kind !== 'deep') {
          const expected = `at 127.0.0.1:${server.port} .*sent more than ${MOST_BYTES} bytes`;
          assert.match(message, new RegExp(expected));
        }
        assert.ok(server.sent() < MOST_BYTES + BUFFERED, `${server.sent()} bytes`);
        server.close();
      });

      test(`${engine}, ${kind}: takes little memory`, { skip: storm }, async () => {
        const server = await impersonate(engine, { kind });
        const script = `
          const { SnowFlake } = require('../..');
          const peak = () => process.resourceUsage().maxRSS / 1024;
          (async () => {
            const url = ${JSON.stringify(engine)} + '://app:x@127.0.0.1:' + process.env.PORT;
            const lease = () => SnowFlake.lease(url, { datacenterId: 1, callTimeout: 60_000 }).catch(() => {});
            const closed = SnowFlake.lease(url.replace(/\\d+$/, '1'), { datacenterId: 1, callTimeout: 60_000 });
            await closed.catch(() => {});
            const before = peak();
            for (let n = 0; n < 3; n++) await lease();
            console.log(peak() - before);
          })();`;
        const { stdout, stderr } = await runScript(script, { env: { PORT: server.port } });
        server.close();
        assert.ok(stdout !== '' && Number(stdout) < MOST_MB, `${stdout} MB ${stderr}`);
      });
    }
  }

  const STORES = {
    'a pool of the application': (pool) => postgres(pool),
    "TypeORM's pool": (pool) =>
      typeorm({
        options: { type: 'postgres' },
        createQueryRunner() {},
        driver: { obtainMasterConnection: async () => [await pool.connect()] },
      }),
  };
  for (const [name, storeOf] of Object.entries(STORES)) {
    test(`${name}: its connection is the call's alone`, { skip: gate }, async () => {
      const server = await impersonate('postgres', { kind: 'value' });
      const pool = new (require('pg').Pool)({ host: '127.0.0.1', port: server.port, user: 'app' });
      const leasing = SnowFlake.lease(storeOf(pool), { datacenterId: 1, callTimeout: 60_000 });
      const { message } = await rejects(leasing, 'ERR_SNOWFLAKE_STORE');
      assert.match(message, new RegExp(`^PostgreSQL sent more than ${MOST_BYTES} bytes`));
      assert.equal(pool.totalCount, 0);
      server.close();
    });
  }
});
