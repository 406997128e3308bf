'use strict';
// `snowdrift/lease/zookeeper`: slots in ZooKeeper, by the optional second addon, `snowdrift-zookeeper`.
//
//   /snowdrift/NAMESPACE                            the namespace's record
//   /snowdrift/NAMESPACE/id-ID                      by its name, whether the namespace is still that one
//   /snowdrift/NAMESPACE/DATACENTER/WORKER          its ceiling, and who had it last: stays
//   /snowdrift/NAMESPACE/DATACENTER/WORKER/holder   ephemeral: is there while it is held
//
// The node that stays is the fence: only its owner sets it, by its version, so that a check of the
// owner and the raise of the ceiling are one step. The ephemeral one only tells whether it is held.
// Versions start anew with a node that is created anew, so each step checks the ID's node, too.

const { loadAddon } = require('../addon.js');
const { configError, needsPackage, shown } = require('../errors.js');
const { wholeNumber } = require('../options.js');
const { pickUnused, readNamespace } = require('./adapter.js');
const { formatConflict } = require('./format.js');

/** Of a session that is asked for the time only. */
const USUAL_TTL_MS = 10_000;

/** How often a change is tried again that others were faster with. */
const MOST_TRIES = 1000;

/** Above all namespaces. Touched to read the ensemble's clock. */
const TOP = '/snowdrift';

/** The addon, of a package that the application has installed. */
function load() {
  let found;
  try {
    found = require('snowdrift-zookeeper');
  } catch (cause) {
    throw needsPackage('a lease from ZooKeeper', 'snowdrift-zookeeper', cause);
  }
  return loadAddon('snowdrift-zookeeper', found.directory, found.load);
}

function zookeeper(ensemble, { port, ...options } = {}) {
  const namespace = readNamespace(options);
  if (port !== undefined) wholeNumber('port', port, 0, 65_535);
  if (typeof ensemble !== 'string' || !/^[^/,:\s]+:\d+(,[^/,:\s]+:\d+)*(\/\S*)?$/.test(ensemble)) {
    throw configError(
      `zookeeper() takes the addresses of an ensemble, such as 'zk1:2181,zk2:2181'; this is ${shown(ensemble)}`,
    );
  }
  const { connect } = load();
  const name = `zookeeper:${ensemble}/${namespace}`;
  const root = `${TOP}/${namespace}`;
  const pathOf = ({ datacenterId, workerId }) => `${root}/${datacenterId}/${workerId}`;
  let connecting;

  /** The session, or another one when it has expired. It lives as long as a hold should. */
  async function session({ ttl = USUAL_TTL_MS, signal } = {}) {
    signal?.throwIfAborted();
    let open = await connecting?.catch(() => undefined);
    if (open === undefined || open.hasEnded()) {
      connecting = connect(ensemble, ttl);
      open = await connecting;
      await open.make(TOP);
    }
    signal?.throwIfAborted();
    return open;
  }

  const parsed = ({ data }) => JSON.parse(data);
  const markOf = (id) => `${root}/id-${id}`;
  const create = (path, data = '') => ({ kind: 'create', path, data });
  const createEphemeral = (path, data) => ({ kind: 'createEphemeral', path, data });
  const set = (path, value, version) => ({
    kind: 'set',
    path,
    data: JSON.stringify(value),
    version,
  });
  /** That a namespace is still the one of this ID. */
  const isStill = (id) => ({ kind: 'check', path: markOf(id) });

  /** When the ensemble ends a session that is silent from now on. */
  const expiry = (zk, time, ttl) => time + Math.min(ttl, zk.timeout());

  /** The namespace's record and its node's version, if it is the one of this ID; or null. */
  async function recordOf(zk, id) {
    const node = await zk.get(root);
    const record = node === null || node.data === '' ? {} : parsed(node);
    return record.id === id ? { record, version: node.version } : null;
  }

  /** Tries a change until it is done or there is nothing to do: until `attempt` returns something. */
  async function change(signal, attempt) {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      signal?.throwIfAborted();
      const result = await attempt();
      if (result !== undefined) return result;
    }
    throw new Error(`others changed the same node ${MOST_TRIES} times in between`);
  }

  /** All slots that were ever used: { workerId, ceiling, holder, version, isHeld }. */
  async function slotsOf(zk, datacenterId) {
    const ids = await zk.children(`${root}/${datacenterId}`);
    const slots = await Promise.all(
      ids.map(async (id) => {
        const path = pathOf({ datacenterId, workerId: id });
        const [node, children] = await Promise.all([zk.get(path), zk.children(path)]);
        // Deleted meanwhile.
        if (node === null) return undefined;
        const { ceiling, ...holder } = parsed(node);
        const isHeld = children.includes('holder');
        return { workerId: Number(id), ceiling, holder, version: node.version, isHeld };
      }),
    );
    return slots.filter((slot) => slot !== undefined);
  }

  function pick(slots, workerIds) {
    const used = new Set(slots.map(({ workerId }) => workerId));
    const workerId = pickUnused(workerIds, (id) => used.has(id));
    if (workerId !== undefined) return { workerId, ceiling: -1 };
    const free = slots.filter((slot) => !slot.isHeld && slot.workerId < workerIds);
    return free.sort((a, b) => a.ceiling - b.ceiling)[0];
  }

  return {
    name,

    async now(request) {
      return (await session(request)).touch(TOP);
    },

    async open({ id, layout, ttl, maxClockSkew, maxAhead, floor, signal }) {
      const zk = await session({ ttl, signal });
      const fresh = { id, layout, ttl, maxClockSkew, maxAhead, floor };
      return change(signal, async () => {
        const node = await zk.get(root);
        if (node !== null && node.data !== '') {
          const found = parsed(node);
          if ((await zk.get(markOf(found.id))) !== null) return found;
          throw new Error(`${root} was deleted in part: delete it with all nodes below it`);
        }
        if (node !== null && (await zk.children(root)).length > 0) {
          throw formatConflict(name, `the node ${root} holds no record`);
        }
        const { isDone } = await zk.change([
          node === null ? create(root, JSON.stringify(fresh)) : set(root, fresh, node.version),
          create(markOf(id)),
        ]);
        return isDone ? fresh : undefined;
      });
    },

    async raise({ namespace: id, signal, ...least }) {
      const zk = await session({ signal });
      return change(signal, async () => {
        const found = await recordOf(zk, id);
        if (found === null) throw new Error(`${name} has no namespace of ID ${id}`);
        const { record, version } = found;
        for (const [field, value] of Object.entries(least)) {
          if (value !== undefined) record[field] = Math.max(record[field], value);
        }
        const { isDone } = await zk.change([isStill(id), set(root, record, version)]);
        return isDone ? record : undefined;
      });
    },

    async acquire(request) {
      const { namespace: id, datacenterId, workerIds, owner, holder, ceiling } = request;
      const { ttl, signal } = request;
      const zk = await session(request);
      // Fails if it is there, or the namespace is not.
      await zk.change([isStill(id), create(`${root}/${datacenterId}`)]);
      return change(signal, async () => {
        const found = await recordOf(zk, id);
        if (found === null) return { isMissing: true };
        const slots = await slotsOf(zk, datacenterId);
        const slot = pick(slots, workerIds);
        if (slot === undefined) {
          const held = slots.filter(({ isHeld }) => isHeld);
          return { holders: held.map(({ workerId, holder: who }) => holderOf(workerId, who)) };
        }
        const { workerId, version } = slot;
        const floor = Math.max(slot.ceiling, found.record.floor);
        const path = pathOf({ datacenterId, workerId });
        // The port is for operators, who know a process by it.
        const who = { owner, ...holder, port };
        const { isDone, time } = await zk.change([
          isStill(id),
          { kind: 'check', path: root, version: found.version },
          ...(version === undefined ? [create(path)] : []),
          set(path, { ceiling: Math.max(floor, ceiling), ...who }, version ?? 0),
          createEphemeral(`${path}/holder`, JSON.stringify(who)),
        ]);
        return isDone ? { workerId, floor, expires: expiry(zk, time, ttl), now: time } : undefined;
      });
    },

    async renew({ namespace: id, ceiling, confirmed, owner, ttl, signal, ...request }) {
      const zk = await session({ ttl, signal });
      const path = pathOf(request);
      return change(signal, async () => {
        const [found, node] = await Promise.all([recordOf(zk, id), zk.get(path)]);
        if (found === null || node === null) return { isHeld: false, lost: 'missing' };
        const recorded = parsed(node);
        if (recorded.ceiling < confirmed) return { isHeld: false, lost: 'reverted' };
        if (recorded.owner !== owner) return { isHeld: false, lost: 'taken' };
        const changes = [
          isStill(id),
          set(path, { ...recorded, ceiling: Math.max(recorded.ceiling, ceiling) }, node.version),
        ];
        // In a session that came after one that has expired, nobody else having come in between.
        if (!(await zk.children(path)).includes('holder')) {
          const { ceiling: _, ...who } = recorded;
          changes.push(createEphemeral(`${path}/holder`, JSON.stringify(who)));
        }
        const { isDone, time } = await zk.change(changes);
        return isDone ? { isHeld: true, expires: expiry(zk, time, ttl), now: time } : undefined;
      });
    },

    async release({ namespace: id, last, owner, ttl, signal, ...request }) {
      const zk = await session({ ttl, signal });
      const path = pathOf(request);
      await change(signal, async () => {
        const node = await zk.get(path);
        const recorded = node === null ? {} : parsed(node);
        if (recorded.owner !== owner) return null;
        const hasHolder = (await zk.children(path)).includes('holder');
        const { isDone } = await zk.change([
          isStill(id),
          set(path, { ...recorded, ceiling: last, owner: null }, node.version),
          ...(hasHolder ? [{ kind: 'delete', path: `${path}/holder` }] : []),
        ]);
        if (isDone) return null;
        // Of another namespace there is nothing to free.
        return (await recordOf(zk, id)) === null ? null : undefined;
      });
    },

    async slots() {
      const zk = await session();
      const node = await zk.get(root);
      if (node === null) return { slots: [] };
      const children = await zk.children(root);
      if (node.data === '') {
        if (children.length === 0) return { slots: [] };
        throw formatConflict(name, `the node ${root} holds no record`);
      }
      const datacenters = children.filter((child) => /^\d+$/.test(child));
      const each = datacenters.map(async (datacenterId) =>
        (await slotsOf(zk, datacenterId)).map(({ workerId, ceiling, holder, isHeld }) => ({
          ...holderOf(workerId, holder),
          datacenterId: Number(datacenterId),
          ceiling,
          isHeld,
        })),
      );
      return { namespace: parsed(node), slots: (await Promise.all(each)).flat() };
    },

    /** Ends the session, so whatever is held in it is free. */
    async close() {
      const open = await connecting?.catch(() => undefined);
      connecting = undefined;
      open?.close();
    },
  };
}

function holderOf(workerId, { pid, host, startedAt }) {
  return { workerId, pid, host, startedAt: new Date(startedAt) };
}

module.exports = { zookeeper };
