'use strict';
// `snowdrift recover` and `slots`: the orders of their calls beside those of leases, and faults between them, on a store in memory.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { after, afterEach, describe, test } = require('node:test');

const { Records } = require('../../js/cli/records.js');
const { create, recover } = require('../../js/cli/recover.js');
const { readStore } = require('../../js/cli/slots.js');
const native = require('../../js/runtime/native.js');
const { storm } = require('../support/amount.js');
const { newToken, readText } = require('../support/lease/records.js');
const { inRounds } = require('../support/lease/rounds.js');
const { memory } = require('../../js/stores/memory.js');
const { injectTime, unixNow } = require('../../js/runtime/time.js');
const {
  SnowFlake,
  countDuplicates,
  layouts,
  rejects,
  soon,
  until,
} = require('../support/support.js');

const TERMS = { ttl: 1000, maxClockSkew: 1000 };
const LIMITS = { ...TERMS, maxAhead: 0 };
const REACH = 3000;
const HOUR = 3_600_000;
const { signal } = new AbortController();

const open = [];
const closeAll = () => Promise.all(open.splice(0).map((flake) => flake.close()));
after(closeAll);

/** A store whose calls pass `before(call, key, text)` first, and `after` when they have replied. */
function hooked({ before, after, ...options }) {
  const inner = memory(options);
  const hook = (name) => [
    name,
    async (...values) => {
      const [key, record] = values;
      await before?.(name, key, record?.text);
      const reply = await inner[name](...values);
      await after?.(name, key, record?.text);
      return reply;
    },
  ];
  return { ...inner, ...Object.fromEntries(['read', 'write'].map(hook)) };
}

const recordsOf = (options) => new Records(hooked(options));

/** The datacenter of a store's leases: two stores may give out the same node, which this process can have once. */
const datacenters = new WeakMap();
let stores = 0;
function datacenterOf(stored) {
  if (!datacenters.has(stored)) datacenters.set(stored, stores++ % 8);
  return datacenters.get(stored);
}

/** The key of the bucket of a store's leases. */
const keyOf = (stored) => `${datacenterOf(stored)}/0`;

async function leased(stored, { datacenterId = datacenterOf(stored), mayForget, ...options } = {}) {
  const all = { datacenterId, scope: 'process', ...TERMS, ...options };
  const flake = await SnowFlake.lease({ ...memory({ stored }), mayForget }, all);
  open.push(flake);
  return flake;
}

const created = (stored, layout) => create(recordsOf({ stored }), LIMITS, layout);

/** The fields of a record. */
async function readIn(stored, key) {
  const { record } = await memory({ stored }).read(key, { signal });
  return record && readText(record.text);
}

const namespaceIn = (stored) => readIn(stored, 'namespace');

/** Writes a record in the place of what is there. */
async function put(stored, key, text) {
  const register = memory({ stored });
  const { record } = await register.read(key, { signal });
  await register.write(key, { token: newToken(), text }, record?.token, { signal });
}

/** Changes the text of a record. */
async function rewrite(stored, key, change) {
  const { record } = await memory({ stored }).read(key, { signal });
  await put(stored, key, change(record.text));
}

/** IDs of a holder, once the clock has passed its floor. */
async function drawn(flake, count = 100) {
  await until(() => Date.now() > flake.lease.floor);
  return soon(() => flake.nextIds(count));
}

const endOf = (tick, layout = layouts.node) => native.tickEnd(layout, tick);

const fail = () => {
  throw new Error('cut off');
};

// First: a node that was held before has a floor of its own.
test('a namespace that was created ahead is the same for leases', async () => {
  const stored = new Map();
  const { namespace } = await created(stored);
  const flake = await leased(stored);
  assert.equal(flake.lease.floor, null);
  const { id, layout, limits } = await namespaceIn(stored);
  assert.deepEqual([id, layout, limits], [namespace.id, '41.3.5.2.12 1 1580486400000', LIMITS]);
  const again = await rejects(created(stored), 'ERR_SNOWFLAKE_STORE');
  assert.match(again.message, new RegExp(`exists already, with the ID ${id}: .*snowdrift recover`));
});

test('in a store that may forget, the first holder waits unless the namespace was created ahead', async () => {
  const mayForget = true;
  for (const isAhead of [true, false]) {
    const stored = new Map();
    if (isAhead) await created(stored);
    const before = Date.now();
    const flake = await leased(stored, { mayForget });
    if (isAhead) assert.equal(flake.lease.floor, null);
    else assert.ok(flake.lease.floor >= before + REACH);
  }
});

// Side by side: they wait for floors to pass.
describe('living holders', { concurrency: 8 }, () => {
  after(closeAll);

  for (const [name, run] of [
    ['recover --new', (records) => create(records, LIMITS, undefined)],
    ['recover', (records) => recover(records, LIMITS, layouts.node, true)],
  ]) {
    test(`where a store forgets, the write of ${name} may come late: it allows nothing`, async () => {
      const stored = new Map();
      const mayForget = true;
      let late;
      const before = async (name, _, text) => {
        if (name !== 'write') return;
        late = text;
        fail();
      };
      await rejects(run(recordsOf({ stored, before })), 'ERR_SNOWFLAKE_STORE');
      // Others create it, and issue IDs; it is lost; then the write comes.
      const first = await leased(stored, { mayForget });
      const ids = [...(await drawn(first))];
      await until(() => first.lease.renewals > 1);
      const { ceiling } = first.lease;
      stored.clear();
      await put(stored, 'namespace', late);
      const next = await leased(stored, { mayForget });
      assert.ok(next.lease.floor >= ceiling, `${next.lease.floor} of ${ceiling}`);
      assert.equal(countDuplicates([...ids, ...(await drawn(next))]), 0);
    });
  }

  test('a holder that comes between the writes of recover --new uses that namespace', async () => {
    const stored = new Map();
    let flake;
    const after = async (name) => {
      if (name === 'write') flake ??= await leased(stored);
    };
    const { namespace } = await create(recordsOf({ stored, after }), LIMITS, undefined);
    assert.equal(namespace.id, (await namespaceIn(stored)).id);
    assert.equal(flake.lease.state, 'held');
  });

  test('recover --new says that another process deletes what it writes', async () => {
    for (const failing of [1, 2]) {
      const store = memory();
      let writes = 0;
      const write = async (...values) =>
        ++writes === failing ? { isWritten: false, found: undefined } : store.write(...values);
      const records = new Records({ ...store, write });
      const { message } = await rejects(create(records, LIMITS, undefined), 'ERR_SNOWFLAKE_STORE');
      assert.match(message, /was deleted meanwhile: run the command again/);
    }
  });

  test('two holders go on without duplicates after a recover, and after several at one time', async () => {
    const stored = new Map();
    await created(stored);
    const holders = [await leased(stored), await leased(stored)];
    const ids = [];
    for (const runs of [1, 3]) {
      for (const flake of holders) ids.push(...(await drawn(flake)));
      const ceilings = holders.map(({ lease }) => lease.ceiling);
      const recovered = await Promise.all(
        Array.from({ length: runs }, () => recover(recordsOf({ stored }), {}, undefined)),
      );
      const floors = recovered.map(({ namespace }) => endOf(namespace.floor));
      const least = Math.min(...floors);
      assert.ok(least >= Math.max(...ceilings));
      await until(() =>
        holders.every(({ lease }) => lease.floor >= least && lease.state === 'held'),
      );
    }
    for (const flake of holders) ids.push(...(await drawn(flake)));
    assert.equal(countDuplicates(ids), 0);
  });

  test('after a restore from a backup and a recover, new IDs are above all that were issued', async () => {
    const layout = { ...layouts.node, workerBits: 0, sequenceBits: 17 };
    const options = { layout, datacenterId: 2 };
    const stored = new Map();
    await created(stored, layout);
    const flake = await leased(stored, options);
    const backup = new Map(stored);
    const { ceiling } = flake.lease;
    await until(() => flake.lease.ceiling > ceiling);
    const issued = await soon(() => flake.nextIds(1000));
    const last = flake.lease.ceiling;
    await flake.close();
    const restored = new Map(backup);
    const { namespace } = await recover(recordsOf({ stored: restored }), {}, undefined);
    assert.ok(endOf(namespace.floor, layout) >= last);
    const next = await leased(restored, options);
    assert.equal(next.workerId, flake.workerId);
    assert.ok((await soon(next.nextId)) > issued.at(-1));
  });

  for (const cut of ['read', 'write']) {
    test(`a recover that ends at a ${cut} leaves no slot below the floor, and a second one ends it`, async () => {
      const stored = new Map();
      await created(stored);
      const old = await leased(stored);
      const ids = [...(await drawn(old))];
      let isRaised = false;
      const before = (name, key) => {
        if (isRaised && name === cut && key !== 'namespace') fail();
      };
      const after = (name, key) => {
        isRaised ||= name === 'write' && key === 'namespace';
      };
      const records = recordsOf({ stored, before, after });
      const { message } = await rejects(recover(records, {}, undefined), 'ERR_SNOWFLAKE_STORE');
      assert.match(message, /cut off.*The floor is raised.*run it again$/);
      const end = endOf((await namespaceIn(stored)).floor);
      assert.ok(end >= old.lease.ceiling);
      // All others start above the floor.
      const next = await leased(stored);
      assert.ok(next.lease.floor >= end);
      await recover(recordsOf({ stored }), {}, undefined);
      await until(() => [old, next].every(({ lease }) => lease.floor > end));
      for (const flake of [old, next]) ids.push(...(await drawn(flake)));
      assert.equal(countDuplicates(ids), 0);
    });
  }

  test('where the namespace alone was deleted, holders are named, also in buckets that the new one does not count', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    const other = (datacenterOf(stored) + 1) % 8;
    const ids = [...(await drawn(flake))];
    stored.delete('default/namespace');
    // Another process has created the namespace, and counts its own bucket alone.
    await (await leased(stored, { datacenterId: other, scope: 'process' })).close();
    assert.equal((await namespaceIn(stored)).buckets, String(other));
    const { namespace, holders } = await recover(recordsOf({ stored }), {}, undefined);
    assert.equal(holders, 1);
    assert.equal((await readIn(stored, keyOf(stored))).id, namespace.id);
    const least = endOf(namespace.floor);
    await until(() => flake.lease.floor >= least && flake.lease.state === 'held');
    assert.equal(countDuplicates([...ids, ...(await drawn(flake))]), 0);
  });

  test('recover leaves a bucket alone whose line others have taken above the floor', async () => {
    const stored = new Map();
    await created(stored);
    await leased(stored);
    let isRaised = false;
    let taken;
    const before = async (_, key) => {
      if (!isRaised || key === 'namespace' || taken !== undefined) return;
      taken = await leased(stored);
    };
    const after = (name) => {
      isRaised ||= name === 'write';
    };
    const { namespace, holders } = await recover(
      recordsOf({ stored, before, after }),
      {},
      undefined,
    );
    assert.ok(taken.lease.floor >= endOf(namespace.floor));
    const { id, slots } = await readIn(stored, keyOf(stored));
    const own = slots.find((slot) => slot.workerId === taken.workerId);
    assert.deepEqual([id, own.kind, holders], [namespace.id, 'held', 0]);
  });
});

describe('records', () => {
  afterEach(closeAll);

  test('each bucket gets the ID and the horizon, and its lines are free', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    const { slots: before } = await readIn(stored, keyOf(stored));
    const started = unixNow();
    const { namespace, holders } = await recover(recordsOf({ stored }), {}, undefined);
    const { id, floor, slots } = await readIn(stored, keyOf(stored));
    assert.deepEqual([id, holders], [namespace.id, 1]);
    assert.ok(endOf(namespace.floor) >= started + REACH, 'the horizon');
    assert.ok(endOf(floor) >= started + REACH, 'its own horizon');
    assert.deepEqual(
      slots.map(({ owner, kind, workerId }) => [owner, kind, workerId]),
      before.map(({ owner, workerId }) => [owner, 'free', workerId]),
    );
    await flake.close();
  });

  test('what others change between the read and the write of a command stays', async () => {
    const stored = new Map();
    await created(stored);
    let isChanged = false;
    const before = async (name, key) => {
      if (name !== 'write' || key !== 'namespace' || isChanged) return;
      isChanged = true;
      await rewrite(stored, key, (text) =>
        text.replace('limits 1000 1000 0', 'limits 9000 1000 70'),
      );
    };
    await recover(recordsOf({ stored, before }), { maxClockSkew: 2000 }, undefined);
    const { limits } = await namespaceIn(stored);
    assert.deepEqual(limits, { ttl: 9000, maxClockSkew: 2000, maxAhead: 70 });
  });

  test('a holder that renews while its bucket is written keeps what it had confirmed', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    const key = keyOf(stored);
    let renewed;
    const before = async (name, of) => {
      if (name !== 'write' || of === 'namespace' || renewed !== undefined) return;
      // A renewal far above the floor, sent at the worst moment.
      const [{ ceiling }] = (await readIn(stored, key)).slots;
      renewed = ceiling + 60_000;
      await rewrite(stored, key, (text) => text.replace(` ${ceiling} `, ` ${renewed} `));
    };
    const { namespace } = await recover(recordsOf({ stored, before }), {}, undefined);
    assert.ok(renewed > namespace.floor);
    const { id, slots } = await readIn(stored, key);
    assert.deepEqual([id, slots[0].ceiling], [namespace.id, renewed]);
    await flake.close();
  });

  test('a bucket gets the ID of the latest recover, also from an earlier one', async () => {
    const stored = new Map();
    await created(stored);
    await leased(stored);
    let latest;
    let isRaised = false;
    const before = async (_, key) => {
      // The other one is whole before this one has read the bucket that it is to write.
      if (!isRaised || key === 'namespace' || latest !== undefined) return;
      latest = 'under way';
      const cut = (call, of) => call === 'write' && of !== 'namespace' && fail();
      const other = recordsOf({ stored, before: cut });
      await rejects(recover(other, {}, undefined), 'ERR_SNOWFLAKE_STORE');
      latest = (await namespaceIn(stored)).id;
    };
    const after = (name) => {
      isRaised ||= name === 'write';
    };
    const { namespace } = await recover(recordsOf({ stored, before, after }), {}, undefined);
    assert.notEqual(namespace.id, latest);
    assert.equal((await readIn(stored, keyOf(stored))).id, latest);
  });

  test('no floor and no limit falls, whatever the clock of the store shows', async () => {
    const stored = new Map();
    await created(stored);
    const first = await recover(recordsOf({ stored }), { ttl: 5000 }, undefined);
    const now = () => Date.now() - HOUR;
    const second = await recover(recordsOf({ stored, now }), { ttl: 2000 }, undefined);
    const values = ({ namespace: { floor, ttl } }) => [floor, ttl];
    assert.deepEqual(values(second), values(first));
    assert.notEqual(second.namespace.id, first.namespace.id);
  });

  test('a floor that no holder can write falls, and leases take slots again', async () => {
    const stored = new Map();
    await created(stored);
    await (await leased(stored)).close();
    const far = native.tickAt(layouts.node, Date.now() + 24 * HOUR);
    await rewrite(stored, 'namespace', (text) => text.replace(/floor .*/, `floor ${far}`));
    const refused = await rejects(leased(stored), 'ERR_SNOWFLAKE_STORE');
    assert.match(
      refused.message,
      /further ahead of its clock than any holder can be.*snowdrift recover URL/,
    );
    await rewrite(stored, keyOf(stored), (text) => text.replace(/ -1\n/, ` ${far}\n`));
    const { namespace } = await recover(recordsOf({ stored }), {}, undefined);
    assert.ok(namespace.floor < far);
    const flake = await leased(stored);
    assert.ok(flake.lease.floor <= endOf(namespace.floor) + REACH);
  });

  test('recover creates a namespace that was lost, also where others are faster', async () => {
    for (const isFaster of [false, true]) {
      const stored = new Map();
      const before = async (name) => {
        if (isFaster && name === 'write' && stored.size === 0) await leased(stored);
      };
      const records = recordsOf({ stored, before });
      const started = Date.now();
      const { message } = await rejects(recover(records, LIMITS, undefined), 'ERR_SNOWFLAKE_STORE');
      assert.match(message, /no record of a namespace.* --lost and the values .*: --layout\./);
      const { namespace } = await recover(records, LIMITS, layouts.node, true);
      assert.ok(endOf(namespace.floor) >= started + REACH);
      assert.equal((await namespaceIn(stored)).floor, namespace.floor);
    }
  });

  test('recover of a namespace without records is refused, unless the user confirms that it was lost', async () => {
    const stored = new Map();
    await create(new Records(memory({ stored, namespace: 'orders' })), LIMITS, undefined);
    const before = new Map(stored);
    const records = recordsOf({ stored });
    const { message } = await rejects(
      recover(records, LIMITS, layouts.node),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(
      message,
      /Check its name: this store has orders\. If all its records were lost, pass --lost\. If there never/,
    );
    assert.deepEqual(stored, before);
    const started = Date.now();
    for (const limits of [LIMITS, {}]) {
      const { namespace } = await recover(records, limits, layouts.node, true);
      assert.ok(endOf(namespace.floor) >= started + REACH);
    }
  });

  test('a namespace that was lost counts the buckets that are there', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    stored.delete('default/namespace');
    const refused = await rejects(created(stored), 'ERR_SNOWFLAKE_STORE');
    assert.match(refused.message, /is not new: .*Leave out --new/);
    const { message } = await rejects(
      recover(recordsOf({ stored }), {}, undefined),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(message, /the record of the namespace is gone\. Pass .*: --layout, --ttl/);
    const { holders } = await recover(recordsOf({ stored }), LIMITS, layouts.node);
    const { buckets } = await namespaceIn(stored);
    assert.deepEqual([holders, buckets], [1, String(datacenterOf(stored))]);
    await flake.close();
  });

  test('a namespace of another layout is refused, and left as it is', async () => {
    const stored = new Map();
    await created(stored);
    const copy = new Map(stored);
    const { message } = await rejects(
      recover(recordsOf({ stored }), {}, layouts.twitter),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(
      message,
      /another layout or epoch: 41\/3\/5\/2\/12@1\+1580486400000, not 41\/5\/5/,
    );
    assert.deepEqual(stored, copy);
  });

  test('a record of another version is refused, and left as it is', async () => {
    for (const value of [`${'1'.repeat(16)} snowdrift9 namespace`, 'nonsense']) {
      const stored = new Map([['default/namespace', value]]);
      const copy = new Map(stored);
      for (const [run, said] of [
        [() => created(stored), /exists already: /],
        [
          () => recover(recordsOf({ stored }), LIMITS, layouts.node),
          /another format: the key names/,
        ],
      ]) {
        const { message } = await rejects(run(), 'ERR_SNOWFLAKE_STORE');
        assert.match(message, said);
      }
      assert.deepEqual(stored, copy);
    }
  });

  test('a damaged record of a namespace is replaced by one of the values that are passed', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    await rewrite(stored, 'namespace', (text) => text.replace('limits', 'limit'));
    const records = recordsOf({ stored });
    const { message } = await rejects(recover(records, {}, undefined), 'ERR_SNOWFLAKE_STORE');
    assert.match(
      message,
      /the record of the namespace is damaged in line 3\. Pass .*--layout, --ttl/,
    );
    const { replaced, holders } = await recover(records, LIMITS, layouts.node);
    assert.deepEqual(replaced, ['the record of the namespace, which is damaged in line 3']);
    assert.equal(holders, 1);
    await flake.close();
  });

  test('a namespace that does not exist is named beside those that do', async () => {
    const stored = new Map();
    const other = new Records(memory({ stored, namespace: 'ordrs' }));
    const look = () => rejects(readStore(other), 'ERR_SNOWFLAKE_STORE');
    assert.match(
      (await look()).message,
      /^memory:ordrs has no record .*Check its name\. If it was lost: .*\. Otherwise the first/,
    );
    for (const namespace of ['orders', 'default', 'a.b']) {
      await create(new Records(memory({ stored, namespace })), LIMITS, undefined);
    }
    const said = /Check its name: this store has a\.b, default, orders\. .* recover URL --new does/;
    assert.match((await look()).message, said);
    for (let n = 0; n < 30; n++) stored.set(`n${n}/namespace`, 'x');
    assert.match((await look()).message, /, n24 and 13 more\. /);
    const schemas = async () => ['ids', 'a\nb'];
    const inSql = new Records({ ...memory({ namespace: 'ordrs' }), schemas });
    assert.match(
      (await rejects(readStore(inSql), 'ERR_SNOWFLAKE_STORE')).message,
      /Check its name and schema: this store has schema a\\u000ab, schema ids\. /,
    );
    // It may name none, or fail to.
    for (const [namespaces, said] of [
      [undefined, /Check its name\. /],
      [fail, /Check its name\. /],
      [async () => ['a\nb', 'orders'], /Check its name: this store has orders\. /],
    ]) {
      const records = new Records({ ...memory({ namespace: 'ordrs' }), namespaces });
      const { message } = await rejects(readStore(records), 'ERR_SNOWFLAKE_STORE');
      assert.match(message, said);
    }
  });

  test('slots of a namespace whose own record is gone are shown with what to do', async () => {
    const stored = new Map();
    await created(stored);
    await leased(stored);
    stored.delete('default/namespace');
    const { slots, fault } = await readStore(recordsOf({ stored }));
    assert.deepEqual([slots.length, slots[0].state], [1, 'held']);
    assert.match(fault, /namespace is gone.*snowdrift recover/);
  });

  test('a slot that was released has no end of a hold', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    const [{ expires }] = (await readStore(recordsOf({ stored }))).slots;
    assert.equal(typeof expires, 'number');
    await flake.close();
    const [slot] = (await readStore(recordsOf({ stored }))).slots;
    assert.deepEqual([slot.state, slot.expires], ['free', null]);
  });

  /** A namespace with a held line and one that nobody can read, and buckets that are damaged or of others. */
  async function damagedStore() {
    const stored = new Map();
    await created(stored, layouts.twitter);
    // Below those of the lines that follow.
    const flake = await leased(stored, { layout: layouts.twitter, workerId: 7 });
    const far = native.tickAt(layouts.twitter, Date.now() + 24 * HOUR);
    const line = `30 free 0000000000000055 0000a1f3 -1 ${far} 0 0 0 -`;
    await rewrite(stored, keyOf(stored), (text) => `${text}\n30 gone\n31${line.slice(2)} host`);
    await put(stored, '20/0', 'snowdrift2 bucket nonsense');
    await put(stored, '21/0', 'snowdrift9 bucket');
    stored.set('default/22/0', 'nonsense');
    await rewrite(stored, 'namespace', (text) => `${text} 20-22`);
    return { stored, flake, far };
  }

  test('slots names what nobody can read, and shows the rest', async () => {
    const { stored, flake, far } = await damagedStore();
    const before = (_, key) => {
      if (key === '9/0') fail();
    };
    await rewrite(stored, 'namespace', (text) => text.replace(' 20-', ' 9 20-'));
    const { slots } = await readStore(recordsOf({ stored, before }));
    const own = slots.filter(({ state }) => state === 'held');
    assert.deepEqual(
      own.map(({ workerId, pid }) => [workerId, pid]),
      [[flake.workerId, process.pid]],
    );
    const faults = slots.flatMap(({ fault }) => fault ?? []);
    const [of, other] = [keyOf(stored), 'is no record of this version of snowdrift'];
    const when = new Date(endOf(far, layouts.twitter)).toISOString();
    assert.deepEqual(
      new Set(faults),
      new Set([
        `memory:default: the key ${of} has a line of workerId 30 that is damaged`,
        `memory:default: the key ${of} has a line of workerId 31 that has a ceiling that no holder can have: ${when}`,
        'memory:default: the key 20/0 is damaged in line 1',
        `memory:default: the key 21/0 ${other}`,
        `memory:default: the key 22/0 ${other}`,
        faults.find((fault) => fault.includes('cut off')),
      ]),
    );
    await rewrite(stored, 'namespace', (text) => text.replace(/.$/, 'x'));
    const { fault } = await readStore(recordsOf({ stored }));
    assert.match(fault, /the key namespace is damaged in line 6/);
  });

  test('slots ends in time where a store is slow, and says how much it did not read', async () => {
    const stored = new Map();
    await created(stored, layouts.twitter);
    await rewrite(stored, 'namespace', (text) => `${text} 0-31`);
    // The first call takes so long that there is no time for others.
    let late = 0;
    const start = process.hrtime.bigint();
    const hostMonotonic = () => Number((process.hrtime.bigint() - start) / 1_000_000n) + late;
    injectTime({
      ...{ unixNow: Date.now, monotonic: () => performance.now(), hostMonotonic },
      ...{ setTimeout, clearTimeout },
    });
    try {
      const before = (_, key) => {
        if (key === '0/0') late = 60_001;
      };
      const { slots } = await readStore(recordsOf({ stored, before }));
      const [{ fault }, ...others] = slots;
      assert.match(fault, /^memory:default: 31 of its 32 records were not read$/);
      assert.deepEqual(others, []);
    } finally {
      injectTime();
    }
  });

  test('recover replaces what is damaged, and names it and what no lease uses', async () => {
    const { stored, flake, far } = await damagedStore();
    const started = unixNow();
    const kept = ['default/21/0', 'default/22/0'].map((key) => [key, stored.get(key)]);
    const { namespace, replaced, unusable } = await recover(recordsOf({ stored }), {}, undefined);
    const of = keyOf(stored);
    assert.deepEqual(
      new Set(replaced),
      new Set([
        `the line of workerId 30 in the record ${of}`,
        'the record 20/0, which is damaged in line 1',
      ]),
    );
    const named = unusable.map((text) => /^(workerId \d+ of )?the record (\S+), /.exec(text)[2]);
    assert.deepEqual(named.sort(), [of, '21/0', '22/0'].sort());
    for (const [key, value] of kept) assert.equal(stored.get(key), value);
    const { id, floor, slots } = await readIn(stored, of);
    assert.equal(id, namespace.id);
    assert.deepEqual(
      slots.map(({ workerId }) => workerId),
      [flake.workerId, 31],
    );
    assert.equal(slots[1].ceiling, far, 'it may have been issued under a wrong clock');
    const fresh = await readIn(stored, '20/0');
    assert.deepEqual([fresh.id, fresh.slots], [namespace.id, []]);
    for (const one of [fresh.floor, floor]) {
      assert.ok(endOf(one, layouts.twitter) >= started + REACH);
    }
    await flake.close();
  });

  test('a namespace that counts more buckets than its layout has ends no command', async () => {
    const stored = new Map();
    await created(stored);
    const ranges = 'buckets 0-18446744073709551614';
    await rewrite(stored, 'namespace', (text) => text.replace('buckets', ranges));
    const reads = [];
    const before = (name, key) => {
      if (name === 'read') reads.push(key);
    };
    assert.deepEqual((await readStore(recordsOf({ stored, before }))).slots, []);
    assert.deepEqual(reads.slice(1), ['0/0', '1/0', '2/0', '3/0', '4/0', '5/0', '6/0', '7/0']);
    assert.deepEqual((await readStore(recordsOf({ stored, before }), 5)).slots, []);
    assert.deepEqual(reads.slice(9), ['namespace', '5/0']);
    await recover(recordsOf({ stored }), {}, undefined);
  });

  test('a layout of many buckets is read as far as a command reads', () => {
    const fields = { timestampBits: 10, datacenterBits: 20, workerBits: 20, sequenceBits: 5 };
    const layout = { ...layouts.node, ...fields };
    const make = (ranges) =>
      native
        .newNamespaceText(newToken(), layout, 1000, 0, 0, 32)
        .replace('buckets', `buckets ${ranges}`);
    assert.deepEqual(native.bucketKeys(make('3 70000'), false), {
      keys: ['0/3', '2/4464'],
      isWhole: true,
    });
    const { keys, isWhole } = native.bucketKeys(make('0-9000000000000'), true);
    assert.deepEqual([keys.length, isWhole, keys.at(-1)], [2 ** 17, false, '3/32767']);
  });
});

test('a clone of a machine draws no ID of a namespace twice', () => {
  const draw = () => {
    const text = `require('node:crypto').randomBytes = (count) => Buffer.alloc(count, 7);
      console.log(require(${JSON.stringify(require.resolve('../../js/runtime/native.js'))}).newToken());`;
    return execFileSync(process.execPath, ['-e', text], { encoding: 'utf8' }).trim();
  };
  const [one, other] = [draw(), draw()];
  assert.match(one, /^[0-9a-f]{16}$/);
  assert.notEqual(one, other);
});

test('recover says by when living holders issue: 0.6 ttl after their buckets were written, and by a clock behind the store', async () => {
  const stored = new Map();
  await created(stored);
  const before = unixNow();
  const { latest } = await recover(recordsOf({ stored }), { ttl: 60_000 }, undefined);
  assert.ok(latest >= before + 96_000 + 3 * LIMITS.maxClockSkew, `${latest - before} ms`);
});

test('living holders have their floors by the time that recover says', { skip: storm }, () =>
  inRounds('recover', async () => {
    const stored = new Map();
    // Renewals are so far apart that the horizons of holders are later than the floor.
    const limits = { ...LIMITS, ttl: 6000 };
    await create(recordsOf({ stored }), limits, undefined);
    const holders = [];
    for (let n = 0; n < 3; n++) holders.push(await leased(stored, { ttl: limits.ttl }));
    const { namespace, latest } = await recover(recordsOf({ stored }), {}, undefined);
    const end = endOf(namespace.floor);
    await until(() => holders.every(({ lease }) => lease.floor >= end && lease.state === 'held'));
    const floors = holders.map(({ lease }) => lease.floor);
    assert.ok(Math.max(...floors) > end, 'later than that of the namespace');
    return floors.every((one) => one <= latest);
  }),
);

test('a record that never stops changing ends a command', async () => {
  const stored = new Map();
  await created(stored);
  const before = async (name, key) => {
    if (name === 'write') await rewrite(stored, key, (text) => text);
  };
  const { message } = await rejects(
    recover(recordsOf({ stored, before }), {}, undefined),
    'ERR_SNOWFLAKE_STORE',
  );
  assert.match(message, /keep changing the record of the namespace. Run the command again/);
});
