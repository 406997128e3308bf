'use strict';
// Stores that applications write: what is refused takes no slot, what fails later frees it, and a function `assign` instead of a
// register.

const assert = require('node:assert/strict');
const { pathToFileURL } = require('node:url');
const { describe, test } = require('node:test');

const { memory } = require('../../js/stores/memory.js');
const { LeaseTime } = require('../support/lease/lease-time.js');
const { createDirectory } = require('../support/own-directory.js');
const {
  CachedSnowFlake,
  SnowFlake,
  entry,
  layouts,
  rejects,
  runScript,
} = require('../support/support.js');

const OPTIONS = { datacenterId: 1, scope: 'process', ttl: 60_000, callTimeout: 60_000 };
/** More than the layout has worker IDs. */
const TRIES = 40;

const heldIn = (stored) => [...stored.values()].filter((text) => / held /.test(text)).length;

/** Runs a call while a property of an object is another one. */
async function replaced(object, name, value, call) {
  const before = object[name];
  object[name] = value;
  try {
    return await call();
  } finally {
    object[name] = before;
  }
}

describe('an invalid name takes no slot', () => {
  const NAMES = {
    undefined: {},
    'no text': { name: 7 },
    empty: { name: '' },
    'too long': { name: 'x'.repeat(501) },
    'a getter that throws': {
      get name() {
        throw new Error('no name');
      },
    },
    'a URL with a login': { name: 'postgres://app:geheim@db/x' },
    'a connection string': { name: 'host=h password=geheim' },
    'options as JSON': { name: '{"host":"h","password":"geheim"}' },
  };
  for (const [what, own] of Object.entries(NAMES)) {
    test(what, async () => {
      const stored = new Map();
      const { name, ...calls } = memory({ stored });
      for (let n = 0; n < TRIES; n++) {
        const store = Object.defineProperties(calls, Object.getOwnPropertyDescriptors(own));
        const { message } = await rejects(SnowFlake.lease(store, OPTIONS), 'ERR_SNOWFLAKE_CONFIG');
        assert.doesNotMatch(message, /geheim/);
      }
      assert.equal(stored.size, 0);
    });
  }
});

test('a name is read once, so that it cannot change', async () => {
  let reads = 0;
  const store = {
    ...memory(),
    get name() {
      if (reads++ > 0) throw new Error('no name');
      return 'own';
    },
  };
  const flake = await SnowFlake.lease(store, OPTIONS);
  assert.equal(flake.lease.store, 'own');
  await flake.close();
});

test('a bucketSize that no namespace has takes no slot', async () => {
  for (const bucketSize of [0, 2, 64, '8', null, 8n, {}]) {
    const stored = new Map();
    const store = { ...memory({ stored }), bucketSize };
    const { message } = await rejects(SnowFlake.lease(store, OPTIONS), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /^bucketSize of a LeaseStore must be 1, 8, 32 or left out; it is /);
    assert.equal(stored.size, 0);
  }
});

/** By what fails after a slot was taken: makes it fail. */
const FAULTS = {
  'an instance that cannot be created': (call) => {
    const { defineProperty } = Object;
    const fail = (object, key, how) => {
      if (key === 'datacenterId') throw new Error('planted');
      return defineProperty(object, key, how);
    };
    return replaced(Object, 'defineProperty', fail, call);
  },
  'a listener of new listeners that throws': async (call) => {
    const fail = (name) => {
      if (name === 'beforeExit') throw new Error('planted');
    };
    process.on('newListener', fail);
    try {
      return await call();
    } finally {
      process.off('newListener', fail);
    }
  },
};

for (const [what, failing] of Object.entries(FAULTS)) {
  for (const Class of [SnowFlake, CachedSnowFlake]) {
    test(`${Class.name}: ${what} frees the slot`, async () => {
      const stored = new Map();
      for (let n = 0; n < TRIES; n++) {
        const call = () => Class.lease(memory({ stored }), OPTIONS);
        await assert.rejects(failing(call), /planted/);
      }
      assert.equal(heldIn(stored), 0);
      const flake = await Class.lease(memory({ stored }), OPTIONS);
      assert.equal(heldIn(stored), 1);
      await flake.close();
    });
  }
}

test('an instance that cannot be created frees the slot of a directory', async () => {
  const url = pathToFileURL(createDirectory()).href;
  for (let n = 0; n < TRIES; n++) {
    const call = () => SnowFlake.lease(url, { datacenterId: 1, scope: 'process' });
    await assert.rejects(FAULTS['an instance that cannot be created'](call), /planted/);
  }
  const flake = await SnowFlake.lease(url, { datacenterId: 1, scope: 'process' });
  await flake.close();
});

test('is called outside of the async context in which a lease is taken, used and closed', async () => {
  // Of a process that loads the code of leases in that context.
  const { stdout, stderr } = await runScript(`
    const { AsyncLocalStorage } = require('node:async_hooks');
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { memory } = require(${JSON.stringify(require.resolve('../../js/stores/memory.js'))});
    const context = new AsyncLocalStorage();
    const seen = new Set();
    const calls = Object.entries(memory()).map(([name, value]) => [
      name,
      typeof value !== 'function' ? value : (...given) => {
        seen.add(name + ' ' + context.getStore());
        return value(...given);
      },
    ]);
    context.run('a transaction', async () => {
      const store = Object.fromEntries(calls);
      const flake = await SnowFlake.lease(store, { datacenterId: 1, scope: 'process', ttl: 1000 });
      while (flake.lease.renewals < 2) await new Promise((resolve) => setTimeout(resolve, 10));
      await flake.close();
      console.log([...seen].sort().join());
    });
  `);
  assert.match(stdout, /^(\w+ undefined,?)+\n$/, stdout + stderr);
  assert.match(stdout, /read .*write /);
});

test('a warning that cannot be emitted stops nothing', async () => {
  let now = Date.now();
  const flake = new SnowFlake({ datacenterId: 1, workerId: 3, clock: () => now });
  const first = flake.nextId();
  now -= 5000;
  const fail = () => {
    throw new Error('planted');
  };
  const second = await replaced(process, 'emitWarning', fail, async () => flake.nextId());
  assert.ok(second !== first);
});

describe('a store that assigns', () => {
  const layout = { ...layouts.node, epoch: Date.UTC(2026, 0, 1) };
  const options = { datacenterId: 2, layout, callTimeout: 60_000 };
  let next = 0;
  const assigner = (assign) => ({ name: 'own', assign });

  test('an instance has the worker ID that assign() returns', async () => {
    const requests = [];
    for (const Class of [SnowFlake, CachedSnowFlake]) {
      const workerId = next++;
      const store = assigner(async (request) => {
        requests.push(request);
        return workerId;
      });
      const flake = await Class.lease(store, options);
      assert.equal(flake.workerId, workerId);
      const { lease } = flake;
      assert.deepEqual([lease.store, lease.state, lease.expires], ['own', 'held', null]);
      assert.equal(flake.parse(flake.nextId()).workerId, workerId);
      await flake.close();
    }
    const [{ signal, ...request }] = requests;
    assert.deepEqual(request, { datacenterId: 2, workerIds: 32 });
    assert.ok(signal instanceof AbortSignal);
  });

  test('assign() may return a number instead of a promise', async () => {
    const flake = await SnowFlake.lease(
      assigner(() => next++),
      options,
    );
    await flake.close();
  });

  test('a value that is no worker ID is refused', async () => {
    for (const value of [-1, 32, 1.5, Number.NaN, '3', 3n, null, undefined, {}, [3], true]) {
      const { message } = await rejects(
        SnowFlake.lease(
          assigner(async () => value),
          options,
        ),
        'ERR_SNOWFLAKE_STORE',
      );
      assert.match(message, /assign\(\) of own returned must be a whole number from 0 to 31/);
    }
  });

  test('a worker ID that it returns again is refused, also after a close', async () => {
    const workerId = next++;
    const flake = await SnowFlake.lease(
      assigner(async () => workerId),
      options,
    );
    const again = () =>
      SnowFlake.lease(
        assigner(async () => workerId),
        options,
      );
    assert.match((await rejects(again(), 'ERR_SNOWFLAKE_STORE')).message, /a second time/);
    await flake.close();
    assert.match((await rejects(again(), 'ERR_SNOWFLAKE_STORE')).message, /a second time/);
    // Another datacenter's is another one.
    const other = await SnowFlake.lease(
      assigner(async () => workerId),
      {
        ...options,
        datacenterId: 3,
      },
    );
    await other.close();
  });

  test('a rejection is the cause, and names the store', async () => {
    for (const assign of [
      async () => Promise.reject(new Error('away')),
      () => {
        throw new Error('away');
      },
    ]) {
      const { message } = await rejects(
        SnowFlake.lease(assigner(assign), options),
        'ERR_SNOWFLAKE_STORE',
      );
      assert.match(message, /own failed to assign a worker ID: Error: away/);
    }
  });

  test('a promise that never settles ends with callTimeout', async () => {
    let given;
    const assign = ({ signal }) => {
      given = signal;
      return new Promise(() => {});
    };
    const { message } = await rejects(
      SnowFlake.lease(assigner(assign), { ...options, callTimeout: 50 }),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(message, /did not answer within 50 ms/);
    assert.equal(given.aborted, true);
  });

  test('assign() may lease from another store, and not from its own', async () => {
    const inner = assigner(async () => next++);
    const outer = assigner(async () => {
      const flake = await SnowFlake.lease(inner, options);
      await flake.close();
      return next++;
    });
    await (await SnowFlake.lease(outer, options)).close();
    let calls = 0;
    const own = assigner(async () => {
      calls++;
      return (await SnowFlake.lease(own, options)).workerId;
    });
    const { message } = await rejects(SnowFlake.lease(own, options), 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /leases from its own store/);
    assert.equal(calls, 1);
  });

  test('workerId and scope host are refused', async () => {
    const store = assigner(async () => assert.fail('it was called'));
    for (const one of [{ workerId: 3 }, { scope: 'host' }]) {
      await rejects(SnowFlake.lease(store, { ...options, ...one }), 'ERR_SNOWFLAKE_CONFIG');
    }
  });
});

test('a namespace that a lease creates beside others is warned of once, with their names', async (t) => {
  const time = new LeaseTime();
  t.after(() => time.end());
  const stored = new Map();
  const seen = await warningsOf(async () => {
    for (const namespace of ['orders', 'orders', 'users', 'oders', 'oders']) {
      const flake = await time.run(SnowFlake.lease(memory({ stored, namespace }), OPTIONS));
      await flake.close();
    }
    // A store may have no such function, or a wrong one.
    for (const namespaces of [undefined, () => [7], async () => 'x', () => new Promise(() => {})]) {
      const store = { ...memory(), namespaces };
      await (await time.run(SnowFlake.lease(store, OPTIONS))).close();
    }
  });
  assert.deepEqual(
    seen.map(({ code, message }) => [code, message.slice(message.indexOf('created'))]),
    [
      [
        'SNOWFLAKE_NAMESPACE_NEW',
        'created the namespace memory:users; its store has others: orders.',
      ],
      [
        'SNOWFLAKE_NAMESPACE_NEW',
        'created the namespace memory:oders; its store has others: orders, users.',
      ],
    ],
  );
});

/** The warnings of leases that this process emits during a call. */
async function warningsOf(call) {
  const seen = [];
  const note = (warning) => {
    if (/^SNOWFLAKE_(LEASE|NAMESPACE)_/.test(warning.code)) seen.push(warning);
  };
  process.on('warning', note);
  try {
    await call(seen);
    await new Promise(setImmediate);
    return seen;
  } finally {
    process.off('warning', note);
  }
}

test('a lease that fails warns once, and once when it is renewed again', async (t) => {
  const time = new LeaseTime(60_000);
  t.after(() => time.end());
  const records = memory();
  let isAway = false;
  let failures = 0;
  const write = async (...values) => {
    if (!isAway) return records.write(...values);
    failures++;
    throw new Error('away');
  };
  const store = { ...records, name: 'own', write };
  const seen = await warningsOf(async (warnings) => {
    // A node that no test before has opened, by the machine's clock.
    const options = { ...OPTIONS, datacenterId: 7, ttl: 1000 };
    const flake = await time.run(SnowFlake.lease(store, options));
    const { workerId } = flake;
    isAway = true;
    await time.until(() => failures > 2);
    isAway = false;
    await time.until(() => flake.lease.state === 'held' && flake.lease.failure === undefined);
    await time.until(() => warnings.length >= 2);
    // Within the minute.
    failures = 0;
    isAway = true;
    await time.until(() => failures > 1);
    isAway = false;
    await time.until(() => flake.lease.state === 'held' && flake.lease.failure === undefined);
    assert.equal(flake.workerId, workerId);
    await flake.close();
  });
  assert.deepEqual(
    seen.map(({ code }) => code),
    ['SNOWFLAKE_LEASE_FAILING', 'SNOWFLAKE_LEASE_RENEWED'],
  );
  assert.match(seen[0].message, /^The lease of workerId \d+ from own is not renewed: .*away/);
  assert.match(seen[0].detail, /^IDs continue until \d{4}-/);
  assert.match(seen[1].message, /is renewed again, \d+ s after it failed\.$/);
});
