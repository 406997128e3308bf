'use strict';
// Stores of an application's own that keep less than they promise: what adversaries found.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');
const { layouts, rejects } = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { leasesInTime } = require('../support/lease/lease-time.js');
const { memory } = require('../../js/stores/memory.js');

process.env.SNOWDRIFT_SHARED = createDirectory();
const layout = { ...layouts.node, workerBits: 2, datacenterBits: 6 };
const { lease, time } = leasesInTime({ layout, datacenterId: 1, ttl: 60_000 });

/** What is stored of slots. */
const slotsIn = (stored) => faulty({ stored }).slots;

test('a token of zeros, which nobody writes, is named', async () => {
  const store = faulty();
  const record = { token: '0'.repeat(16), text: 'snowdrift2' };
  store.read = async () => ({ record, now: time.now() });
  const { message } = await rejects(lease(store), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /it must return \{ record \} with the token and text that were written/);
});

test('errors that cannot be read are an error of the store', async () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const throwing = {
    get message() {
      throw 1;
    },
    get code() {
      throw 2;
    },
    get cause() {
      throw 3;
    },
  };
  const proxy = new Proxy(new Error('no'), {
    get() {
      throw 'g';
    },
    getPrototypeOf() {
      throw 'p';
    },
  });
  for (const thrown of [revoked.proxy, throwing, proxy, undefined, null, 7]) {
    const store = { ...memory(), read: () => Promise.reject(thrown) };
    const { message } = await rejects(lease(store), 'ERR_SNOWFLAKE_STORE');
    assert.match(message, /memory:default failed to read a record/);
  }
});

test('getters that throw in the place of optional functions are passed over', async () => {
  const store = memory();
  for (const name of ['show', 'namespaces', 'schemas']) {
    Object.defineProperty(store, name, {
      get() {
        throw new Error(name);
      },
    });
  }
  const [first, second] = [await lease(store, { ttl: 1000 }), await lease(store, { ttl: 1000 })];
  assert.equal(first.lease.owner, second.lease.owner);
});

test('a register that closes the lease within a call finds its slot free', async () => {
  const stored = new Map();
  const inner = memory({ stored });
  let flake;
  let closed;
  const store = {
    ...inner,
    write(key, record, before, options) {
      if (flake !== undefined && closed === undefined) closed = flake.close();
      return inner.write(key, record, before, options);
    },
  };
  flake = await lease(store, { ttl: 1000, scope: 'process' });
  await time.until(() => closed !== undefined);
  await time.run(closed);
  assert.deepEqual(
    slotsIn(stored).map(({ kind }) => kind),
    ['free'],
  );
});
