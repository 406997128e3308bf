'use strict';
// A register in memory, with faults put between, that says what each call means.

const { randomBytes } = require('node:crypto');

const { memory } = require('../../../js/stores/memory.js');

const newToken = () => randomBytes(8).toString('hex');

/** The fields of a record's text that tests look at. `rest` is what follows them. */
function parse(text) {
  const [, kind, namespace, ...words] = text.split(' ');
  if (kind !== 'held' && kind !== 'free') return { kind, namespace };
  const [owner, floor, ceiling, expires, ...rest] = words;
  const numbers = { floor: Number(floor), ceiling: Number(ceiling), expires: Number(expires) };
  return { kind, namespace, owner, ...numbers, rest: rest.join(' ') };
}

const format = ({ kind, namespace, owner, floor, ceiling, expires, rest }) =>
  ['snowdrift1', kind, namespace, owner, floor, ceiling, expires, rest].join(' ');

/** Which record a key names. */
function nameOf(key) {
  if (key === 'namespace') return { of: 'namespace' };
  const [, datacenterId, , last] = key.split('/');
  if (last === 'made') return { of: 'bucket', datacenterId: Number(datacenterId) };
  return { of: 'slot', datacenterId: Number(datacenterId), workerId: Number(last) };
}

/** What a write does to a record: 'create' and 'raise' a namespace, 'note' a bucket, and 'make', 'take', 'renew' or 'release' a slot. */
function doesOf({ of, kind, before, isFirst }) {
  if (of === 'namespace') return before === undefined ? 'create' : 'raise';
  if (of === 'bucket') return 'note';
  if (kind === 'made') return 'make';
  if (kind === 'free') return 'release';
  return isFirst ? 'take' : 'renew';
}

/**
 * A store whose calls can be made to fail, to hang, or to arrive late, and whose records can be lost.
 * @param options those of memory(). Stores with the same `stored` have the same records
 *
 * `calls` has what was called: `name`, and of a call of a record `key` and what it is `of`: 'namespace', 'bucket' or 'slot'.
 * A write also has the fields of the record, and what it `does`. `fault(call)` runs before each call, and `late(call)` after it.
 */
function faulty({ stored = new Map(), ...options } = {}) {
  const inner = memory({ stored, ...options });
  /** By owner, the token of its first write. */
  const firsts = new Map();
  const root = `${options.namespace ?? 'default'}/`;

  /** The fields of a record, with its token. */
  function find(key) {
    const [, token, text] = /^(\S+) (.*)$/s.exec(stored.get(root + key) ?? '') ?? [];
    return token === undefined ? undefined : { key, token, ...nameOf(key), ...parse(text) };
  }

  function replace(slot, changes) {
    const text = format({ ...slot, ...changes });
    stored.set(root + slot.key, `${newToken()} ${text}`);
  }

  const store = {
    name: 'faulty:',
    calls: [],
    fault: undefined,
    late: undefined,
    stored,
    /** All slots that were ever taken. */
    get slots() {
      const keys = [...stored.keys()].filter((key) => key.startsWith(`${root}slots/`));
      const all = keys.map((key) => find(key.slice(root.length)));
      return all.filter(({ owner }) => owner !== undefined);
    },
    get namespace() {
      return find('namespace');
    },
    slot: (workerId) => store.slots.find((slot) => slot.workerId === workerId),
    count: (does) => store.calls.filter((call) => call.does === does).length,
    /** What a lost table, key or server does. */
    lose: () => stored.clear(),
    /** Takes the records of an earlier time back. */
    restore(backup) {
      stored.clear();
      for (const [key, value] of backup) stored.set(key, value);
    },
    /** Another holder takes a slot over, as of the store's time `now`. */
    steal(workerId, { ttl = 60_000, now = (options.now ?? Date.now)() } = {}) {
      const slot = store.slot(workerId);
      const owner = randomBytes(16).toString('hex');
      const floor = slot.ceiling;
      replace(slot, { kind: 'held', owner, floor, ceiling: floor + ttl, expires: now + ttl });
    },
    /** Its holder releases it, and has issued nothing. */
    free(workerId) {
      const slot = store.slot(workerId);
      replace(slot, { kind: 'free', ceiling: slot.floor });
    },
  };
  for (const name of ['now', 'read', 'write', 'list']) {
    store[name] = async (...values) => {
      const call = { name };
      if (name === 'read' || name === 'write') {
        Object.assign(call, { key: values[0], ...nameOf(values[0]) });
      }
      if (name === 'write') {
        const [, { token, text }, before] = values;
        Object.assign(call, parse(text), { before });
        // An owner's first write may be sent again.
        if (!firsts.has(call.owner)) firsts.set(call.owner, token);
        call.does = doesOf({ ...call, isFirst: firsts.get(call.owner) === token });
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
