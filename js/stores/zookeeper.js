'use strict';
// `snowdrift/lease/zookeeper`: slots in ZooKeeper, through the optional second addon, `snowdrift-zookeeper`.
//
//   /snowdrift/NAMESPACE                            the namespace's record
//   /snowdrift/NAMESPACE/id-ID                      exists while the namespace has this ID
//   /snowdrift/NAMESPACE/DATACENTER/WORKER          ceiling, owner and last holder: permanent
//   /snowdrift/NAMESPACE/DATACENTER/WORKER/holder   ephemeral: deleted with the session that renewed it
//
// The permanent znode is the fence: only its owner sets it, and by its version, so that the check of the owner
// and the raise of the ceiling are one step. The slot is held while the ephemeral znode exists, and for a ttl
// after the owner has set the znode, since the processes of a host share the slot but not a session. A znode
// that is created anew starts with version 0, so each step also checks the znode of the ID.

const { wholeNumber } = require('../checks.js');
const { formatConflict } = require('./failures.js');
const { holderOf, lossOf, pickFree, raiseRecord, retryChange } = require('./key-value.js');
const { readOptions } = require('./options.js');
const { createClient } = require('./zookeeper-client.js');

/** The parent of all namespaces. A write to it returns the ensemble's clock. */
const TOP = '/snowdrift';

function zookeeper(ensemble, options) {
  const names = ['port', 'user', 'password', 'tls'];
  const { namespace, port, ...access } = readOptions(options, names);
  if (port !== undefined) wholeNumber('port', port, 0, 65_535);
  const { session, close } = createClient(ensemble, access, (zk) => zk.make(TOP));
  const name = `zookeeper:${ensemble}/${namespace}`;
  const root = `${TOP}/${namespace}`;
  const pathOf = ({ datacenterId, workerId }) => `${root}/${datacenterId}/${workerId}`;
  /**
   * The slots acquired or lost here, by owner: `path`, `namespace`, which is its ID, and `use`. A holder node lasts as
   * long as the session, so a slot that nobody uses has to be freed.
   *
   * - `held`
   * - `lost`: the record was reverted, or its namespace has another ID now. It still names the owner. The namespace's
   *   floor must be raised above a reverted slot's IDs before the slot is freed.
   * - `unused`: acquired too late or with an unknown result, or not released yet
   */
  const known = new Map();

  /** Frees the slots of these uses. */
  async function free(zk, ...uses) {
    for (const [owner, { path, use }] of known) {
      if (!uses.includes(use)) continue;
      const znode = await zk.get(path);
      if (znode !== null && parse(znode).owner === owner) {
        const { isDone } = await zk.change(await changesToFree(zk, path, znode));
        // Tried again before the next slot is acquired, or after the next renewal.
        if (!isDone) continue;
      }
      known.delete(owner);
    }
  }

  const parse = ({ data }) => JSON.parse(data);
  const markOf = (id) => `${root}/id-${id}`;
  const create = (path, data = '') => ({ kind: 'create', path, data });
  const createEphemeral = (path, data) => ({ kind: 'createEphemeral', path, data });
  const set = (path, value, version) => {
    return { kind: 'set', path, data: JSON.stringify(value), version };
  };
  const remove = (path) => ({ kind: 'delete', path });
  /** Checks that the namespace still has this ID. */
  const checkId = (id) => ({ kind: 'check', path: markOf(id) });

  /** The changes that free a slot. */
  async function changesToFree(zk, path, znode, more) {
    const freed = set(path, { ...parse(znode), ...more, owner: null }, znode.version);
    const hasHolder = (await zk.children(path)).includes('holder');
    return hasHolder ? [freed, remove(`${path}/holder`)] : [freed];
  }

  /** The earliest end of a hold that is not renewed again. */
  const expiry = (zk, time, ttl) => time + Math.min(ttl, zk.timeout());

  /** The namespace's record and its znode's version; null if it has another ID. */
  async function recordOf(zk, id) {
    const znode = await zk.get(root);
    const record = znode === null || znode.data === '' ? {} : parse(znode);
    return record.id === id ? { record, version: znode.version } : null;
  }

  /** All slots that were ever used, by worker ID. */
  async function slotsOf(zk, datacenterId) {
    const [ids, now] = await Promise.all([zk.children(`${root}/${datacenterId}`), zk.touch(TOP)]);
    const slots = await Promise.all(
      ids.map(async (id) => {
        const path = pathOf({ datacenterId, workerId: id });
        const [znode, children] = await Promise.all([zk.get(path), zk.children(path)]);
        // Deleted since the list was read.
        if (znode === null) return [];
        const { ceiling, ttl, ...holder } = parse(znode);
        const isHeld =
          children.includes('holder') || (holder.owner !== null && znode.changed + ttl > now);
        return [[Number(id), { ceiling, holder, version: znode.version, isHeld }]];
      }),
    );
    return new Map(slots.flat());
  }

  return {
    name,

    async now(request) {
      return (await session(request)).touch(TOP);
    },

    async open({ id, layout, ttl, maxClockSkew, maxAhead, floor, signal }) {
      const zk = await session({ ttl, signal });
      const fresh = { id, layout, ttl, maxClockSkew, maxAhead, floor };
      return retryChange(signal, async () => {
        const znode = await zk.get(root);
        if (znode !== null && znode.data !== '') {
          const found = parse(znode);
          if ((await zk.get(markOf(found.id))) !== null) return found;
          throw new Error(`${root} was deleted in part: delete it with all nodes below it`);
        }
        if (znode !== null && (await zk.children(root)).length > 0) {
          throw formatConflict(name, `the node ${root} holds no record`);
        }
        const { isDone } = await zk.change([
          znode === null ? create(root, JSON.stringify(fresh)) : set(root, fresh, znode.version),
          create(markOf(id)),
        ]);
        return isDone ? fresh : undefined;
      });
    },

    async raise({ signal, ...request }) {
      const { namespace } = request;
      const zk = await session({ signal });
      return retryChange(signal, async () => {
        const found = await recordOf(zk, namespace);
        if (found === null) throw new Error(`${name} has no namespace of ID ${namespace}`);
        const higher = raiseRecord(found.record, request);
        const { id } = higher;
        const marks =
          id === namespace ? [checkId(id)] : [remove(markOf(namespace)), create(markOf(id))];
        const { isDone } = await zk.change([...marks, set(root, higher, found.version)]);
        return isDone ? higher : undefined;
      });
    },

    async acquire(request) {
      const { namespace: id, datacenterId, workerIds, owner, holder, ceiling } = request;
      const { ttl, signal } = request;
      const zk = await session(request);
      if (known.size > 0 && (await recordOf(zk, id)) !== null) await free(zk, 'lost', 'unused');
      // Without effect if the znode exists or the namespace does not.
      await zk.change([checkId(id), create(`${root}/${datacenterId}`)]);
      return retryChange(signal, async () => {
        const found = await recordOf(zk, id);
        if (found === null) return { isMissing: true };
        const slots = await slotsOf(zk, datacenterId);
        const workerId = pickFree(slots, workerIds, (each) => slots.get(each)?.isHeld);
        if (workerId === undefined) {
          const held = [...slots].filter(([, { isHeld }]) => isHeld);
          return { holders: held.map(([each, slot]) => holderOf(each, slot.holder)) };
        }
        const { ceiling: before = -1, version } = slots.get(workerId) ?? {};
        const floor = Math.max(before, found.record.floor);
        const path = pathOf({ datacenterId, workerId });
        // The port helps operators to recognise a process.
        const hold = { owner, ...holder, port, ttl };
        const changes = [
          checkId(id),
          { kind: 'check', path: root, version: found.version },
          ...(version === undefined ? [create(path)] : []),
          set(path, { ceiling: Math.max(floor, ceiling), ...hold }, version ?? 0),
          createEphemeral(`${path}/holder`, JSON.stringify(hold)),
        ];
        const { isDone, time } = await zk.change(changes).catch((failure) => {
          // The ensemble may have made the changes.
          known.set(owner, { path, namespace: id, use: 'unused' });
          throw failure;
        });
        if (!isDone) return undefined;
        known.set(owner, { path, namespace: id, use: signal?.aborted ? 'unused' : 'held' });
        return { workerId, floor, expires: expiry(zk, time, ttl), now: time };
      });
    },

    async renew({ namespace: id, ceiling, confirmed, owner, ttl, signal, ...request }) {
      const zk = await session({ ttl, signal });
      const path = pathOf(request);
      return retryChange(signal, async () => {
        const [found, znode] = await Promise.all([recordOf(zk, id), zk.get(path)]);
        const recorded = found === null || znode === null ? undefined : parse(znode);
        const lost = lossOf(recorded, { owner, confirmed });
        if (lost !== undefined) {
          if (lost === 'reverted' || known.get(owner)?.namespace === id) {
            known.set(owner, { path, namespace: id, use: 'lost' });
          }
          return { isHeld: false, lost };
        }
        const higher = { ...recorded, ttl, ceiling: Math.max(recorded.ceiling, ceiling) };
        const changes = [checkId(id), set(path, higher, znode.version)];
        // The session that created the holder has ended, and no other process has taken the slot.
        if (!(await zk.children(path)).includes('holder')) {
          const { ceiling: _, ...hold } = recorded;
          changes.push(createEphemeral(`${path}/holder`, JSON.stringify(hold)));
        }
        const { isDone, time } = await zk.change(changes);
        if (!isDone) return undefined;
        // Not awaited: the reply must be in time.
        free(zk, 'unused').catch(() => {});
        return { isHeld: true, expires: expiry(zk, time, ttl), now: time };
      });
    },

    async release({ namespace: id, last, owner, ttl, signal, ...request }) {
      const path = pathOf(request);
      known.set(owner, { path, namespace: id, use: 'unused' });
      const zk = await session({ ttl, signal });
      await retryChange(signal, async () => {
        const znode = await zk.get(path);
        const recorded = znode === null ? {} : parse(znode);
        if (recorded.owner !== owner) return null;
        const freed = await changesToFree(zk, path, znode, { ceiling: last });
        const { isDone } = await zk.change([checkId(id), ...freed]);
        if (isDone) return null;
        // A namespace with another ID has nothing to free.
        return (await recordOf(zk, id)) === null ? null : undefined;
      });
      known.delete(owner);
    },

    async slots() {
      const zk = await session();
      const znode = await zk.get(root);
      if (znode === null) return { slots: [] };
      const children = await zk.children(root);
      if (znode.data === '' && children.length === 0) return { slots: [] };
      if (znode.data === '') throw formatConflict(name, `the node ${root} holds no record`);
      const datacenters = children.filter((child) => /^\d+$/.test(child));
      const each = datacenters.map(async (datacenterId) =>
        [...(await slotsOf(zk, datacenterId))].map(([workerId, { ceiling, holder, isHeld }]) => ({
          ...holderOf(workerId, holder),
          datacenterId: Number(datacenterId),
          ceiling,
          isHeld,
        })),
      );
      return { namespace: parse(znode), slots: (await Promise.all(each)).flat() };
    },

    close,
  };
}

module.exports = { zookeeper };
