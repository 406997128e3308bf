'use strict';
// `snowdrift/lease/memory`: slots in the memory of this process, for an application's own tests, and as
// the plainest example of a LeaseStore.

const { layoutConflict } = require('./conflict.js');

/** @param now the engine's clock, Unix ms */
function memory({ name = 'memory:', now = Date.now } = {}) {
  let layoutInUse;
  const slots = new Map();
  const key = ({ datacenterId, workerId }) => `${datacenterId}-${workerId}`;
  const isFree = (slot) => slot.owner === undefined || slot.expires <= now();

  /** Changes a slot in one step, if it is the caller's. */
  function change(request, how) {
    const slot = slots.get(key(request));
    const isHeld = slot?.owner === request.owner;
    if (isHeld) how(slot);
    return isHeld;
  }

  return {
    name,

    async now() {
      return now();
    },

    async acquire({ layout, datacenterId, workerIds, owner, holder, ceiling, ttl }) {
      layoutInUse ??= layout;
      if (layoutInUse !== layout) throw layoutConflict(name, layoutInUse, layout);
      const all = Array.from({ length: workerIds }, (_, workerId) => {
        const place = key({ datacenterId, workerId });
        return slots.get(place) ?? { workerId, datacenterId, ceiling: -1 };
      });
      const [slot] = all.filter(isFree).sort((a, b) => a.ceiling - b.ceiling);
      if (slot === undefined) {
        return { holders: all.map(({ workerId, holder }) => ({ workerId, ...holder })) };
      }
      const { workerId, ceiling: floor } = slot;
      const expires = now() + ttl;
      const taken = { ...slot, owner, holder, expires, ceiling: Math.max(floor, ceiling) };
      slots.set(key(slot), taken);
      return { workerId, floor, expires };
    },

    async renew({ ceiling, ttl, ...request }) {
      const expires = now() + ttl;
      const isHeld = change(request, (slot) => {
        slot.ceiling = Math.max(slot.ceiling, ceiling);
        slot.expires = expires;
      });
      return { isHeld, expires };
    },

    async release({ last, ...request }) {
      change(request, (slot) => {
        slot.ceiling = last;
        slot.owner = undefined;
      });
    },

    async slots() {
      const list = [...slots.values()].map(({ owner, holder, ...slot }) => ({
        ...slot,
        ...holder,
        isHeld: owner !== undefined && slot.expires > now(),
      }));
      return { layout: layoutInUse, slots: list };
    },
  };
}

module.exports = { memory };
