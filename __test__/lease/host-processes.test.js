'use strict';
// One lease per host, by real processes on real stores: any number of them hold one slot. One renews, and
// others take over when it is stopped, killed or busy. The last to close releases.

const assert = require('node:assert/strict');
const { renameSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { gate, storm } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const {
  clockOf,
  createNamespace,
  deleteNamespace,
  slotsOf,
} = require('../support/lease/namespaces.js');
const { withHosts, within } = require('../support/lease/on-host.js');
const { inRounds } = require('../support/lease/rounds.js');
const { ENGINES, Server, missing, unusual } = require('../support/lease/servers.js');
const { layouts } = require('../support/support.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
/** Longer than a busy machine stops a process, or a server. */
const TTL = 60_000;
const OPTIONS = { datacenterId: 1, ttl: TTL, maxClockSkew: 1000, callTimeout: 30_000 };
/** Where a takeover is waited for. */
const SHORT_TTL = 6000;
/** How often a process looks at the page, and a busy machine, ms. */
const LOOK = 1000;
const SLACK = 1000;
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

/** Which of the processes renews, as the lease says. */
async function rolesOf(processes) {
  const { renewer } = await processes[0].lease();
  const renewing = processes.find(({ pid }) => pid === renewer.pid);
  assert.ok(renewing, `${renewer.pid} renews, which is none of ${processes.map(({ pid }) => pid)}`);
  return { renewing, others: processes.filter((process) => process !== renewing) };
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

      test('the last one to close releases: the store says so, and the page is gone', {
        skip: storm,
      }, async () => {
        const scene = async (host) => {
          const url = await newUrl(server);
          const { processes, leases: before } = await opened(host, 3, url);
          const [first, second, last] = processes;
          // What the first to close was, the one that renews or another, makes no difference.
          await Promise.all([first.close(), second.draw()]);
          assert.equal((await heldIn(url)).length, 1);
          const { ids, refusals } = await second.drawn();
          assert.deepEqual([ids.length > 0, refusals], [true, {}]);
          await second.close();
          assert.equal((await heldIn(url)).length, 1);
          assert.deepEqual(host.pages.length, 1);
          const id = await last.run((scene) => scene.flake.nextId());
          await last.close();
          assert.deepEqual(host.pages, []);
          if ((await heldIn(url)).length > 0) return false;
          // Its ceiling went back to what was issued: the slot is the lowest again, at once.
          const { leases } = await opened(host, 1, url);
          const tick = Number(id >> 22n) + layouts.node.epoch;
          const { floor, slot } = leases[0];
          const isSame = slot.workerId === before[0].slot.workerId;
          assert.ok(!isSame || floor === tick, `floor ${floor}, last tick ${tick}`);
          return true;
        };
        await inRounds(RELEASED, () => withHosts(1, scene));
      });
    });
  }

  describe('on Redis', { skip: linux ?? missing('redis'), concurrency: 3 }, () => {
    let server;
    before(async () => {
      server = await Server.start('redis');
    });
    after(() => server?.stop());

    /** Whatever happens to the one that renews: the others go on, and one of them renews. */
    const takeover = (how, happen) => {
      test(`${how}: another one renews within ttl / 3`, { skip: storm }, async (t) => {
        const scene = async (host) => {
          const url = await newUrl(server);
          const options = { ...OPTIONS, ttl: SHORT_TTL };
          const { processes } = await opened(host, 3, url, options);
          await Promise.all(processes.map((process) => process.draw()));
          const { renewing, others } = await rolesOf(processes);
          const before = (await others[0].lease()).renewals;
          // When its next renewal would be due, the ttl has run for a third.
          await within(LATE, 'a renewal', async () => (await others[0].lease()).renewals > before);
          const again = await happen(renewing);
          const took = await within(LATE, 'another one renews', async () => {
            const { renewer, renewals } = await others[0].lease();
            return renewer.pid !== renewing.pid && renewals > before + 1;
          });
          t.diagnostic(`after ${Math.round(took)} ms, of a ttl of ${SHORT_TTL} ms`);
          const { ids, refusals } = await allDrawn(others);
          await again?.();
          assert.equal(countDuplicatesOf(ids), 0);
          await untilHeld(url, 1);
          await within(LATE, 'it is held', async () => (await others[0].lease()).state === 'held');
          assert.deepEqual(await others[1].warnings(), []);
          return refusals.length === 0 && took < (SHORT_TTL * 2) / 3 + LOOK + SLACK;
        };
        await inRounds('it is in time, and no ID is missing', () => withHosts(1, scene));
      });
    };

    takeover('the one that renews is killed', async (renewing) => {
      renewing.kill('SIGKILL');
      await renewing.ended;
    });

    takeover('the one that renews is stopped', async (renewing) => {
      renewing.kill('SIGSTOP');
      return async () => {
        renewing.kill('SIGCONT');
        // It goes on, on the slot that the others have kept.
        const count = await renewing.run(({ drawn }) => drawn.length);
        await within(LATE, 'it draws again', () =>
          renewing.run((scene, before) => scene.drawn.length > before, count),
        );
        assert.deepEqual(await renewing.warnings(), []);
      };
    });

    const spin = async (renewing) => {
      const busy = renewing.run((_, ms) => {
        const end = Date.now() + ms;
        while (Date.now() < end);
      }, SHORT_TTL * 1.5);
      return () => busy;
    };
    takeover('the one that renews is busy', spin);

    /** All processes of a host, which has lost a slot, have one new slot, and each has warned of it once. */
    const moved = async (processes, { owner }, code) => {
      for (const process of processes) {
        await within(LATE, 'it has a slot again', async () => {
          const now = await process.lease();
          return now.state === 'held' && now.owner !== owner;
        });
        await within(LATE, 'it has warned', async () => (await process.warnings()).length > 0);
      }
      const leases = await Promise.all(processes.map((process) => process.lease()));
      assert.equal(new Set(leases.map((lease) => lease.owner)).size, 1);
      assert.equal(new Set(leases.map(({ page }) => page)).size, 1);
      for (const process of processes) assert.deepEqual(await process.warnings(), [code]);
      return leases[0];
    };

    test('a slot that was taken over: all of the host move to one new slot, each warns once', {
      skip: storm,
    }, async () => {
      await withHosts(3, async (host, taker, keeper) => {
        const layout = { ...layouts.node, datacenterBits: 5, workerBits: 1 };
        const url = await newUrl(server, layout);
        const options = { ...OPTIONS, layout, ttl: 2000 };
        const { processes, leases } = await opened(host, 3, url, options);
        // Of these, no slot expires.
        const patient = { ...options, ttl: TTL };
        const kept = await opened(keeper, 1, url, patient);
        await Promise.all(processes.map((process) => process.draw()));
        for (const process of processes) process.kill('SIGSTOP');
        const waiting = await opened(taker, 1, url, { ...patient, waitForSlot: LATE });
        assert.equal(waiting.leases[0].slot.workerId, leases[0].slot.workerId);
        await kept.processes[0].close();
        for (const process of processes) process.kill('SIGCONT');
        const { slot } = await moved(processes, leases[0], 'SNOWFLAKE_SLOT_LOST');
        assert.equal(slot.workerId, kept.leases[0].slot.workerId);
        await untilHeld(url, 2);
      });
    });

    test('a namespace that was lost: all of the host move to one new slot, each warns once', {
      skip: storm,
    }, async () => {
      await withHosts(1, async (host) => {
        const url = await newUrl(server);
        const options = { ...OPTIONS, ttl: 2000 };
        const { processes, leases } = await opened(host, 3, url, options);
        await deleteNamespace(server, new URL(url).searchParams.get('namespace'));
        await moved(processes, leases[0], 'SNOWFLAKE_NAMESPACE_LOST');
        await untilHeld(url, 1);
      });
    });

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

    test('two databases with a namespace of one name do not share, and have two worker IDs', {
      skip: gate,
    }, async () => {
      await withHosts(1, async (host) => {
        const urls = [`${server.url}/3`, `${server.url}/4`];
        for (const url of urls) await create(url);
        const first = await opened(host, 2, urls[0]);
        const second = await opened(host, 2, urls[1]);
        const both = await host.start();
        const leases = [await both.open(urls[0], OPTIONS), await both.open(urls[1], OPTIONS)];
        for (const [n, { leases: own }] of [first, second].entries()) {
          assert.equal(new Set([...own, leases[n]].map(({ owner }) => owner)).size, 1);
          assert.equal((await heldIn(urls[n])).length, 1);
        }
        assert.notEqual(leases[0].slot.workerId, leases[1].slot.workerId);
        assert.notEqual(leases[0].page, leases[1].page);
      });
    });

    test("scope 'process' leases a slot per call", { skip: gate }, async () => {
      await withHosts(1, async (host) => {
        const url = await newUrl(server);
        const options = { ...OPTIONS, scope: 'process' };
        const { processes, leases } = await opened(host, 2, url, options);
        leases.push(await processes[0].open(url, options));
        assert.equal(new Set(leases.map(({ slot }) => slot.workerId)).size, 3);
        for (const { scope, page, opened } of leases) {
          assert.deepEqual([scope, page, opened], ['process', undefined, 'process']);
        }
        assert.deepEqual(host.pages, []);
        // Beside them, the host has one of its own.
        const shared = await opened(host, 2, url);
        assert.equal(shared.leases[0].owner, shared.leases[1].owner);
        assert.equal((await heldIn(url)).length, 4);
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

    test('a host whose processes were all killed continues with its slot', {
      skip: storm,
    }, async () => {
      const scene = async (host) => {
        const url = await newUrl(server);
        const { processes, leases } = await opened(host, 3, url, OPTIONS);
        const ids = await Promise.all(
          processes.map((process) => process.run((scene) => scene.flake.nextIds(2000))),
        );
        for (const process of processes) process.kill('SIGKILL');
        await Promise.all(processes.map(({ ended }) => ended));
        const next = await opened(host, 2, url, OPTIONS);
        for (const { owner, page } of next.leases) {
          assert.deepEqual([owner, page], [leases[0].owner, leases[0].page]);
        }
        ids.push(await next.processes[0].run((scene) => scene.flake.nextIds(2000)));
        assert.equal(countDuplicatesOf(ids), 0);
        // The store knows of one, which the next ones renew, and release.
        await Promise.all(next.processes.map((process) => process.close()));
        assert.deepEqual(host.pages, []);
        return (await heldIn(url)).length === 0;
      };
      await inRounds(RELEASED, () => withHosts(1, scene));
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
        const { renewing, others } = await rolesOf(processes);
        renewing.kill('SIGTERM');
        await renewing.ended;
        assert.equal((await heldIn(url)).length, 1);
        others[0].kill('SIGTERM');
        await others[0].ended;
        assert.deepEqual(host.pages, []);
        return (await heldIn(url)).length === 0;
      };
      await inRounds(RELEASED, () => withHosts(1, scene));
    });

    test('a host that has taken two slots keeps both until their users end, and others join one', async () => {
      await withHosts(1, async (host) => {
        const url = await newUrl(server);
        const options = { ...OPTIONS, ttl: 30_000 };
        const { processes } = await opened(host, 1, url, options);
        // It sees nothing of this.
        processes[0].kill('SIGSTOP');
        const page = join(host.directory, host.pages[0]);
        renameSync(page, `${page}.away`);
        const second = host.start();
        processes.push(second);
        await second.open(url, options);
        await second.draw();
        assert.equal((await heldIn(url)).length, 2);
        renameSync(`${page}.away`, page);
        processes[0].kill('SIGCONT');
        await processes[0].draw();

        const leases = () => Promise.all(processes.map((process) => process.lease()));
        const both = await leases();
        const isRenewed = async () => (await leases()).every(({ renewals }) => renewals > 0);
        await within(LATE, 'both are renewed', isRenewed);
        assert.deepEqual(
          (await leases()).map(({ state, owner }) => [state, owner]),
          both.map(({ owner }) => ['held', owner]),
        );
        // The one with the lower worker ID.
        const [lower, higher] = [0, 1].sort(
          (a, b) => both[a].slot.workerId - both[b].slot.workerId,
        );
        const third = host.start();
        processes.push(third);
        assert.equal((await third.open(url, options)).owner, both[lower].owner);
        await third.draw();
        const drawn = await second.run(({ drawn }) => drawn.length);
        const draws = () => second.run((scene, least) => scene.drawn.length > least, drawn);
        await within(LATE, 'it draws', draws);
        const { ids, refusals } = await allDrawn(processes);
        assert.equal(countDuplicatesOf(ids), 0);
        assert.deepEqual(refusals, []);
        assert.deepEqual(await second.warnings(), []);
        await processes[higher].close();
        await untilHeld(url, 1);
        assert.equal((await third.lease()).owner, both[lower].owner);
      });
    });
  });

  test('a slot is held for the ttl of the process that renews, not of the one that acquired it', {
    skip: linux ?? missing('etcd') ?? gate,
  }, async () => {
    const server = await Server.start('etcd');
    try {
      await withHosts(2, async (host, other) => {
        const layout = { ...layouts.node, datacenterBits: 5, workerBits: 0 };
        const url = await newUrl(server, layout);
        const options = { ...OPTIONS, layout };
        const short = await opened(host, 1, url, { ...options, ttl: SHORT_TTL });
        const [{ expires }] = await slotsOf(url);
        const long = await opened(host, 1, url, options);
        assert.equal(long.leases[0].owner, short.leases[0].owner);
        short.processes[0].kill('SIGKILL');
        const isLonger = async () => (await slotsOf(url))[0].expires > expires + TTL / 2;
        await within(LATE, 'the other process renews', isLonger);
        const isOver = async () => (await clockOf(url)) > expires;
        await within(LATE, 'the hold of the short ttl is over', isOver);
        await assert.rejects(opened(other, 1, url, options), { code: 'ERR_SNOWFLAKE_NO_SLOT' });
        assert.deepEqual(await long.processes[0].warnings(), []);
      });
    } finally {
      await server.stop();
    }
  });

  describe('on PostgreSQL', { skip: linux ?? missing('postgres') ?? gate }, () => {
    test('processes share by TypeORM, pg and a URL; workerNode() leaves no page', async () => {
      const server = await Server.start('postgres');
      try {
        await withHosts(1, async (host) => {
          const { leases } = await opened(host, 1, server.url);
          const byPool = await host.start().run(
            async ({ SnowFlake, require }, url, options) => {
              const { postgres } = require('../../js/stores/postgres.js');
              const pool = new (require('pg').Pool)({ connectionString: url });
              return (await SnowFlake.lease(postgres(pool), options)).lease;
            },
            server.url,
            OPTIONS,
          );
          const byTypeOrm = await host.start().run(
            async ({ SnowFlake, require }, url, options) => {
              const { DataSource } = require('typeorm');
              const { typeorm } = require('../../js/stores/typeorm.js');
              const source = await new DataSource({ type: 'postgres', url }).initialize();
              return (await SnowFlake.lease(typeorm(source), options)).lease;
            },
            server.url,
            OPTIONS,
          );
          for (const { owner, scope } of [byPool, byTypeOrm]) {
            assert.deepEqual([owner, scope], [leases[0].owner, 'host']);
          }
          assert.equal((await heldIn(server.url)).length, 1);
        });
        await withHosts(1, async (host) => {
          const scopes = await Promise.all(
            [host.start(), host.start()].map((process) =>
              process.run(async ({ SnowFlake, layouts, require }, url) => {
                const { workerNode } = require('../../js/stores/worker-node.js');
                const pool = new (require('pg').Pool)({ connectionString: url });
                const layout = { ...layouts.uid, timestampBits: 31, workerBits: 19 };
                const options = { datacenterId: 0, layout, callTimeout: 60_000 };
                const ids = [];
                for (let n = 0; n < 20; n++) {
                  const flake = await SnowFlake.lease(workerNode(pool), options);
                  ids.push([flake.lease.scope, flake.stats().scope, flake.workerId]);
                  await flake.close();
                }
                return ids;
              }, server.url),
            ),
          );
          const all = scopes.flat();
          assert.ok(all.every(([scope, opened]) => scope === 'process' && opened === 'process'));
          assert.equal(new Set(all.map(([, , workerId]) => workerId)).size, 40);
          assert.deepEqual(host.pages, []);
        });
      } finally {
        await server.stop();
      }
    });
  });
});
