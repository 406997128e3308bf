'use strict';
// A lease each of whose calls to the store goes wrong in turn, in each way: while it opens, joins the host's slot, renews, looks for
// another slot after a loss, and releases. Everything settles in time, nothing is left behind, and no ID comes twice.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('../support/own-directory.js');
const { SnowFlake, countDuplicates, layouts } = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { LeaseTime } = require('../support/lease/lease-time.js');

const TTL = 1000;
/** Two slots. Another epoch is another layout, whose pages no other test left. */
const layoutOf = (n) => ({ ...layouts.node, workerBits: 1, epoch: layouts.node.epoch + n });
/** A wait for a slot: one that was written late expires meanwhile. */
const options = { ttl: TTL, maxClockSkew: 100, callTimeout: 300, waitForSlot: 10_000 };
/** In which a lease has a slot again, whatever went wrong, ms. */
const MOST_MS = 20_000;

const never = () => new Promise(() => {});
const throwing = {
  get record() {
    throw new Error('thrown');
  },
};

/** By name: what becomes of a call. `make` makes it. */
const FAULTS = {
  fails: () => Promise.reject(new Error('away')),
  hangs: never,
  'fails after it was made': (make) => make().then(() => Promise.reject(new Error('away'))),
  'has no reply': (make) => make().then(never),
  'is late': async (make, { time }) => {
    await time.sleep(500);
    return make();
  },
  'is very late': async (make, { time }) => {
    await time.sleep(3 * TTL);
    return make();
  },
  throws: () => {
    throw new Error('thrown at once');
  },
  'returns nothing': () => undefined,
  'returns rubbish': () => throwing,
  'finds all lost': (make, { store }) => {
    store.lose();
    return make();
  },
  'closes the lease': (make, { close }) => {
    close();
    return make();
  },
  'closes the lease, and hangs': (_, { close }) => {
    close();
    return never();
  },
  'restores the machine': (make, { flake }) => {
    flake?.afterRestore();
    return make();
  },
};

/** Each listener that a lease has while it is open. */
const listeners = () =>
  ['beforeExit', 'SIGTERM', 'SIGINT'].map((event) => process.listenerCount(event));

/**
 * The life of a lease whose call number `at` goes wrong.
 * @returns whether it made so many calls
 */
async function live(time, fault, at, own) {
  const before = listeners();
  const store = faulty();
  const all = { ...options, ...own };
  const ids = [];
  const draw = (from) => {
    try {
      ids.push(...from.nextIds(50));
    } catch ({ code }) {
      assert.match(code, /^ERR_SNOWFLAKE_(LEASE_EXPIRED|WINDOW|CLOSED)$/);
    }
  };
  // Another process: of the host, or one that has the other slot.
  const other = await time.run(SnowFlake.lease(faulty({ stored: store.stored }), all));
  let calls = 0;
  let closing;
  const scene = { time, store, flake: undefined };
  scene.close = () => {
    closing ??= scene.flake?.close();
  };
  for (const name of ['now', 'read', 'write']) {
    const call = store[name];
    store[name] = (...values) => {
      const make = () => call(...values);
      return ++calls === at ? fault(make, scene) : make();
    };
  }

  const flake = await time.run(SnowFlake.lease(store, all));
  scene.flake = flake;
  const within = async (what, condition) => {
    const start = time.passed;
    await time.until(() => closing !== undefined || condition());
    const ms = time.passed - start;
    assert.ok(ms < MOST_MS, `${what} after ${ms} ms`);
    draw(flake);
    draw(other);
  };
  const isHeld = () => flake.lease.state === 'held' && flake.lease.failure === undefined;
  const { renewals } = flake.lease;
  await within('renewed', () => isHeld() && flake.lease.renewals !== renewals);
  // The only user of its slot from now on.
  await time.run(other.close());
  await within('held', isHeld);
  for (const lose of [() => store.steal(flake.workerId, { ttl: TTL }), () => store.lose()]) {
    const { owner } = flake.lease;
    if (store.slot(flake.workerId) !== undefined) lose();
    await within('another slot', () => isHeld() && flake.lease.owner !== owner);
    const held = flake.lease;
    await within('renewed', () => isHeld() && flake.lease.renewals !== held.renewals);
  }
  const start = time.passed;
  scene.close();
  await time.run(closing);
  assert.ok(time.passed - start < 4000, `closed after ${time.passed - start} ms`);
  assert.equal(flake.lease.state, 'released');
  assert.throws(flake.nextId, { code: 'ERR_SNOWFLAKE_CLOSED' });
  assert.equal(countDuplicates(ids), 0);
  const made = calls;
  await time.advance(4 * TTL);
  assert.deepEqual([calls, time.waiting, listeners()], [made, 0, before]);
  return calls >= at;
}

const noHost = process.platform !== 'linux' && 'tried on Linux, with its memory file system';

for (const [scope, skip] of [
  ['process', false],
  ['host', noHost],
]) {
  for (const [n, [name, fault]] of Object.entries(FAULTS).entries()) {
    test(`with scope ${scope}, each call in turn that ${name}`, { skip }, async () => {
      const unhandled = [];
      const note = (reason) => unhandled.push(reason);
      process.on('unhandledRejection', note);
      const time = new LeaseTime();
      try {
        for (let at = 1; ; at++) {
          const own = { scope, layout: layoutOf(n), datacenterId: at % 8 };
          const isMade = await live(time, fault, at, own).catch((failure) => {
            throw new Error(`call ${at}: ${failure.message}`, { cause: failure });
          });
          if (!isMade) {
            assert.ok(at > 10, `${at} calls`);
            break;
          }
          assert.ok(at < 500, 'it ends');
        }
        await new Promise(setImmediate);
        assert.deepEqual(unhandled, []);
      } finally {
        time.end();
        process.off('unhandledRejection', note);
      }
    });
  }
}
