'use strict';
// Slots in tables of a SQL database, for any dialect and client.
//
// Each change is one statement that checks all it depends on, including the namespace's ID, so it needs no
// transaction and disturbs none. A read of the row follows, so each reply is what the database has committed.
// Each change refuses a client inside a transaction or without autocommit, since a rollback would undo what
// was confirmed.

const { SnowFlakeError } = require('../errors.js');
const { lossOf } = require('./key-value.js');
const { readNamespace } = require('./options.js');
const { createRunner, findHome, uncommittedError } = require('./sql-clients.js');
const { DIALECTS, LOCK, tables } = require('./sql-dialects.js');

/** Slots read, and rows created, at a time. */
const BATCH = 64;

/** The most searches for a free slot in one call: other processes may take the slots first. */
const MAX_ROUNDS = 50;

/**
 * A LeaseStore on a database.
 *
 * @param kind the first part of the store's name
 * @param query runs one statement with `?` placeholders until `signal` is aborted. It returns the rows of a
 *   SELECT; for a change on MySQL, the client's result with `serverStatus`
 * @param isInTransaction whether the connection is inside a transaction, if the client knows
 */
function sqlStore({ kind, dialect, ...connection }, options) {
  const namespace = readNamespace(options);
  const name = `${kind}:${namespace}`;
  const { change, read, run } = createRunner({ name, dialect, ...connection });
  const { now, greatest, insert, isMissing, isOtherTable, beforeCreating, isUncommitted } =
    DIALECTS[dialect];
  const isSlot = 'namespace = ? AND datacenter_id = ? AND worker_id = ?';
  const slotOf = ({ datacenterId, workerId }) => [namespace, datacenterId, workerId];
  /** What qualifies the names of the tables. */
  let home;
  /** The condition that the namespace still has the ID that was opened. */
  const inNamespace = (more = '') =>
    `EXISTS (SELECT 1 FROM ${home}snowdrift_namespaces n WHERE n.namespace = ? AND n.id = ?${more})`;

  /** For catch(): a reply in case there are no tables. */
  const ifMissing = (reply) => (failure) => {
    if (isMissing(failure)) return reply;
    throw failure;
  };

  /** The namespace's record; undefined if there is none. */
  async function readRecord(request) {
    const rows = await read(
      request,
      `SELECT id, layout, ttl, max_clock_skew, max_ahead, floor, ${isUncommitted} AS uncommitted
       FROM ${home}snowdrift_namespaces WHERE namespace = ?`,
      [namespace],
    ).catch((failure) => {
      if (isMissing(failure)) return [];
      if (!isOtherTable(failure)) throw failure;
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_STORE',
        `${name} has tables of another version of snowdrift. End the processes that lease from them, wait for their ttl, and drop snowdrift_namespaces and snowdrift_slots: snowdrift creates them anew`,
        { cause: failure },
      );
    });
    if (rows.length === 0) return undefined;
    const [{ id, layout, ttl, max_clock_skew, max_ahead, floor }] = rows;
    return {
      ...{ id, layout, ttl: Number(ttl), maxClockSkew: Number(max_clock_skew) },
      ...{ maxAhead: Number(max_ahead), floor: Number(floor) },
    };
  }

  async function createTables(request) {
    if (beforeCreating) {
      await run(request, beforeCreating).catch((cause) => {
        throw uncommittedError(name, { cause });
      });
    }
    const create = tables(DIALECTS[dialect], home);
    if (dialect === 'postgres') await run(request, [LOCK, ...create].join(';\n'));
    else for (const table of create) await run(request, table);
  }

  const insertNamespace = ({ id, layout, ttl, maxClockSkew, maxAhead, floor, ...request }) =>
    change(
      request,
      insert(
        `${home}snowdrift_namespaces (namespace, id, layout, ttl, max_clock_skew, max_ahead, floor) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ),
      [namespace, id, layout, ttl, maxClockSkew, maxAhead, floor],
    );

  const readFree = (request) =>
    run(
      request,
      `SELECT worker_id, ceiling FROM ${home}snowdrift_slots
       WHERE namespace = ? AND datacenter_id = ? AND (owner IS NULL OR expires <= ${now})
       ORDER BY ceiling, worker_id LIMIT ${BATCH}`,
      [namespace, request.datacenterId],
    );

  /** Creates rows for the next worker IDs. Returns false if all have one. */
  async function createSlots({ datacenterId, workerIds, ...request }) {
    const [{ next }] = await run(
      request,
      `SELECT COALESCE(MAX(worker_id) + 1, 0) AS next FROM ${home}snowdrift_slots WHERE namespace = ? AND datacenter_id = ?`,
      [namespace, datacenterId],
    );
    const first = Number(next);
    const count = Math.min(BATCH, workerIds - first);
    if (count <= 0) return false;
    const rows = Array.from({ length: count }, () => '(?, ?, ?, -1, 0)').join(', ');
    await change(
      request,
      insert(
        `${home}snowdrift_slots (namespace, datacenter_id, worker_id, ceiling, expires) VALUES ${rows}`,
      ),
      Array.from({ length: count }, (_, n) => [namespace, datacenterId, first + n]).flat(),
    );
    return true;
  }

  /** Takes a slot if it is still free, with the ceiling and the namespace's floor that were read before. */
  async function take({ worker_id, ceiling: before }, floor, request) {
    const { owner, holder, ceiling, ttl } = request;
    const mine = { ...request, workerId: Number(worker_id) };
    await change(
      request,
      `UPDATE ${home}snowdrift_slots
       SET owner = ?, expires = ${now} + ?, ceiling = ${greatest}(ceiling, ?), host = ?, pid = ?, started = ?
       WHERE ${isSlot} AND ceiling = ? AND (owner IS NULL OR expires <= ${now})
         AND ${inNamespace(' AND n.floor = ?')}`,
      [
        ...[owner, ttl, ceiling, holder.host.slice(0, 255), holder.pid, Number(holder.startedAt)],
        ...[...slotOf(mine), before, namespace, request.namespace, floor],
      ],
    );
    const slot = await readSlot(mine);
    if (slot?.owner !== owner) return undefined;
    const { expires, now: time } = slot;
    return { workerId: mine.workerId, floor: Math.max(Number(before), floor), expires, now: time };
  }

  /** As take(). If that fails or is given up, the database may have taken the slot all the same: then it is released. */
  async function takeOrLeave(slot, floor, request) {
    request.signal?.throwIfAborted();
    try {
      return await take(slot, floor, request);
    } catch (failure) {
      const last = Math.max(Number(slot.ceiling), floor);
      const mine = { ...request, workerId: Number(slot.worker_id), last, signal: undefined };
      await calls.release(mine).catch(() => {});
      throw failure;
    }
  }

  /** A slot's record; undefined if there is none, or the namespace has another ID. */
  async function readSlot(request) {
    const [found] = await read(
      request,
      `SELECT n.id, s.owner, s.ceiling, s.expires, ${now} AS now, ${isUncommitted} AS uncommitted
       FROM ${home}snowdrift_namespaces n JOIN ${home}snowdrift_slots s ON s.namespace = n.namespace
       WHERE s.namespace = ? AND s.datacenter_id = ? AND s.worker_id = ?`,
      slotOf(request),
    );
    if (found?.id !== request.namespace) return undefined;
    const { owner, ceiling, expires, now: time } = found;
    return { owner, ceiling: Number(ceiling), expires: Number(expires), now: Number(time) };
  }

  const calls = {
    async now(request) {
      const [{ ms }] = await run(request, `SELECT ${now} AS ms`);
      return Number(ms);
    },

    async open(request) {
      const found = await readRecord(request);
      if (found) return found;
      try {
        await insertNamespace(request);
      } catch (failure) {
        if (!isMissing(failure)) throw failure;
        await createTables(request);
        await insertNamespace(request);
      }
      const created = await readRecord(request);
      if (created === undefined) throw new Error('the namespace was deleted meanwhile');
      return created;
    },

    async raise({
      namespace: before,
      id = before,
      floor = -1,
      ttl = 0,
      maxClockSkew = 0,
      maxAhead = 0,
      ...request
    }) {
      await change(
        request,
        `UPDATE ${home}snowdrift_namespaces
         SET id = ?, floor = ${greatest}(floor, ?), ttl = ${greatest}(ttl, ?),
           max_clock_skew = ${greatest}(max_clock_skew, ?), max_ahead = ${greatest}(max_ahead, ?)
         WHERE namespace = ? AND id = ?`,
        [id, floor, ttl, maxClockSkew, maxAhead, namespace, before],
      );
      const found = await readRecord(request);
      if (found?.id !== id) throw new Error('the namespace has another ID, or there is none');
      // Only now: slots that were dropped must not be free below the new floor.
      await run(request, `SELECT 1 FROM ${home}snowdrift_slots WHERE 1 = 0`).catch((failure) => {
        if (!isMissing(failure)) throw failure;
        return createTables(request);
      });
      return found;
    },

    acquire: (request) => acquire(request).catch(ifMissing({ isMissing: true })),

    renew: (request) => renew(request).catch(ifMissing({ isHeld: false, lost: 'missing' })),

    async release({ last, owner, ...request }) {
      await change(
        request,
        `UPDATE ${home}snowdrift_slots SET owner = NULL, ceiling = ?
         WHERE ${isSlot} AND owner = ? AND ${inNamespace()}`,
        [last, ...slotOf(request), owner, namespace, request.namespace],
      );
    },

    async slots(request) {
      const found = await readRecord(request);
      if (found === undefined) return { slots: [] };
      const rows = await run(
        request,
        `SELECT datacenter_id, worker_id, host, pid, started, ceiling, expires,
           CASE WHEN owner IS NOT NULL AND expires > ${now} THEN 1 ELSE 0 END AS held
         FROM ${home}snowdrift_slots WHERE namespace = ? AND ceiling >= 0
         ORDER BY datacenter_id, worker_id`,
        [namespace],
      );
      const slots = rows.map((row) => ({
        ...holderOf(row),
        datacenterId: Number(row.datacenter_id),
        ceiling: Number(row.ceiling),
        expires: Number(row.expires),
        isHeld: Number(row.held) === 1,
      }));
      return { namespace: found, slots };
    },
  };

  const atHome =
    (call) =>
    async (request = {}) => {
      if (home === undefined) {
        const found = await findHome(name, dialect, 'snowdrift_namespaces', (text) =>
          run(request, text),
        );
        home ??= found;
      }
      return call(request);
    };

  return {
    name,
    ...Object.fromEntries(Object.entries(calls).map(([each, call]) => [each, atHome(call)])),
  };

  async function acquire(request) {
    let isComplete = false;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const found = await readRecord(request);
      if (found?.id !== request.namespace) return { isMissing: true };
      // In random order among the lowest, so that processes that start together try different slots.
      const slots = await readFree(request);
      const lowest = slots.filter(({ ceiling }) => ceiling === slots[0].ceiling);
      lowest.push(...lowest.splice(0, Math.floor(Math.random() * lowest.length)));
      for (const slot of [...lowest, ...slots.slice(lowest.length)]) {
        const taken = await takeOrLeave(slot, found.floor, request);
        if (taken) return taken;
      }
      if (slots.length > 0) continue;
      // After the last row exists, one more search: another process may have created it.
      if (isComplete) return { holders: await readHolders(request) };
      isComplete = !(await createSlots(request));
    }
    throw new Error(`other processes took each free slot first, ${MAX_ROUNDS} times`);
  }

  async function readHolders(request) {
    const rows = await run(
      request,
      `SELECT worker_id, host, pid, started FROM ${home}snowdrift_slots
       WHERE namespace = ? AND datacenter_id = ? AND owner IS NOT NULL AND expires > ${now}
       ORDER BY worker_id LIMIT 1024`,
      [namespace, request.datacenterId],
    );
    return rows.map(holderOf);
  }

  async function renew({ ceiling, confirmed, ttl, owner, ...request }) {
    await change(
      request,
      `UPDATE ${home}snowdrift_slots SET ceiling = ${greatest}(ceiling, ?), expires = ${now} + ?
       WHERE ${isSlot} AND owner = ? AND ceiling >= ? AND ${inNamespace()}`,
      [ceiling, ttl, ...slotOf(request), owner, confirmed, namespace, request.namespace],
    );
    const slot = await readSlot(request);
    const lost = lossOf(slot, { owner, confirmed });
    if (lost !== undefined) return { isHeld: false, lost };
    if (slot.ceiling < ceiling) throw uncommittedError(name);
    return { isHeld: true, expires: slot.expires, now: slot.now };
  }
}

const holderOf = ({ worker_id, host, pid, started }) => ({
  workerId: Number(worker_id),
  host,
  pid: Number(pid),
  startedAt: new Date(Number(started)),
});

module.exports = { sqlStore };
