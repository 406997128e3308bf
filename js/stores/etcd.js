'use strict';
// `snowdrift/lease/etcd`: slots in etcd, through its v3 JSON gateway, so no client package is needed.
//
//   snowdrift/NAMESPACE/namespace                  the namespace's record
//   snowdrift/NAMESPACE/slots/DATACENTER/WORKER    ceiling, owner and last holder: permanent
//   snowdrift/NAMESPACE/holds/DATACENTER/WORKER    deleted when its etcd lease expires
//
// The slot is the fence: each change compares its whole value, so only its owner changes it. The hold shows
// other processes that the slot is held. Each transaction also compares the record, so it fails if the
// namespace was deleted or created anew.

const { createClient } = require('./etcd-client.js');
const { formatConflict } = require('./failures.js');
const { holderOf, lossOf, pickFree, raiseRecord, retryChange } = require('./key-value.js');
const { readOptions } = require('./options.js');

/** Status of a transaction whose etcd lease does not exist. */
const NOT_FOUND = 404;

const encode = (text) => Buffer.from(String(text)).toString('base64');
const decode = (text) => Buffer.from(text, 'base64').toString();

/** The end of the range of keys with a prefix. */
const rangeEnd = (prefix) =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

/** Operations of a transaction. */
const get = (key) => ({ request_range: { key: encode(key) } });
const getAll = (prefix) => ({
  request_range: { key: encode(prefix), range_end: encode(rangeEnd(prefix)) },
});
const put = (key, value, leaseId) => ({
  request_put: { key: encode(key), value: encode(value), lease: leaseId },
});
const remove = (key) => ({ request_delete_range: { key: encode(key) } });

/** A comparison of a transaction. The value undefined stands for a missing key. */
const is = (key, value) =>
  value === undefined
    ? { key: encode(key), target: 'CREATE', create_revision: '0' }
    : { key: encode(key), target: 'VALUE', value: encode(value) };

function etcd(urls, options) {
  const { namespace, ...access } = readOptions(options, ['user', 'password', 'tls']);
  const { hosts, post, close } = createClient(urls, access);
  const name = `etcd:${hosts}/${namespace}`;
  const root = `snowdrift/${namespace}/`;
  const recordKey = `${root}namespace`;
  /** The first format had this key and no record. */
  const oldKey = `${root}layout`;
  const slotKey = (datacenterId, workerId) => `${root}slots/${datacenterId}/${workerId}`;
  const holdKey = (datacenterId, workerId) => `${root}holds/${datacenterId}/${workerId}`;

  /**
   * @returns `isDone`: all comparisons were true; `found`: a Map for each operation's range; `second`: etcd's
   *   clock, rounded down
   */
  async function txn(compare, success, signal) {
    const { reply, second } = await post('/v3/kv/txn', { compare, success }, signal);
    const found = (reply.responses ?? []).map(
      ({ response_range }) =>
        new Map((response_range?.kvs ?? []).map((kv) => [decode(kv.key), decode(kv.value)])),
    );
    return { isDone: reply.succeeded === true, found, second };
  }

  /** The record as text and parsed. Both are undefined if there is none. */
  function readRecord(found) {
    const stored = found.get(recordKey);
    return { stored, record: stored === undefined ? undefined : JSON.parse(stored) };
  }

  async function grant(ttl, signal) {
    const body = { TTL: String(Math.ceil(ttl / 1000)) };
    return (await post('/v3/lease/grant', body, signal)).reply.ID;
  }

  /**
   * Renews the etcd lease, or replaces it: one that has expired, or whose time is shorter than ttl, since a process of
   * the host with a shorter one was granted it. The one before expires by itself.
   */
  async function keepAlive(leaseId, ttl, signal) {
    const { reply } = await post('/v3/lease/keepalive', { ID: leaseId }, signal);
    return Number(reply.result?.TTL ?? 0) * 1000 >= ttl ? leaseId : grant(ttl, signal);
  }

  /** Ignores failures: an etcd lease that is not revoked expires. */
  const revoke = (ID, signal) => post('/v3/lease/revoke', { ID }, signal).catch(() => {});

  /** The record and one slot, read in one transaction. */
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

  async function release({ namespace: id, datacenterId, workerId, owner, last, signal }) {
    const leaseId = await retryChange(signal, async () => {
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
    if (leaseId !== null) await revoke(leaseId, signal);
  }

  return {
    name,

    async now({ signal } = {}) {
      const { second } = await post('/v3/maintenance/status', {}, signal);
      // The middle of that second is at most half a second off.
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

    raise({ signal, ...request }) {
      return retryChange(signal, async () => {
        const { found } = await txn([], [get(recordKey)], signal);
        const { stored, record } = readRecord(found[0]);
        if (record?.id !== request.namespace) {
          throw new Error(`${name} has no namespace of ID ${request.namespace}`);
        }
        const higher = raiseRecord(record, request);
        const write = put(recordKey, JSON.stringify(higher));
        const { isDone } = await txn([is(recordKey, stored)], [write], signal);
        return isDone ? higher : undefined;
      });
    },

    async acquire({ namespace: id, datacenterId, workerIds, owner, holder, ceiling, ttl, signal }) {
      const [slotPrefix, holdPrefix] = [slotKey(datacenterId, ''), holdKey(datacenterId, '')];
      let leaseId = await grant(ttl, signal);
      const reply = await retryChange(signal, async () => {
        const reads = [get(recordKey), getAll(slotPrefix), getAll(holdPrefix)];
        const { found } = await txn([], reads, signal);
        const { stored, record } = readRecord(found[0]);
        if (record?.id !== id) return { isMissing: true };
        const slots = byWorkerId(found[1], slotPrefix);
        const holds = byWorkerId(found[2], holdPrefix);
        const workerId = pickFree(slots, workerIds, (id) => holds.has(id));
        if (workerId === undefined) return { holders: holdersOf(slots, holds) };

        const before = slots.get(workerId);
        const floor = Math.max(before?.ceiling ?? -1, record.floor);
        const slot = { ceiling: Math.max(floor, ceiling), owner, lease: leaseId, ...holder };
        const [at, hold] = [slotKey(datacenterId, workerId), holdKey(datacenterId, workerId)];
        const mine = { namespace: id, datacenterId, workerId, owner, last: floor };
        const { isDone, second } = await txn(
          [is(recordKey, stored), is(at, before?.stored), is(hold, undefined)],
          [put(at, JSON.stringify(slot)), put(hold, owner, leaseId)],
          signal,
        ).catch(async (failure) => {
          if (failure.status !== NOT_FOUND) {
            // etcd may have made the change.
            await release(mine).catch(() => {});
            throw failure;
          }
          // The etcd lease expired before its first use.
          leaseId = await grant(ttl, signal);
          return { isDone: false };
        });
        return isDone ? { workerId, floor, expires: second + ttl, now: second } : undefined;
      });
      if (reply.workerId === undefined) await revoke(leaseId, signal);
      return reply;
    },

    renew({ namespace: id, datacenterId, workerId, owner, ceiling, confirmed, ttl, signal }) {
      return retryChange(signal, async () => {
        const { stored, record, at, slot } = await readSlot(datacenterId, workerId, signal);
        const lost = lossOf(record?.id === id ? slot : undefined, { owner, confirmed });
        if (lost !== undefined) return { isHeld: false, lost };
        // Restores a hold that has expired, since no other process has taken the slot.
        const leaseId = await keepAlive(slot.lease, ttl, signal);
        const { stored: before, ...kept } = slot;
        // An abandoned earlier call may still arrive. It must not lower the ceiling.
        const higher = { ...kept, ceiling: Math.max(slot.ceiling, ceiling), lease: leaseId };
        const { isDone, second } = await txn(
          [is(recordKey, stored), is(at, before)],
          [put(at, JSON.stringify(higher)), put(holdKey(datacenterId, workerId), owner, leaseId)],
          signal,
        );
        return isDone ? { isHeld: true, expires: second + ttl, now: second } : undefined;
      });
    },

    release,

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

    close,
  };
}

/** The slots or holds of a range by worker ID, each with its text as `stored`. */
function byWorkerId(found, prefix) {
  const slots = new Map();
  for (const [key, stored] of found) {
    const slot = stored.startsWith('{') ? JSON.parse(stored) : {};
    slots.set(Number(key.slice(prefix.length)), { stored, ...slot });
  }
  return slots;
}

function holdersOf(slots, holds) {
  return [...slots]
    .filter(([id]) => holds.has(id))
    .map(([id, slot]) => holderOf(id, slot))
    .sort((a, b) => a.workerId - b.workerId);
}

module.exports = { etcd };
