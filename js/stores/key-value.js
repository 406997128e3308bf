'use strict';
// Common parts of the stores that read a record before they change it: by compare-and-set in etcd and ZooKeeper.

/** The most tries of a change that other processes get ahead of. */
const MAX_TRIES = 1000;

/** Of how many unused worker IDs one is picked. */
const MAX_UNUSED = 64;

/** Tries a change until `attempt` returns something. */
async function retryChange(signal, attempt) {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    signal?.throwIfAborted();
    const result = await attempt();
    if (result !== undefined) return result;
  }
  throw new Error(`other processes changed the same record first, ${MAX_TRIES} times`);
}

/** How a holder has lost its slot, as in a reply of renew(); undefined while it holds it. */
function lossOf(slot, { owner, confirmed }) {
  if (slot === undefined) return 'missing';
  // A takeover never lowers the ceiling, so a lower one means an older record.
  if (slot.ceiling < confirmed) return 'reverted';
  return slot.owner === owner ? undefined : 'taken';
}

/** The record of raise(): no field falls. */
function raiseRecord(record, { namespace, id = namespace, signal: _, ...least }) {
  const higher = { ...record, id };
  for (const [field, value = -1] of Object.entries(least)) {
    higher[field] = Math.max(record[field], value);
  }
  return higher;
}

/**
 * One of the lowest unused worker IDs, at random, so that processes that start together most likely pick
 * different ones. If all were used, the free slot with the lowest ceiling.
 * @param slots by worker ID, each with `ceiling`
 * @returns a worker ID; undefined if no slot is free
 */
function pickFree(slots, workerIds, isHeld) {
  const unused = [];
  for (let id = 0; id < workerIds && unused.length < MAX_UNUSED; id++) {
    if (!slots.has(id) && !isHeld(id)) unused.push(id);
  }
  if (unused.length > 0) return unused[Math.floor(Math.random() * unused.length)];
  const free = [...slots].filter(([id]) => id < workerIds && !isHeld(id));
  const [lowest] = free.sort(([, a], [, b]) => a.ceiling - b.ceiling);
  return lowest?.[0];
}

function holderOf(workerId, { pid, host, startedAt }) {
  return { workerId, pid, host, startedAt: new Date(startedAt) };
}

module.exports = { holderOf, lossOf, pickFree, raiseRecord, retryChange };
