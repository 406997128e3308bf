'use strict';
// A register in memory, with faults put between, that says what each call means.

const { memory } = require('../../../js/stores/memory.js');
const { formatBucket, newToken, readText } = require('./records.js');

/** What a key names, and of a bucket its datacenter. */
function nameOf(key) {
  if (key === 'namespace') return { of: 'namespace' };
  return { of: 'bucket', datacenterId: Number(key.split('/')[0]) };
}

/**
 * A store whose calls can be made to fail, to hang, or to arrive late, and whose records can be lost.
 * @param options those of memory(). Stores with the same `stored` have the same records
 *
 * `calls` has what was called: `name`, and of a call of a record `key` and what it is `of`: 'namespace' or 'bucket'. A write has
 * what it `does`: it may 'create' or 'raise' a namespace or 'count' a bucket there, 'make' a bucket, or 'take', 'renew' or 'release' a
 * slot, whose fields it has then. `fault(call)` runs before each call, and `late(call)` after it.
 */
function faulty({ stored = new Map(), ...options } = {}) {
  const inner = memory({ stored, ...options });
  /** By owner, the token of the line when it was written first. */
  const firsts = new Map();
  const root = `${options.namespace ?? 'default'}/`;

  /** A record, with its token. */
  function find(key) {
    const [, record, text] = /^(\S+) (.*)$/s.exec(stored.get(root + key) ?? '') ?? [];
    return record === undefined ? undefined : { key, record, ...nameOf(key), ...readText(text) };
  }

  function put(bucket) {
    stored.set(root + bucket.key, `${newToken()} ${formatBucket(bucket)}`);
  }

  const findAll = () => [...stored.keys()].map((key) => find(key.slice(root.length)));

  /** Changes the line of a slot. */
  function replace(slot, changes) {
    const bucket = find(slot.key);
    const at = bucket.slots.findIndex(({ workerId }) => workerId === slot.workerId);
    bucket.slots[at] = { ...bucket.slots[at], token: newToken(4), ...changes };
    put(bucket);
  }

  /** What a write means, by what is stored. */
  function meaningOf(key, text) {
    const [before, after] = [find(key), readText(text)];
    if (after.kind === 'namespace') {
      if (before === undefined) return { ...after, does: 'create' };
      return { ...after, does: after.buckets === before.buckets ? 'raise' : 'count' };
    }
    const known = new Map(before?.slots.map((slot) => [slot.workerId, slot.token]));
    const [slot] = after.slots.filter(({ workerId, token }) => known.get(workerId) !== token);
    if (slot === undefined) return { floor: after.floor, does: 'make' };
    // An owner's first write may be sent again.
    if (!firsts.has(slot.owner)) firsts.set(slot.owner, slot.token);
    if (slot.kind === 'free') return { ...slot, does: 'release' };
    return { ...slot, does: firsts.get(slot.owner) === slot.token ? 'take' : 'renew' };
  }

  const store = {
    name: 'faulty:',
    calls: [],
    fault: undefined,
    late: undefined,
    stored,
    /** All slots that were ever taken. */
    get slots() {
      const buckets = findAll().filter(({ of }) => of === 'bucket');
      return buckets.flatMap(({ key, datacenterId, slots }) =>
        slots.map((slot) => ({ key, datacenterId, ...slot })),
      );
    },
    slot: (workerId) => store.slots.find((slot) => slot.workerId === workerId),
    count: (does) => store.calls.filter((call) => call.does === does).length,
    replace: (workerId, changes) => replace(store.slot(workerId), changes),
    /** What a lost table, key or server does. */
    lose: () => stored.clear(),
    /** Another holder takes a slot over, as of the store's time `now`. */
    steal(workerId, { ttl = 60_000, now = (options.now ?? Date.now)() } = {}) {
      const slot = store.slot(workerId);
      const owner = newToken();
      const floor = slot.ceiling;
      replace(slot, { kind: 'held', owner, floor, ceiling: floor + ttl, expires: now + ttl });
    },
    /** Its holder releases it, and has issued nothing. */
    free(workerId) {
      const slot = store.slot(workerId);
      replace(slot, { kind: 'free', ceiling: Math.max(slot.floor, 0) });
    },
  };
  for (const name of ['now', 'read', 'write']) {
    store[name] = async (...values) => {
      const call = { name };
      if (name !== 'now') Object.assign(call, { key: values[0], ...nameOf(values[0]) });
      if (name === 'write') {
        const [key, { text }, before] = values;
        Object.assign(call, meaningOf(key, text), { before });
      }
      store.calls.push(call);
      await store.fault?.(call);
      // A call that was sent takes effect, also when it was given up meanwhile.
      const { signal } = new AbortController();
      const reply = await inner[name](...values.slice(0, -1), { signal });
      await store.late?.(call);
      return reply;
    };
  }
  return store;
}

module.exports = { faulty };
