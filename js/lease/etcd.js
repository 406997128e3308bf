'use strict';
// `snowdrift/lease/etcd`: slots in etcd, by its v3 JSON gateway over fetch, so there is no client to
// install. A slot has two keys: its ceiling, which stays, and its hold, which goes when the etcd lease
// that it is tied to expires. Each change is one transaction that compares what it rests on.

const { configError, shown } = require('../errors.js');
const { pickUnused, readNamespace } = require('./adapter.js');
const { layoutConflict } = require('./conflict.js');

const encode = (text) => Buffer.from(String(text)).toString('base64');
const decode = (text) => Buffer.from(text, 'base64').toString();

/** One after the last key with a prefix: the range's end. */
const after = (prefix) =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

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
  const ceilingKey = (datacenterId, workerId) => `${root}ceilings/${datacenterId}/${workerId}`;
  const holdKey = (datacenterId, workerId) => `${root}holds/${datacenterId}/${workerId}`;
  /** By owner: the etcd lease that its hold is tied to. */
  const leases = new Map();

  async function post(path, body, signal) {
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
    return { answer, date: response.headers.get('date') };
  }

  const txn = async (compare, success, signal) =>
    (await post('/v3/kv/txn', { compare, success }, signal)).answer.succeeded === true;
  const put = (key, value, lease) => ({
    request_put: { key: encode(key), value: encode(value), ...(lease ? { lease } : {}) },
  });
  const isAbsent = (key) => ({ key: encode(key), target: 'CREATE', create_revision: '0' });
  const isValue = (key, value) => ({ key: encode(key), target: 'VALUE', value: encode(value) });

  async function range(prefix, signal) {
    const body = { key: encode(prefix), range_end: encode(after(prefix)) };
    const { kvs = [] } = (await post('/v3/kv/range', body, signal)).answer;
    return new Map(kvs.map(({ key, value }) => [decode(key).slice(prefix.length), decode(value)]));
  }

  async function checkLayout(layout, signal) {
    const key = `${root}layout`;
    await txn([isAbsent(key)], [put(key, layout)], signal);
    const found = (await range(key, signal)).get('');
    if (found !== layout) throw layoutConflict(name, found, layout);
  }

  async function grant(ttl, signal) {
    const { answer } = await post(
      '/v3/lease/grant',
      { TTL: String(Math.ceil(ttl / 1000)) },
      signal,
    );
    return answer.ID;
  }

  const revoke = (lease) => post('/v3/lease/revoke', { ID: lease });

  return {
    name,

    async now({ signal } = {}) {
      const asked = performance.now();
      const { date } = await post('/v3/maintenance/status', {}, signal);
      // To the second, in the middle of which it is taken.
      return Date.parse(date) + 500 + (performance.now() - asked) / 2;
    },

    async acquire({ layout, datacenterId, workerIds, owner, holder, ceiling, ttl, signal }) {
      await checkLayout(layout, signal);
      const lease = await grant(ttl, signal);
      const value = JSON.stringify({ owner, ...holder });
      for (;;) {
        const [ceilings, holds] = await Promise.all([
          range(`${root}ceilings/${datacenterId}/`, signal),
          range(`${root}holds/${datacenterId}/`, signal),
        ]);
        const slot = lowestFree(ceilings, holds, workerIds);
        if (slot === undefined) {
          await revoke(lease);
          return { holders: holdersOf(holds) };
        }
        const { workerId, seen } = slot;
        const [at, hold] = [ceilingKey(datacenterId, workerId), holdKey(datacenterId, workerId)];
        const floor = seen === undefined ? -1 : Number(seen);
        const isTaken = await txn(
          [isAbsent(hold), seen === undefined ? isAbsent(at) : isValue(at, seen)],
          [put(hold, value, lease), put(at, Math.max(floor, ceiling))],
          signal,
        );
        if (isTaken) {
          leases.set(owner, { lease, value });
          return { workerId, floor, expires: Date.now() + ttl };
        }
      }
    },

    async renew({ datacenterId, workerId, owner, ceiling, ttl, signal }) {
      const mine = leases.get(owner);
      if (mine === undefined) return { isHeld: false };
      await post('/v3/lease/keepalive', { ID: mine.lease }, signal);
      const [hold, at] = [holdKey(datacenterId, workerId), ceilingKey(datacenterId, workerId)];
      const isMine = isValue(hold, mine.value);
      for (;;) {
        const recorded = (await range(at, signal)).get('');
        const higher = Math.max(Number(recorded), ceiling);
        // An earlier call that was given up may still arrive: it must not lower what this one raises.
        if (await txn([isMine, isValue(at, recorded)], [put(at, higher)], signal)) {
          return { isHeld: true, expires: Date.now() + ttl };
        }
        if ((await range(hold, signal)).get('') !== mine.value) return { isHeld: false };
      }
    },

    async release({ datacenterId, workerId, owner, last, signal }) {
      const mine = leases.get(owner);
      if (mine === undefined) return;
      leases.delete(owner);
      const hold = holdKey(datacenterId, workerId);
      await txn(
        [isValue(hold, mine.value)],
        [
          put(ceilingKey(datacenterId, workerId), last),
          { request_delete_range: { key: encode(hold) } },
        ],
        signal,
      );
      // It may have expired meanwhile.
      await revoke(mine.lease).catch(() => {});
    },

    async slots() {
      const all = await range(root);
      const slots = [];
      for (const [key, ceiling] of all) {
        const [kind, datacenterId, workerId] = key.split('/');
        if (kind !== 'ceilings') continue;
        const hold = all.get(`holds/${datacenterId}/${workerId}`);
        const { host, pid, startedAt } = hold === undefined ? {} : JSON.parse(hold);
        slots.push({
          datacenterId: Number(datacenterId),
          workerId: Number(workerId),
          ...(hold === undefined ? {} : { host, pid, startedAt: new Date(startedAt) }),
          ceiling: Number(ceiling),
          isHeld: hold !== undefined,
        });
      }
      return { layout: all.get('layout'), slots };
    },
  };
}

/** The free slot with the lowest ceiling; any of those that were never used. */
function lowestFree(ceilings, holds, workerIds) {
  if (ceilings.size < workerIds) {
    const isUsed = (id) => ceilings.has(String(id)) || holds.has(String(id));
    const workerId = pickUnused(workerIds, isUsed);
    if (workerId !== undefined) return { workerId, seen: undefined };
  }
  const [lowest] = [...ceilings]
    .filter(([id]) => !holds.has(id))
    .sort(([, a], [, b]) => Number(a) - Number(b));
  return lowest && { workerId: Number(lowest[0]), seen: lowest[1] };
}

function holdersOf(holds) {
  return [...holds]
    .map(([id, value]) => {
      const { host, pid, startedAt } = JSON.parse(value);
      return { workerId: Number(id), host, pid, startedAt: new Date(startedAt) };
    })
    .sort((a, b) => a.workerId - b.workerId);
}

module.exports = { etcd };
