'use strict';
// `snowdrift/lease/memory`: slots in the memory of this process, for an application's own tests, and as
// the plainest example of a LeaseStore. No function awaits anything, so each is one atomic step.

/**
 * @param now the store's clock, Unix ms
 * @param records where everything is kept: two stores that share it are one
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

    async raise({ namespace, id = namespace, signal: _, ...higher }) {
      if (!isOpen(namespace)) throw new Error('the namespace has another ID, or there is none');
      const record = records.namespace;
      for (const [what, value = -1] of Object.entries(higher)) {
        record[what] = Math.max(record[what], value);
      }
      record.id = id;
      return { ...record };
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

    async renew({ namespace, owner, ceiling, confirmed, ttl, ...place }) {
      const slot = records.slots.get(key(place));
      if (!isOpen(namespace) || slot === undefined) return { isHeld: false, lost: 'missing' };
      // A later holder has started at `confirmed` or above.
      if (slot.ceiling < confirmed) return { isHeld: false, lost: 'reverted' };
      if (slot.owner !== owner) return { isHeld: false, lost: 'taken' };
      slot.ceiling = Math.max(slot.ceiling, ceiling);
      slot.expires = now() + ttl;
      return { isHeld: true, expires: slot.expires, now: now() };
    },

    async release({ namespace, owner, last, ...place }) {
      const slot = records.slots.get(key(place));
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
