'use strict';
// `snowdrift namespace`: the orders of its writes beside those of leases, and faults between them, on a store in memory.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { after, afterEach, describe, test } = require('node:test');

const { create } = require('../../js/cli/create.js');
const { Records, newId } = require('../../js/cli/namespace.js');
const { recover } = require('../../js/cli/recover.js');
const { readStore } = require('../../js/cli/slots.js');
const native = require('../../js/runtime/native.js');
const { storm } = require('../support/amount.js');
const { inRounds } = require('../support/lease/rounds.js');
const { memory } = require('../../js/stores/memory.js');
const { unixNow } = require('../../js/runtime/time.js');
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
const REACH = 2000;
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
  return { ...inner, ...Object.fromEntries(['read', 'write', 'list'].map(hook)) };
}

const recordsOf = (options) => new Records(hooked(options));

/** The datacenter of a store's leases: two stores may give out the same node, which this process can have once. */
const datacenters = new WeakMap();
let stores = 0;
function datacenterOf(stored) {
  if (!datacenters.has(stored)) datacenters.set(stored, stores++ % 8);
  return datacenters.get(stored);
}

async function leased(stored, { datacenterId = datacenterOf(stored), ...options } = {}) {
  const all = { datacenterId, scope: 'process', ...TERMS, ...options };
  const flake = await SnowFlake.lease(memory({ stored }), all);
  open.push(flake);
  return flake;
}

const created = (stored) =>
  create(recordsOf({ stored }), { id: newId(), layout: layouts.node, ...LIMITS });

async function namespaceIn(stored) {
  const { record } = await memory({ stored }).read('namespace', { signal });
  return native.readRecord('namespace', record.text);
}

/** All records of slots, by key: their values. */
async function slotsIn(stored) {
  const { records } = await memory({ stored }).list('slots/', { signal });
  const values = [...records].map(([key, { text }]) => [key, native.readRecord(key, text)]);
  return new Map(values.filter(([, { kind }]) => kind === 'slot'));
}

/** IDs of a holder, once the clock has passed its floor. */
async function drawn(flake, count = 100) {
  await until(() => Date.now() > flake.lease.floor);
  return soon(() => flake.nextIds(count));
}

/** The key of a holder's slot. */
const keyOf = ({ datacenterId, workerId }) =>
  `slots/${datacenterId}/${Math.floor(workerId / 64)}/${workerId}`;

/** Puts a value in the place of the text that a record has. */
function rewrite(stored, key, change) {
  const [, token, text] = /^(\S+) (.*)$/s.exec(stored.get(`default/${key}`));
  stored.set(`default/${key}`, change(token, text));
}

const fail = () => {
  throw new Error('cut off');
};

// First: a node that was held before has a floor of its own.
test('a namespace that create has made is the same for leases', async () => {
  const stored = new Map();
  const { id } = await created(stored);
  const flake = await leased(stored);
  assert.equal(flake.lease.floor, null);
  const { floor, ...found } = await namespaceIn(stored);
  assert.deepEqual([found.id, found.layout, floor], [id, layouts.node, '-1']);
  const again = await rejects(created(stored), 'ERR_SNOWFLAKE_STORE');
  assert.match(again.message, new RegExp(`exists already, with the ID ${id}`));
});

// Side by side: they wait for floors to pass.
describe('living holders', { concurrency: 8 }, () => {
  after(closeAll);

  for (const [name, run] of [
    ['create', (records) => create(records, { id: newId(), layout: layouts.node, ...LIMITS })],
    ['recover', (records) => recover(records, LIMITS, layouts.node)],
  ]) {
    test(`the write of ${name} may come when the records were lost: it allows nothing`, async () => {
      const stored = new Map();
      let late;
      const before = async (name, _, text) => {
        if (name !== 'write') return;
        late = text;
        fail();
      };
      await rejects(run(recordsOf({ stored, before })), 'ERR_SNOWFLAKE_STORE');
      // Others create it, and issue IDs; it is lost; then the write comes.
      const first = await leased(stored);
      const ids = [...(await drawn(first))];
      await until(() => first.lease.renewals > 1);
      const { ceiling } = first.lease;
      stored.clear();
      const record = { token: '1'.repeat(16), text: late };
      await memory({ stored }).write('namespace', record, undefined, { signal });
      const next = await leased(stored);
      assert.ok(next.lease.floor >= ceiling, `${next.lease.floor} of ${ceiling}`);
      assert.equal(countDuplicates([...ids, ...(await drawn(next))]), 0);
    });
  }

  test('create ends when a holder comes between its writes, and its floor holds', async () => {
    const stored = new Map();
    const after = async (name, _, text) => {
      if (name === 'write' && text.endsWith(' lost')) await leased(stored);
    };
    const started = Date.now();
    const namespace = { id: newId(), layout: layouts.node, ...LIMITS };
    const { floor } = await create(recordsOf({ stored, after }), namespace);
    assert.ok(native.tickEnd(layouts.node, Number(floor)) >= started + REACH);
  });

  test('two holders go on without duplicates after a recover, and after several at one time', async () => {
    const stored = new Map();
    await created(stored);
    const holders = [await leased(stored), await leased(stored)];
    const ids = [];
    for (const runs of [1, 3]) {
      for (const flake of holders) ids.push(...(await drawn(flake)));
      const ceilings = holders.map(({ lease }) => lease.ceiling);
      const namespaces = await Promise.all(
        Array.from({ length: runs }, () => recover(recordsOf({ stored }), {}, undefined)),
      );
      const floors = namespaces.map(({ floor }) => native.tickEnd(layouts.node, floor));
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
    const stored = new Map();
    await created(stored);
    const layout = { ...layouts.node, workerBits: 0, sequenceBits: 17 };
    const options = { layout, datacenterId: 2 };
    const separate = new Map();
    await create(recordsOf({ stored: separate }), { id: newId(), layout, ...LIMITS });
    const flake = await leased(separate, options);
    const backup = new Map(separate);
    const { ceiling } = flake.lease;
    await until(() => flake.lease.ceiling > ceiling);
    const issued = await soon(() => flake.nextIds(1000));
    const last = flake.lease.ceiling;
    await flake.close();
    const restored = new Map(backup);
    const { floor } = await recover(recordsOf({ stored: restored }), {}, undefined);
    assert.ok(native.tickEnd(layout, floor) >= last);
    const next = await leased(restored, options);
    assert.equal(next.workerId, flake.workerId);
    assert.ok((await soon(next.nextId)) > issued.at(-1));
  });

  for (const cut of ['list', 'write']) {
    test(`a recover that ends at a ${cut} leaves no slot below the floor, and a second one ends it`, async () => {
      const stored = new Map();
      await created(stored);
      const old = await leased(stored);
      const ids = [...(await drawn(old))];
      const before = (name, key) => {
        if (name === cut && key !== 'namespace') fail();
      };
      const records = recordsOf({ stored, before });
      await rejects(recover(records, {}, undefined), 'ERR_SNOWFLAKE_STORE');
      const { floor } = await namespaceIn(stored);
      const end = native.tickEnd(layouts.node, Number(floor));
      assert.ok(end >= old.lease.ceiling);
      // The old holder goes on in its slot. All others start above the floor.
      const next = await leased(stored);
      assert.ok(next.lease.floor >= end);
      await recover(recordsOf({ stored }), {}, undefined);
      await until(() => [old, next].every(({ lease }) => lease.floor > end));
      for (const flake of [old, next]) ids.push(...(await drawn(flake)));
      assert.equal(countDuplicates(ids), 0);
    });
  }

  test('recover leaves the slots that others have taken above the floor', async () => {
    const stored = new Map();
    await created(stored);
    await leased(stored);
    const taken = [];
    const before = async (name) => {
      if (name === 'list' && taken.length === 0) taken.push(await leased(stored));
    };
    const { id } = await recover(recordsOf({ stored, before }), {}, undefined);
    const [flake] = taken;
    const slots = [...(await slotsIn(stored)).values()].filter((slot) => slot.namespace === id);
    const own = slots.find((slot) => slot.workerId === flake.workerId);
    assert.equal(own.isHeld, true);
  });
});

describe('records', () => {
  afterEach(closeAll);

  test('what others change between the read and the write of a command stays', async () => {
    const stored = new Map();
    await created(stored);
    let reads = 0;
    const after = async (name, key) => {
      if (name !== 'read' || ++reads !== 2) return;
      const { record } = await memory({ stored }).read(key, { signal });
      const text = record.text.replace(' 1000 1000 0 ', ' 9000 1000 70 ');
      assert.notEqual(text, record.text);
      const other = { token: '2'.repeat(16), text };
      await memory({ stored }).write(key, other, record.token, { signal });
    };
    await recover(recordsOf({ stored, after }), { maxClockSkew: 2000 }, undefined);
    const { ttl, maxClockSkew, maxAhead } = await namespaceIn(stored);
    assert.deepEqual([ttl, maxClockSkew, maxAhead], [9000, 2000, 70]);
  });

  test('a holder that renews while its slot is freed keeps what it had confirmed', async () => {
    const stored = new Map();
    await created(stored);
    const flake = await leased(stored);
    let renewed;
    const before = async (name, key) => {
      if (name !== 'write' || key === 'namespace' || renewed !== undefined) return;
      // A renewal far above the floor, sent at the worst moment.
      const { record } = await memory({ stored }).read(key, { signal });
      const words = record.text.split(' ');
      renewed = Number(words[5]) + 60_000;
      words[5] = String(renewed);
      const text = words.join(' ');
      const token = 'a'.repeat(16);
      await memory({ stored }).write(key, { token, text }, record.token, { signal });
    };
    const { id, floor } = await recover(recordsOf({ stored, before }), {}, undefined);
    assert.ok(renewed > floor);
    const [slot] = [...(await slotsIn(stored)).values()].filter((one) => one.namespace === id);
    assert.deepEqual([slot.isHeld, slot.ceiling], [false, renewed]);
    await flake.close();
  });

  test('no floor and no limit falls, whatever the clock of the store shows', async () => {
    const stored = new Map();
    await created(stored);
    const first = await recover(recordsOf({ stored }), { ttl: 5000 }, undefined);
    const now = () => Date.now() - 3_600_000;
    const second = await recover(recordsOf({ stored, now }), { ttl: 2000 }, undefined);
    assert.deepEqual([second.floor, second.ttl], [first.floor, 5000]);
    assert.notEqual(second.id, first.id);
  });

  test('recover creates a namespace that was lost, also where others are faster', async () => {
    for (const isFaster of [false, true]) {
      const stored = new Map();
      const before = async (name, _, text) => {
        if (isFaster && name === 'write' && text?.endsWith(' lost')) await leased(stored);
      };
      const records = recordsOf({ stored, before });
      const started = Date.now();
      const { message } = await rejects(recover(records, LIMITS, undefined), 'ERR_SNOWFLAKE_STORE');
      assert.match(message, /no record of a namespace.*: --layout\./);
      const { floor } = await recover(records, LIMITS, layouts.node);
      assert.ok(native.tickEnd(layouts.node, floor) >= started + REACH);
      assert.equal((await namespaceIn(stored)).floor, String(floor));
    }
  });

  test('a record of another version is refused, and left as it is', async () => {
    const stored = new Map([['default/namespace', `${'1'.repeat(16)} snowdrift9 namespace`]]);
    const copy = new Map(stored);
    for (const run of [
      () => created(stored),
      () => recover(recordsOf({ stored }), LIMITS, layouts.node),
    ]) {
      const { message } = await rejects(run(), 'ERR_SNOWFLAKE_STORE');
      assert.match(message, /records of another format: the key namespace/);
    }
    assert.deepEqual(stored, copy);
  });

  test('a namespace that does not exist is named beside those that do', async () => {
    const stored = new Map();
    const other = new Records(memory({ stored, namespace: 'ordrs' }));
    const look = () => rejects(readStore(other), 'ERR_SNOWFLAKE_STORE');
    assert.match(
      (await look()).message,
      /^memory:ordrs has no record .*Check its name\. The first/,
    );
    for (const namespace of ['orders', 'default', 'a.b']) {
      const records = new Records(memory({ stored, namespace }));
      await create(records, { id: newId(), layout: layouts.node, ...LIMITS });
    }
    const said = /Check its name: this store has a\.b, default, orders\. .* namespace create does/;
    assert.match((await look()).message, said);
    for (let n = 0; n < 30; n++) stored.set(`n${n}/namespace`, 'x');
    assert.match((await look()).message, /, n24 and 13 more\. /);
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
    assert.match(fault, /namespace is gone.*namespace recover/);
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

  test('damaged records stop neither slots nor recover, and are named', async () => {
    const stored = new Map();
    await created(stored);
    const [first, second, third] = [
      await leased(stored),
      await leased(stored),
      await leased(stored),
    ];
    rewrite(stored, keyOf(first), (_, text) => `nonsense ${text}`);
    rewrite(stored, keyOf(second), (token) => `${token} snowdrift9 held`);
    stored.set('default/slots/7/0/made', 'nonsense');
    const before = new Map(stored);
    const damaged = [keyOf(first), keyOf(second), 'slots/7/0/made'].sort();
    const { slots } = await readStore(recordsOf({ stored }));
    const faults = slots.flatMap(({ state, fault }) => (state === 'unusable' ? fault : []));
    const keyIn = (fault) => /the key (\S+) is no record/.exec(fault)[1];
    assert.deepEqual(faults.map(keyIn).sort(), damaged);
    const ids = slots.filter((slot) => slot.state === 'unusable').map(({ workerId }) => workerId);
    assert.deepEqual(new Set(ids), new Set([first.workerId, second.workerId, undefined]));
    const { id, ...recovered } = await recover(recordsOf({ stored }), {}, undefined);
    assert.deepEqual(recovered.damaged.sort(), damaged);
    for (const key of damaged.map((each) => `default/${each}`)) {
      assert.equal(stored.get(key), before.get(key));
    }
    const freed = native.readRecord(keyOf(third), stored.get(`default/${keyOf(third)}`).slice(17));
    assert.equal(freed.namespace, id);
    // And of the namespace itself.
    stored.set('default/namespace', 'nonsense');
    const seen = await readStore(recordsOf({ stored }));
    assert.match(seen.fault, /the key namespace is no record/);
    assert.equal(seen.slots.length, slots.length);
  });
});

test('a clone of a machine draws no ID of a namespace twice', () => {
  const draw = () => {
    const text = `require('node:crypto').randomBytes = (count) => Buffer.alloc(count, 7);
      console.log(require(${JSON.stringify(require.resolve('../../js/cli/namespace.js'))}).newId());`;
    return execFileSync(process.execPath, ['-e', text], { encoding: 'utf8' }).trim();
  };
  const [one, other] = [draw(), draw()];
  assert.match(one, /^[0-9a-f]{32}$/);
  assert.notEqual(one, other);
});

test('recover says by when living holders have a floor: half a ttl after the slots were freed', async () => {
  const stored = new Map();
  await created(stored);
  const before = unixNow();
  const { latest } = await recover(recordsOf({ stored }), { ttl: 60_000 }, undefined);
  assert.ok(latest >= before + 60_000 + LIMITS.maxClockSkew + 30_000, `${latest - before} ms`);
});

test('living holders have their floors by the time that recover says', { skip: storm }, () =>
  inRounds('recover', async () => {
    const stored = new Map();
    // Renewals are so far apart that the horizons of holders are later than the floor.
    const limits = { ...LIMITS, ttl: 6000 };
    await create(recordsOf({ stored }), { id: newId(), layout: layouts.node, ...limits });
    const holders = [];
    for (let n = 0; n < 3; n++) holders.push(await leased(stored, { ttl: limits.ttl }));
    const { floor, latest } = await recover(recordsOf({ stored }), {}, undefined);
    const end = native.tickEnd(layouts.node, floor);
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
    if (name !== 'write') return;
    const { record } = await memory({ stored }).read(key, { signal });
    const other = { ...record, token: newId().slice(16) };
    await memory({ stored }).write(key, other, record.token, { signal });
  };
  const { message } = await rejects(
    recover(recordsOf({ stored, before }), {}, undefined),
    'ERR_SNOWFLAKE_STORE',
  );
  assert.match(message, /keep changing the record of the namespace. Run the command again/);
});

test('the texts of records are those of Rust', () => {
  const id = newId();
  const make = (floor) => native.namespaceText(id, layouts.node, 1000, 2000, 3000, floor);
  for (const floor of ['-1', '17', 'new', 'lost']) {
    const { kind, layout, ...values } = native.readRecord('namespace', make(floor));
    assert.deepEqual(values, { id, ttl: 1000, maxClockSkew: 2000, maxAhead: 3000, floor });
    assert.deepEqual([kind, layout], ['namespace', layouts.node]);
  }
  for (const floor of ['', 'x', '1.5', 'NaN', '1 1']) assert.equal(make(floor), null, floor);
  const wrong = native.namespaceText('x', layouts.node, 1000, 2000, 3000, '-1');
  assert.equal(wrong, null);
  for (const [key, text] of [
    ['namespace', ''],
    ['namespace', `snowdrift1 made ${id}`],
    ['slots/1/0/made', make('-1')],
    ['slots/01/0/1', `snowdrift1 made ${id}`],
    ['x', make('-1')],
  ]) {
    assert.equal(native.readRecord(key, text), null, key);
  }
  const damaged = { kind: 'damaged', datacenterId: 1, workerId: 70 };
  for (const text of ['', make('-1'), 'snowdrift1 held x', '\0'.repeat(100_000)]) {
    assert.deepEqual(native.readRecord('slots/1/1/70', text), damaged);
    assert.equal(native.freedSlotText(text, id, 0), null);
  }
});
