'use strict';
// `snowdrift/lease/etcd`: slots in etcd, by its v3 JSON gateway over fetch, so there is no client to
// install. Each change is one transaction that compares what it rests on.
//
//   snowdrift/NAMESPACE/namespace                  the namespace's record
//   snowdrift/NAMESPACE/slots/DATACENTER/WORKER    ceiling, owner and last holder: stays
//   snowdrift/NAMESPACE/holds/DATACENTER/WORKER    goes when the etcd lease it is tied to expires
//
// The slot is the fence: only its owner changes it, by comparing its whole value. The hold only tells
// others whether it is held. Every transaction compares the record too, so a namespace that was deleted,
// or created anew, is noticed in the same step.

const { configError, shown } = require('../errors.js');
const { pickUnused, readNamespace } = require('./adapter.js');
const { formatConflict } = require('./format.js');

/** How often a change is tried again that others were faster with. */
const MOST_TRIES = 1000;

const encode = (text) => Buffer.from(String(text)).toString('base64');
const decode = (text) => Buffer.from(text, 'base64').toString();

/** One after the last key with a prefix: the range's end. */
const after = (prefix) =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

/** Operations of a transaction. */
const get = (key) => ({ request_range: { key: encode(key) } });
const getAll = (prefix) => ({
  request_range: { key: encode(prefix), range_end: encode(after(prefix)) },
});
const put = (key, value, lease) => ({
  request_put: { key: encode(key), value: encode(value), ...(lease ? { lease } : {}) },
});
const remove = (key) => ({ request_delete_range: { key: encode(key) } });

/** Comparisons of a transaction. Undefined for a value means that there is no such key. */
const is = (key, value) =>
  value === undefined
    ? { key: encode(key), target: 'CREATE', create_revision: '0' }
    : { key: encode(key), target: 'VALUE', value: encode(value) };

function etcd(url, options) {
  const namespace = readNamespace(options);
  let base;
  try {
    base = new URL(url);
  } catch (cause) {
    throw configError(`etcd() takes the URL of an etcd server; this is ${shown(url)}`, { cause });
  }
  if (!['http:', 'https:'].includes(base.protocol)) {
    throw configError(`etcd() takes an http: or https: URL; this is ${shown(url)}`);
  }
  const name = `etcd:${base.host}/${namespace}`;
  const root = `snowdrift/${namespace}/`;
  const recordKey = `${root}namespace`;
  /** In the first format, which had no record. */
  const oldKey = `${root}layout`;
  const slotKey = (datacenterId, workerId) => `${root}slots/${datacenterId}/${workerId}`;
  const holdKey = (datacenterId, workerId) => `${root}holds/${datacenterId}/${workerId}`;

  async function post(path, body, signal) {
    signal?.throwIfAborted();
    const response = await fetch(new URL(path, base), {
      method: 'POST',
      body: JSON.stringify(body),
      signal,
    }).catch((failure) => {
      // "fetch failed" says nothing; its cause does.
      throw failure.cause ?? failure;
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`etcd answered ${response.status}: ${shown(answer)}`);
    // The Date header is cut to the second: etcd's clock is not before it.
    return { answer, second: Date.parse(response.headers.get('date')) };
  }

  /** @returns whether all comparisons held, when it was at the least, and by range what is there */
  async function txn(compare, success, signal) {
    const { answer, second } = await post('/v3/kv/txn', { compare, success }, signal);
    const found = (answer.responses ?? []).map(
      ({ response_range }) =>
        new Map((response_range?.kvs ?? []).map((kv) => [decode(kv.key), decode(kv.value)])),
    );
    return { isDone: answer.succeeded === true, found, second };
  }

  /** The record as it is stored, and read. Undefined if there is none. */
  function readRecord(found) {
    const stored = found.get(recordKey);
    return { stored, record: stored === undefined ? undefined : JSON.parse(stored) };
  }

  async function grant(ttl, signal) {
    const body = { TTL: String(Math.ceil(ttl / 1000)) };
    return (await post('/v3/lease/grant', body, signal)).answer.ID;
  }

  /** The etcd lease, renewed; or another one if it has expired. */
  async function keepAlive(lease, ttl, signal) {
    const { answer } = await post('/v3/lease/keepalive', { ID: lease }, signal);
    return Number(answer.result?.TTL ?? 0) > 0 ? lease : grant(ttl, signal);
  }

  /** What is not revoked expires. */
  const revoke = (lease, signal) => post('/v3/lease/revoke', { ID: lease }, signal).catch(() => {});

  /** Tries a change until it is done or there is nothing to do: until `attempt` returns something. */
  async function change(signal, attempt) {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const result = await attempt();
      if (result !== undefined) return result;
      signal?.throwIfAborted();
    }
    throw new Error(`others changed the same key ${MOST_TRIES} times in between`);
  }

  /** The record and one slot, as of one moment. */
  async function readSlot(datacenterId, workerId, signal) {
    const at = slotKey(datacenterId, workerId);
    const { found } = await txn([], [get(recordKey), get(at)], signal);
    const stored = found[1].get(at);
    return {
      ...readRecord(found[0]),
      at,
      slot: stored === undefined ? undefined : { stored, ...JSON.parse(stored) },
    };
  }

  return {
    name,

    async now({ signal } = {}) {
      const { second } = await post('/v3/maintenance/status', {}, signal);
      // The middle of that second: at most half a second off.
      return second + 500;
    },

    async open({ signal, id, layout, ttl, maxClockSkew, maxAhead, floor }) {
      const fresh = JSON.stringify({ id, layout, ttl, maxClockSkew, maxAhead, floor });
      const isNew = [is(recordKey, undefined), is(oldKey, undefined)];
      await txn(isNew, [put(recordKey, fresh)], signal);
      const { record } = readRecord((await txn([], [get(recordKey)], signal)).found[0]);
      if (record === undefined) throw formatConflict(name, `there is a key ${oldKey}`);
      return record;
    },

    raise({ signal, namespace: id, ...least }) {
      return change(signal, async () => {
        const { found } = await txn([], [get(recordKey)], signal);
        const { stored, record } = readRecord(found[0]);
        if (record?.id !== id) throw new Error(`${name} has no namespace of ID ${id}`);
        for (const [field, value] of Object.entries(least)) {
          if (value !== undefined) record[field] = Math.max(record[field], value);
        }
        const raised = put(recordKey, JSON.stringify(record));
        const { isDone } = await txn([is(recordKey, stored)], [raised], signal);
        return isDone ? record : undefined;
      });
    },

    async acquire({ namespace: id, datacenterId, workerIds, owner, holder, ceiling, ttl, signal }) {
      const [slotPrefix, holdPrefix] = [slotKey(datacenterId, ''), holdKey(datacenterId, '')];
      const lease = await grant(ttl, signal);
      const answer = await change(signal, async () => {
        const reads = [get(recordKey), getAll(slotPrefix), getAll(holdPrefix)];
        const { found } = await txn([], reads, signal);
        const { stored, record } = readRecord(found[0]);
        if (record?.id !== id) return { isMissing: true };
        const slots = byWorkerId(found[1], slotPrefix);
        const holds = byWorkerId(found[2], holdPrefix);
        const workerId = lowestFree(slots, holds, workerIds);
        if (workerId === undefined) return { holders: holdersOf(slots, holds) };

        const seen = slots.get(workerId);
        const floor = Math.max(seen?.ceiling ?? -1, record.floor);
        const slot = { ceiling: Math.max(floor, ceiling), owner, lease, ...holder };
        const [at, hold] = [slotKey(datacenterId, workerId), holdKey(datacenterId, workerId)];
        const { isDone, second } = await txn(
          [is(recordKey, stored), is(at, seen?.stored), is(hold, undefined)],
          [put(at, JSON.stringify(slot)), put(hold, owner, lease)],
          signal,
        );
        return isDone ? { workerId, floor, expires: second + ttl, now: second } : undefined;
      });
      if (answer.workerId === undefined) await revoke(lease, signal);
      return answer;
    },

    renew({ namespace: id, datacenterId, workerId, owner, ceiling, confirmed, ttl, signal }) {
      return change(signal, async () => {
        const { stored, record, at, slot } = await readSlot(datacenterId, workerId, signal);
        if (record?.id !== id || slot === undefined) return { isHeld: false, lost: 'missing' };
        if (slot.ceiling < confirmed) return { isHeld: false, lost: 'reverted' };
        if (slot.owner !== owner) return { isHeld: false, lost: 'taken' };

        // A hold that has expired comes back, since nobody else has taken the slot.
        const lease = await keepAlive(slot.lease, ttl, signal);
        const { stored: before, ...kept } = slot;
        // An earlier call that was given up may still arrive: it must not lower what this one raises.
        const raised = { ...kept, ceiling: Math.max(slot.ceiling, ceiling), lease };
        const { isDone, second } = await txn(
          [is(recordKey, stored), is(at, before)],
          [put(at, JSON.stringify(raised)), put(holdKey(datacenterId, workerId), owner, lease)],
          signal,
        );
        return isDone ? { isHeld: true, expires: second + ttl, now: second } : undefined;
      });
    },

    async release({ namespace: id, datacenterId, workerId, owner, last, signal }) {
      const lease = await change(signal, async () => {
        const { stored, record, at, slot } = await readSlot(datacenterId, workerId, signal);
        if (record?.id !== id || slot?.owner !== owner) return null;
        const { stored: before, lease: mine, ...kept } = slot;
        const freed = JSON.stringify({ ...kept, ceiling: last, owner: null });
        const { isDone } = await txn(
          [is(recordKey, stored), is(at, before)],
          [put(at, freed), remove(holdKey(datacenterId, workerId))],
          signal,
        );
        return isDone ? mine : undefined;
      });
      if (lease !== null) await revoke(lease, signal);
    },

    async slots() {
      const [all] = (await txn([], [getAll(root)])).found;
      const { record } = readRecord(all);
      if (record === undefined) {
        if (all.has(oldKey)) throw formatConflict(name, `there is a key ${oldKey}`);
        return { slots: [] };
      }
      const slots = [];
      for (const [key, stored] of all) {
        const [kind, datacenterId, workerId] = key.slice(root.length).split('/');
        if (kind !== 'slots') continue;
        const slot = JSON.parse(stored);
        slots.push({
          ...holderOf(Number(workerId), slot),
          datacenterId: Number(datacenterId),
          ceiling: slot.ceiling,
          isHeld: all.has(holdKey(datacenterId, workerId)),
        });
      }
      return { namespace: record, slots };
    },
  };
}

/** Slots by their numbers, each with the value as it is stored; or the holds there are. */
function byWorkerId(found, prefix) {
  const slots = new Map();
  for (const [key, stored] of found) {
    const slot = stored.startsWith('{') ? JSON.parse(stored) : {};
    slots.set(Number(key.slice(prefix.length)), { stored, ...slot });
  }
  return slots;
}

/** The free slot with the lowest ceiling; any of those that were never used. */
function lowestFree(slots, holds, workerIds) {
  const unused = pickUnused(workerIds, (id) => slots.has(id) || holds.has(id));
  if (unused !== undefined) return unused;
  const free = [...slots].filter(([id]) => id < workerIds && !holds.has(id));
  const [lowest] = free.sort(([, a], [, b]) => a.ceiling - b.ceiling);
  return lowest?.[0];
}

function holdersOf(slots, holds) {
  return [...slots]
    .filter(([id]) => holds.has(id))
    .map(([id, slot]) => holderOf(id, slot))
    .sort((a, b) => a.workerId - b.workerId);
}

function holderOf(workerId, { pid, host, startedAt }) {
  return { workerId, pid, host, startedAt: new Date(startedAt) };
}

module.exports = { etcd };
