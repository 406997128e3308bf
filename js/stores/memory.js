'use strict';
// `snowdrift/lease/memory`: slots in this process's memory, for an application's tests and as an example of a
// LeaseStore. No function awaits, so each is one atomic step.

const { lossOf, raiseRecord } = require('./key-value.js');

/**
 * @param now the store's clock, Unix ms
 * @param records the slots and the namespace's record. Two stores with the same records act as one
 */
function memory({ name = 'memory:', now = Date.now, records = { slots: new Map() } } = {}) {
  const key = ({ datacenterId, workerId }) => `${datacenterId}-${workerId}`;
  const isFree = (slot) => slot.owner === undefined || slot.expires <= now();
  const isOpen = (namespace) => records.namespace?.id === namespace;

  return {
    name,

    async now() {
      return now();
    },

    async open({ id, layout, ttl, maxClockSkew, maxAhead, floor }) {
      records.namespace ??= { id, layout, ttl, maxClockSkew, maxAhead, floor };
      return { ...records.namespace };
    },

    async raise(request) {
      if (!isOpen(request.namespace)) {
        throw new Error('the namespace has another ID, or there is none');
      }
      records.namespace = raiseRecord(records.namespace, request);
      return { ...records.namespace };
    },

    async acquire({ namespace, datacenterId, workerIds, owner, holder, ceiling, ttl, signal }) {
      signal.throwIfAborted();
      if (!isOpen(namespace)) return { isMissing: true };
      const all = Array.from({ length: workerIds }, (_, workerId) => {
        const slot = records.slots.get(key({ datacenterId, workerId }));
        return slot ?? { workerId, datacenterId, ceiling: -1 };
      });
      const [slot] = all.filter(isFree).sort((a, b) => a.ceiling - b.ceiling);
      if (slot === undefined) {
        return { holders: all.map(({ workerId, holder }) => ({ workerId, ...holder })) };
      }
      const expires = now() + ttl;
      const taken = { ...slot, owner, holder, expires, ceiling: Math.max(slot.ceiling, ceiling) };
      records.slots.set(key(slot), taken);
      const floor = Math.max(slot.ceiling, records.namespace.floor);
      return { workerId: slot.workerId, floor, expires, now: now() };
    },

    async renew({ namespace, owner, ceiling, confirmed, ttl, ...ids }) {
      const slot = isOpen(namespace) ? records.slots.get(key(ids)) : undefined;
      const lost = lossOf(slot, { owner, confirmed });
      if (lost !== undefined) return { isHeld: false, lost };
      slot.ceiling = Math.max(slot.ceiling, ceiling);
      slot.expires = now() + ttl;
      return { isHeld: true, expires: slot.expires, now: now() };
    },

    async release({ namespace, owner, last, ...ids }) {
      const slot = records.slots.get(key(ids));
      if (!isOpen(namespace) || slot?.owner !== owner) return;
      slot.ceiling = last;
      slot.owner = undefined;
    },

    async slots() {
      const slots = [...records.slots.values()].map(({ owner, holder, ...slot }) => ({
        ...slot,
        ...holder,
        isHeld: owner !== undefined && slot.expires > now(),
      }));
      return { namespace: records.namespace && { ...records.namespace }, slots };
    },
  };
}

module.exports = { memory };
