'use strict';
// `snowdrift/lease/zookeeper`: slots in ZooKeeper, by the optional second addon, `snowdrift-zookeeper`.
//
//   /snowdrift/NAMESPACE/layout
//   /snowdrift/NAMESPACE/DATACENTER/WORKER          its ceiling, and who had it last: stays
//   /snowdrift/NAMESPACE/DATACENTER/WORKER/holder   ephemeral: is there while it is held
//
// The node that stays is the fence: only its owner sets it, by its version, so that a check of the
// owner and the raise of the ceiling are one step. The ephemeral one only tells whether it is held.

const { loadAddon } = require('../addon.js');
const { configError, needsPackage, shown } = require('../errors.js');
const { wholeNumber } = require('../options.js');
const { pickUnused, readNamespace } = require('./adapter.js');
const { layoutConflict } = require('./conflict.js');

/** Of a session that is asked for the time only. */
const USUAL_TTL_MS = 10_000;

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
  const root = `/snowdrift/${namespace}`;
  const pathOf = ({ datacenterId, workerId }) => `${root}/${datacenterId}/${workerId}`;
  let connecting;

  /** The session, or another one when it has expired. It lives as long as a hold should. */
  async function session(ttl = USUAL_TTL_MS) {
    if (connecting !== undefined) {
      const open = await connecting.catch(() => undefined);
      if (open !== undefined && !open.hasEnded()) return open;
    }
    connecting = connect(ensemble, ttl);
    const fresh = await connecting;
    await fresh.make(root);
    return fresh;
  }

  const parsed = ({ data }) => JSON.parse(data);

  async function checkLayout(zk, layout) {
    const path = `${root}/layout`;
    let found = await zk.get(path);
    if (found === null) {
      await zk.change([{ kind: 'create', path, data: layout }]);
      found = await zk.get(path);
    }
    if (found.data !== layout) throw layoutConflict(name, found.data, layout);
  }

  /** All slots that were ever used: { workerId, ceiling, version, isHeld }. */
  async function slotsOf(zk, datacenterId) {
    const ids = await zk.children(`${root}/${datacenterId}`);
    return Promise.all(
      ids.map(async (id) => {
        const path = pathOf({ datacenterId, workerId: id });
        const [node, children] = await Promise.all([zk.get(path), zk.children(path)]);
        const { ceiling, ...holder } = parsed(node);
        const isHeld = children.includes('holder');
        return { workerId: Number(id), ceiling, holder, version: node.version, isHeld };
      }),
    );
  }

  /** A slot's node as its owner finds it; null if it is another's. */
  async function ownSlot(zk, path, owner) {
    const node = await zk.get(path);
    const recorded = node === null ? {} : parsed(node);
    if (recorded.owner !== owner) return null;
    const hasHolder = (await zk.children(path)).includes('holder');
    return { recorded, version: node.version, hasHolder };
  }

  function pick(slots, workerIds) {
    const used = new Set(slots.map(({ workerId }) => workerId));
    const workerId = pickUnused(workerIds, (id) => used.has(id));
    if (workerId !== undefined) return { workerId, ceiling: -1 };
    const free = slots.filter(({ isHeld }) => !isHeld);
    return free.sort((a, b) => a.ceiling - b.ceiling)[0];
  }

  return {
    name,

    async now({ ttl } = {}) {
      const zk = await session(ttl);
      const path = `${root}/clock`;
      await zk.make(path);
      const asked = performance.now();
      const written = await zk.touch(path);
      return written + (performance.now() - asked) / 2;
    },

    async acquire({ layout, datacenterId, workerIds, owner, holder, ceiling, ttl, signal }) {
      const zk = await session(ttl);
      await checkLayout(zk, layout);
      await zk.make(`${root}/${datacenterId}`);
      for (;;) {
        const slots = await slotsOf(zk, datacenterId);
        const slot = pick(slots, workerIds);
        if (slot === undefined) {
          return { holders: slots.map(({ workerId, holder: who }) => holderOf(workerId, who)) };
        }
        const { workerId, version, ceiling: floor } = slot;
        const path = pathOf({ datacenterId, workerId });
        // The port is for operators, who know a process by it.
        const who = { owner, ...holder, port };
        const data = JSON.stringify({ ceiling: Math.max(floor, ceiling), ...who });
        const isTaken = await zk.change([
          version === undefined
            ? { kind: 'create', path, data }
            : { kind: 'set', path, data, version },
          { kind: 'createEphemeral', path: `${path}/holder`, data: JSON.stringify(who) },
        ]);
        if (isTaken) return { workerId, floor, expires: Date.now() + ttl };
        signal?.throwIfAborted();
      }
    },

    async renew({ ceiling, owner, ttl, signal, ...request }) {
      const zk = await session(ttl);
      const path = pathOf(request);
      for (;;) {
        const own = await ownSlot(zk, path, owner);
        if (own === null) return { isHeld: false };
        const { recorded, version, hasHolder } = own;
        const data = JSON.stringify({ ...recorded, ceiling: Math.max(recorded.ceiling, ceiling) });
        const { ceiling: _, ...who } = recorded;
        const changes = [{ kind: 'set', path, data, version }];
        // In a session that came after one that has expired, nobody else having come in between.
        if (!hasHolder) {
          const hold = { path: `${path}/holder`, data: JSON.stringify(who) };
          changes.push({ kind: 'createEphemeral', ...hold });
        }
        if (await zk.change(changes)) return { isHeld: true, expires: Date.now() + ttl };
        signal?.throwIfAborted();
      }
    },

    async release({ last, owner, ttl, signal, ...request }) {
      const zk = await session(ttl);
      const path = pathOf(request);
      for (;;) {
        const own = await ownSlot(zk, path, owner);
        if (own === null) return;
        const { recorded, version, hasHolder } = own;
        const data = JSON.stringify({ ...recorded, ceiling: last, owner: null });
        const isFree = await zk.change([
          { kind: 'set', path, data, version },
          ...(hasHolder ? [{ kind: 'delete', path: `${path}/holder` }] : []),
        ]);
        if (isFree) return;
        signal?.throwIfAborted();
      }
    },

    async slots() {
      const zk = await session();
      const found = await zk.get(`${root}/layout`);
      if (found === null) return { slots: [] };
      const datacenters = (await zk.children(root)).filter((name) => /^\d+$/.test(name));
      const each = datacenters.map(async (datacenterId) =>
        (await slotsOf(zk, datacenterId)).map(({ workerId, ceiling, holder, isHeld }) => ({
          ...holderOf(workerId, holder),
          datacenterId: Number(datacenterId),
          ceiling,
          isHeld,
        })),
      );
      return { layout: found.data, slots: (await Promise.all(each)).flat() };
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
