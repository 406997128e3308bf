'use strict';
// A process of a host that is stopped while it takes a slot keeps the others from it for a bounded time only. Each process leases
// from a register of this one, which holds its calls up.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');
const { faulty } = require('../support/lease/faulty.js');
const { Sharer } = require('../support/lease/sharer.js');
const { countDuplicates, layouts, until } = require('../support/support.js');

const TEST = { skip: process.platform !== 'linux' && 'tried on Linux' };
/** Of one host. */
const start = async (t, store) => {
  const env = { SNOWDRIFT_SHARED: createDirectory() };
  const stopped = faulty({ stored: store.stored });
  const both = await Promise.all([Sharer.start(stopped, { env }), Sharer.start(store, { env })]);
  t.after(() => Promise.all(both.map((sharer) => sharer.kill())));
  return { stopped, both, env };
};

const CLAIM = { datacenterId: 1, workerId: 3, ttl: 1000, maxClockSkew: 200, callTimeout: 500 };

for (const [when, hook] of [
  ['before it has written', 'fault'],
  ['once it has written', 'late'],
]) {
  test(
    `a process is stopped while it takes a claim, ${when}: its host gets it, and the process shares it later`,
    TEST,
    async (t) => {
      const store = faulty();
      const { stopped, both } = await start(t, store);
      const [first, second] = both;
      let go;
      const going = new Promise((resolve) => {
        go = resolve;
      });
      let isThere;
      const there = new Promise((resolve) => {
        isThere = resolve;
      });
      stopped[hook] = ({ does }) => {
        if (does !== 'take') return undefined;
        isThere();
        return going;
      };
      const late = first.lease({ ...CLAIM, waitForSlot: 600_000 });
      await there;
      first.signal('SIGSTOP');
      // What it may have written expires.
      const lease = await second.lease({ ...CLAIM, waitForSlot: 600_000 });
      assert.equal(lease.slot.workerId, 3);
      const ids = await second.draw(50);
      go();
      first.signal('SIGCONT');
      await late;
      // Who shares the slot takes it over where a busy machine keeps the other from renewing it.
      await until(async () => {
        const [one, other] = await Promise.all([first, second].map((sharer) => sharer.report()));
        return one.owner === other.owner;
      });
      ids.push(...(await Promise.all([first, second].map((sharer) => sharer.draw(50)))).flat());
      assert.equal(countDuplicates(ids), 0);
    },
  );
}

test(
  'a claim that a stopped process of the host has written is refused with that process',
  TEST,
  async (t) => {
    const store = faulty();
    const { stopped, both } = await start(t, store);
    const [first, second] = both;
    stopped.late = ({ does }) => (does === 'take' ? new Promise(() => {}) : undefined);
    first.lease({ ...CLAIM, ttl: 600_000, callTimeout: 60_000 }).catch(() => {});
    await until(() => store.slots.length > 0);
    first.signal('SIGSTOP');
    const claim = { ...CLAIM, ttl: 600_000, callTimeout: 50, waitForSlot: 0 };
    let refusal;
    await until(async () => {
      refusal = await second.lease(claim).then(assert.fail, (thrown) => thrown);
      // A busy machine may hold up the reply for longer than a call may take.
      return !/did not answer/.test(refusal.message);
    });
    assert.equal(refusal.code, 'ERR_SNOWFLAKE_IN_USE');
    assert.match(refusal.message, new RegExp(`workerId 3 .* is held: process ${first.pid} on `));
    first.signal('SIGCONT');
  },
);

test(
  '64 leases of one process keep no other process of the host from its slot',
  TEST,
  async (t) => {
    const store = faulty();
    const { both } = await start(t, store);
    const [many, other] = both;
    const options = { datacenterId: 1, ttl: 600_000, layout: { ...layouts.node, workerBits: 0 } };
    const owners = new Set();
    for (let n = 0; n < 64; n++) owners.add((await many.lease(options)).owner);
    store.calls.length = 0;
    owners.add((await other.lease(options)).owner);
    assert.equal(owners.size, 1);
    // It reads the namespace and the page's line, and writes nothing.
    assert.deepEqual(
      store.calls.map(({ name, of }) => `${name} ${of}`),
      ['read namespace', 'read bucket'],
    );
    const drawn = await Promise.all([many, other].map((sharer) => sharer.draw(50)));
    assert.equal(countDuplicates(drawn.flat()), 0);
  },
);
