'use strict';
// A host that cannot use slots leaves them to others.

const assert = require('node:assert/strict');
const { writeFileSync } = require('node:fs');
const { after, before, describe, test } = require('node:test');

const { gate } = require('../support/amount.js');
const { connect } = require('../../js/stores/connect.js');
const { createNamespace, slotsOf } = require('../support/lease/namespaces.js');
const { withHosts } = require('../support/lease/on-host.js');
const { ENGINES, Server, missing, unusual } = require('../support/lease/servers.js');
const { layouts, until } = require('../support/support.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
/** Two slots. */
const layout = { ...layouts.node, workerBits: 1 };
const OPTIONS = { datacenterId: 1, layout, ttl: 3_600_000, callTimeout: 60_000 };

for (const engine of ENGINES) {
  const skip = linux ?? missing(engine) ?? unusual(engine);
  describe(engine, { skip: skip ?? (engine === 'redis' ? undefined : gate) }, () => {
    let server;
    before(async () => {
      server = await Server.start(engine);
    });
    after(() => server?.stop());

    test('slots whose pages cannot be created are free at once', async () => {
      await withHosts(2, async (damaged, healthy) => {
        const store = await connect(new URL(server.url));
        await createNamespace(store, { layout, ttl: OPTIONS.ttl });
        const process = damaged.start();
        const { page } = await process.open(server.url, OPTIONS);
        await process.close();
        for (const workerId of [0, 1]) {
          writeFileSync(page.replace(/\d+\.page$/, `${workerId}.page`), 'no page'.repeat(1000));
        }
        for (let n = 0; n < 4; n++) {
          await assert.rejects(process.open(server.url, OPTIONS), {
            code: 'ERR_SNOWFLAKE_STORE',
            message: /\.page/,
          });
        }
        // A release ends after the refusal.
        await until(async () => (await slotsOf(store)).every(({ isHeld }) => !isHeld));
        const { slot } = await healthy.start().open(server.url, OPTIONS);
        assert.equal(typeof slot.workerId, 'number');
        await store.close();
      });
    });
  });
}
