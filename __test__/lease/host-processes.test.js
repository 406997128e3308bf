'use strict';
// One lease per host, by real processes on real stores: any number of them hold one slot, and the last to end releases
// it. Who renews, takes over and moves is tested in virtual time: src/registry/host/tests/driven.rs.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { gate, storm } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { createNamespace, slotsOf } = require('../support/lease/namespaces.js');
const { withHosts, within } = require('../support/lease/on-host.js');
const { inRounds } = require('../support/lease/rounds.js');
const { ENGINES, Server, missing, unusual } = require('../support/lease/servers.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
/** Longer than a busy machine stops a process, or a server. */
const TTL = 60_000;
const OPTIONS = { datacenterId: 1, ttl: TTL, maxClockSkew: 1000, callTimeout: 30_000 };
/** For what comes whatever the machine does. */
const LATE = 120_000;

let namespaces = 0;
/** The URL of a namespace that an operator has created, so that its first holder does not wait. */
async function newUrl(server, layout) {
  const url = `${server.url}?namespace=host-${process.pid}-${namespaces++}`;
  await create(url, layout);
  return url;
}

function create(url, layout) {
  const { maxClockSkew } = OPTIONS;
  return createNamespace(url, { layout, ttl: TTL, maxClockSkew, maxAhead: 500 });
}

/** The slots that a store says are held. */
async function heldIn(url) {
  return (await slotsOf(url)).filter(({ isHeld }) => isHeld);
}

/** Until a store says that so many slots are held. */
function untilHeld(url, count) {
  const isHeld = async () => (await heldIn(url)).length === count;
  return within(LATE, `${count} slots are held`, isHeld);
}

/** A number of processes of a host, with a lease each. */
async function opened(host, count, url, options = OPTIONS) {
  const processes = Array.from({ length: count }, () => host.start());
  const leases = await Promise.all(processes.map((process) => process.open(url, options)));
  return { processes, leases };
}

/** All IDs of processes that draw, and how they were refused. */
async function allDrawn(processes) {
  const all = await Promise.all(processes.map((process) => process.drawn()));
  return {
    ids: all.map(({ ids }) => ids),
    refusals: all.flatMap(({ refusals }) => Object.entries(refusals)),
  };
}

/** A release that takes longer than two seconds is given up, as when the server was stopped. */
const RELEASED = 'the slot is released';

// Side by side: they mostly wait.
describe('processes of a host', { concurrency: 2 }, () => {
  for (const engine of ENGINES) {
    const skip = linux ?? unusual(engine) ?? (engine === 'redis' ? undefined : gate);
    describe(engine, { skip, concurrency: 1 }, () => {
      let server;
      before(async () => {
        server = await Server.start(engine);
      });
      after(() => server?.stop());

      test('processes of a host hold one slot, another host another one', async () => {
        await withHosts(2, async (host, other) => {
          const url = await newUrl(server);
          const { processes, leases } = await opened(host, 4, url);
          // In one process, too.
          leases.push(await processes[0].open(url, OPTIONS));
          for (const field of ['owner', 'page', 'floor']) {
            assert.equal(new Set(leases.map((lease) => lease[field])).size, 1, field);
          }
          assert.deepEqual(
            leases.map(({ slot, scope, state, opened }) => [slot.workerId, scope, state, opened]),
            leases.map(() => [leases[0].slot.workerId, 'host', 'held', 'host']),
          );
          const far = await opened(other, 1, url);
          assert.notEqual(far.leases[0].slot.workerId, leases[0].slot.workerId);
          await untilHeld(url, 2);

          const all = [...processes, ...far.processes];
          await Promise.all(all.map((process) => process.draw()));
          const ready = (process) => process.run(({ drawn }) => drawn.length > 50);
          for (const process of all) await within(LATE, 'it draws', () => ready(process));
          const { ids, refusals } = await allDrawn(all);
          assert.equal(countDuplicatesOf(ids), 0);
          assert.deepEqual(refusals, []);
        });
      });
    });
  }

  describe('on Redis', { skip: linux ?? missing('redis'), concurrency: 3 }, () => {
    let server;
    before(async () => {
      server = await Server.start('redis');
    });
    after(() => server?.stop());

    test('clients of one store and namespace share, however they are made', async () => {
      await withHosts(1, async (host) => {
        const url = await newUrl(server);
        const { leases } = await opened(host, 1, url);
        const ofClient = await host.start().run(
          async ({ SnowFlake, require }, address, namespace, options) => {
            const Redis = require('ioredis');
            const { redis } = require('../../js/stores/redis.js');
            const client = new Redis(address);
            const flake = await SnowFlake.lease(redis(client, { namespace }), options);
            return { ...flake.lease, page: flake.stats().page };
          },
          server.url,
          new URL(url).searchParams.get('namespace'),
          OPTIONS,
        );
        const ofStore = await host.start().run(
          async ({ SnowFlake, require }, address, options) => {
            const { connect } = require('../../js/stores/connect.js');
            // As an application's own that names itself as it likes.
            const store = {
              ...(await connect(new URL(address))),
              name: 'ours:',
              server: undefined,
            };
            const flake = await SnowFlake.lease(store, options);
            return { ...flake.lease, page: flake.stats().page };
          },
          url,
          OPTIONS,
        );
        for (const { owner, page } of [ofClient, ofStore]) {
          assert.deepEqual([owner, page], [leases[0].owner, leases[0].page]);
        }
        assert.equal((await heldIn(url)).length, 1);
      });
    });

    test('a process with another maxAhead is refused, which names both', {
      skip: gate,
    }, async () => {
      await withHosts(1, async (host) => {
        const url = await newUrl(server);
        await opened(host, 1, url, { ...OPTIONS, maxAhead: 500 });
        const { message } = await host
          .start()
          .open(url, { ...OPTIONS, maxAhead: 100 })
          .then(
            () => assert.fail('it was opened'),
            (error) => error,
          );
        assert.match(message, /maxAhead/);
        assert.match(message, /500/);
        assert.match(message, /100/);
        assert.equal((await heldIn(url)).length, 1, 'and it holds no slot');
      });
    });

    test('processes that open and close at once leave no page and no slot, and repeat nothing', {
      skip: storm,
    }, async () => {
      const scene = async (host) => {
        const url = await newUrl(server);
        const processes = Array.from({ length: 4 }, () => host.start());
        const rounds = 60;
        const ids = await Promise.all(
          processes.map((process) =>
            process.run(
              async ({ SnowFlake }, address, options, count) => {
                const ids = [];
                for (let n = 0; n < count; n++) {
                  const flake = await SnowFlake.lease(address, options);
                  ids.push(...flake.nextIds(50));
                  await flake.close();
                }
                return BigUint64Array.from(ids);
              },
              url,
              OPTIONS,
              rounds,
            ),
          ),
        );
        assert.equal(countDuplicatesOf(ids), 0);
        assert.deepEqual(host.pages, []);
        return (await heldIn(url)).length === 0;
      };
      await inRounds(RELEASED, () => withHosts(1, scene));
    });

    test('SIGTERM of the last process releases, of another one it does not', {
      skip: storm,
    }, async () => {
      const scene = async (host) => {
        const url = await newUrl(server);
        const { processes } = await opened(host, 2, url);
        const { renewer } = await processes[0].lease();
        processes.sort(({ pid }) => (pid === renewer.pid ? -1 : 1));
        processes[0].kill('SIGTERM');
        await processes[0].ended;
        assert.equal((await heldIn(url)).length, 1);
        processes[1].kill('SIGTERM');
        await processes[1].ended;
        assert.deepEqual(host.pages, []);
        return (await heldIn(url)).length === 0;
      };
      await inRounds(RELEASED, () => withHosts(1, scene));
    });
  });
});
