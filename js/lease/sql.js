'use strict';
// Slots in tables of a SQL database: the statements, whatever the database and its client.
//
// Every change is one statement that checks what it depends on, the namespace's ID among it, so no
// transaction is needed and none of the application's is disturbed. Then the row is read: what is
// answered is what the database has committed. A client that is inside a transaction, or does not
// commit by itself, is refused at each change, since a rollback would undo what was confirmed.

const { SnowFlakeError, argumentError, configError } = require('../errors.js');

/** How many free slots are looked at, and how many rows are made, at a time. */
const BATCH = 64;

/** How often free slots are looked for in one call: others may take them first. */
const MOST_ROUNDS = 50;

/** How often one statement is run that gives way to others: see `isConflict`. */
const MOST_TRIES = 20;

/** Two that create a table at once would fail on PostgreSQL, in spite of IF NOT EXISTS. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtext('snowdrift'))";

/** Bits of the status that MySQL answers each change with. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

const DIALECTS = {
  postgres: {
    now: 'CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)',
    // Whether this transaction has changed anything: the read after a change is one of its own.
    isUncommitted: '(txid_current_if_assigned() IS NOT NULL)',
    greatest: 'GREATEST',
    text: (length) => `VARCHAR(${length})`,
    insert: (into) => `INSERT INTO ${into} ON CONFLICT DO NOTHING`,
    isMissing: ({ code }) => code === '42P01',
    isOtherTable: ({ code }) => code === '42703',
    // Where serializable is the default, concurrent changes fail; and a deadlock ends one of them.
    isConflict: ({ code }) => code === '40001' || code === '40P01',
  },
  mysql: {
    // In UTC: a local time comes twice when summer time ends.
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)",
    isUncommitted: '(@@autocommit = 0)',
    greatest: 'GREATEST',
    // Compared byte by byte, whatever the database's own collation.
    text: (length) => `VARCHAR(${length}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    insert: (into) => `INSERT IGNORE INTO ${into}`,
    isMissing: ({ code, errno }) => code === 'ER_NO_SUCH_TABLE' || errno === 1146,
    isOtherTable: ({ code, errno }) => code === 'ER_BAD_FIELD_ERROR' || errno === 1054,
    isConflict: ({ code, errno }) => code === 'ER_LOCK_DEADLOCK' || errno === 1213,
    // Refused inside a transaction, which CREATE TABLE would commit.
    beforeCreating: 'SET TRANSACTION READ WRITE',
    isCommitted: ({ serverStatus }) =>
      (serverStatus & IN_TRANSACTION) === 0 && (serverStatus & AUTOCOMMIT) !== 0,
  },
  sqlite: {
    now: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    isUncommitted: '0',
    greatest: 'MAX',
    text: () => 'TEXT',
    insert: (into) => `INSERT OR IGNORE INTO ${into}`,
    isMissing: ({ message }) => /no such table/.test(message),
    isOtherTable: ({ message }) => /no such column/.test(message),
    isConflict: () => false,
  },
};

function tables({ text }) {
  return [
    `CREATE TABLE IF NOT EXISTS snowdrift_namespaces (
  namespace ${text(64)} NOT NULL PRIMARY KEY,
  id ${text(32)} NOT NULL,
  layout ${text(64)} NOT NULL,
  ttl BIGINT NOT NULL,
  max_clock_skew BIGINT NOT NULL,
  max_ahead BIGINT NOT NULL,
  floor BIGINT NOT NULL
)`,
    `CREATE TABLE IF NOT EXISTS snowdrift_slots (
  namespace ${text(64)} NOT NULL,
  datacenter_id BIGINT NOT NULL,
  worker_id BIGINT NOT NULL,
  ceiling BIGINT NOT NULL,
  owner ${text(32)},
  expires BIGINT NOT NULL,
  host ${text(255)},
  pid BIGINT,
  started BIGINT,
  PRIMARY KEY (namespace, datacenter_id, worker_id)
)`,
  ];
}

/** The tables as a migration, for those who do not let applications make them. */
function sql(dialect) {
  if (!Object.hasOwn(DIALECTS, dialect)) {
    const names = Object.keys(DIALECTS).join("', '");
    throw argumentError(`a dialect must be one of '${names}'; it is '${String(dialect)}'`);
  }
  return `${tables(DIALECTS[dialect]).join(';\n')};\n`;
}

/** The same statement with PostgreSQL's placeholders. */
function numbered(text) {
  let n = 0;
  return text.replaceAll('?', () => `$${++n}`);
}

/**
 * Runs one statement with `?` in place of its values by a client of `pg`; returns its rows.
 * @param signal if it is aborted, a connection of a pool does not return to it: it may be half-open
 */
async function queryPostgres(client, text, values, signal) {
  // A Client has its own end() only.
  const isPool = typeof client.totalCount === 'number';
  // Without values, pg sends several statements as one.
  const ask = async (by) => (await by.query(numbered(text), values)).rows;
  if (!isPool || signal === undefined) return ask(client);
  const connection = await client.connect();
  // Its query fails, too; without a listener the process would.
  const ignore = () => {};
  connection.on('error', ignore);
  const release = (isBroken) => {
    connection.release(isBroken);
    connection.off('error', ignore);
  };
  return unlessAborted(signal, () => ask(connection), {
    release: () => release(false),
    destroy: () => release(true),
  });
}

/** The same by a client of `mysql2`, which has its promises apart, or of `mysql2/promise`. */
async function queryMysql(client, text, values, signal) {
  const promised = typeof client.promise === 'function' ? client.promise() : client;
  const ask = async (by) => (await by.query(text, values))[0];
  if (typeof promised.getConnection !== 'function' || signal === undefined) return ask(promised);
  const connection = await promised.getConnection();
  return unlessAborted(signal, () => ask(connection), connection);
}

/** What a connection of a pool answers. When the call is given up, the connection is destroyed. */
async function unlessAborted(signal, ask, connection) {
  let isDestroyed = false;
  const destroy = () => {
    isDestroyed = true;
    connection.destroy();
  };
  if (signal.aborted) connection.release();
  signal.throwIfAborted();
  signal.addEventListener('abort', destroy);
  try {
    return await ask();
  } finally {
    signal.removeEventListener('abort', destroy);
    if (!isDestroyed) connection.release();
  }
}

function uncommitted(name) {
  return configError(
    `${name} does not commit what a lease records: its connection is inside a transaction, or has autocommit = 0. Give the store a pool or a connection of its own, with autocommit`,
  );
}

/**
 * A LeaseStore on a database.
 *
 * @param query runs one statement with `?` in place of its values, until `signal` is aborted; returns the
 *   rows of a SELECT, and of a change on MySQL the client's answer with its `serverStatus`
 * @param isInTransaction whether the connection is inside a transaction, where the client knows
 */
function sqlStore({ name, dialect, namespace, query, isInTransaction = () => false, close }) {
  const { now, greatest, insert, isMissing, isOtherTable, beforeCreating, ...is } =
    DIALECTS[dialect];
  const place = 'namespace = ? AND datacenter_id = ? AND worker_id = ?';
  const placeOf = ({ datacenterId, workerId }) => [namespace, datacenterId, workerId];
  /** In a statement that changes a slot: that the namespace is still the one that was opened. */
  const inNamespace = (more = '') =>
    `EXISTS (SELECT 1 FROM snowdrift_namespaces n WHERE n.namespace = ? AND n.id = ?${more})`;

  /** Runs one statement, unless the call was given up; again, if it gave way to another one. */
  async function run({ signal }, text, values) {
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        return await query(text, values, signal);
      } catch (failure) {
        if (tries === MOST_TRIES || !is.isConflict(failure)) throw failure;
      }
    }
  }

  /** Changes rows, by a client that commits each statement. */
  async function change(request, text, values) {
    if (isInTransaction()) throw uncommitted(name);
    const answer = await run(request, text, values);
    if (is.isCommitted && !is.isCommitted(answer)) throw uncommitted(name);
  }

  /** Reads rows as they are committed. Each has `uncommitted`. */
  async function read(request, text, values) {
    const rows = await run(request, text, values);
    const isOpen = rows.some((row) => Number(row.uncommitted) !== 0);
    if (isOpen || isInTransaction()) throw uncommitted(name);
    return rows;
  }

  /** The namespace's record; undefined if there is none. */
  async function readNamespace(request) {
    let rows;
    try {
      rows = await read(
        request,
        `SELECT id, layout, ttl, max_clock_skew, max_ahead, floor, ${is.isUncommitted} AS uncommitted
         FROM snowdrift_namespaces WHERE namespace = ?`,
        [namespace],
      );
    } catch (failure) {
      if (isMissing(failure)) return undefined;
      if (!isOtherTable(failure)) throw failure;
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_STORE',
        `${name} has tables of another version of snowdrift. End the processes that lease from them, wait for their ttl, and drop snowdrift_namespaces and snowdrift_slots: they are made anew`,
        { cause: failure },
      );
    }
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
        throw Object.assign(uncommitted(name), { cause });
      });
    }
    const create = tables(DIALECTS[dialect]);
    if (dialect === 'postgres') await run(request, [LOCK, ...create].join(';\n'));
    else for (const table of create) await run(request, table);
  }

  const insertNamespace = (request) =>
    change(
      request,
      insert(
        'snowdrift_namespaces (namespace, id, layout, ttl, max_clock_skew, max_ahead, floor) VALUES (?, ?, ?, ?, ?, ?, ?)',
      ),
      [
        ...[namespace, request.id, request.layout],
        ...[request.ttl, request.maxClockSkew, request.maxAhead, request.floor],
      ],
    );

  const free = (request) =>
    run(
      request,
      `SELECT worker_id, ceiling FROM snowdrift_slots
       WHERE namespace = ? AND datacenter_id = ? AND (owner IS NULL OR expires <= ${now})
       ORDER BY ceiling, worker_id LIMIT ${BATCH}`,
      [namespace, request.datacenterId],
    );

  /** Makes rows for more worker IDs, if there are more. */
  async function extend({ datacenterId, workerIds, ...request }) {
    const [{ next }] = await run(
      request,
      'SELECT COALESCE(MAX(worker_id) + 1, 0) AS next FROM snowdrift_slots WHERE namespace = ? AND datacenter_id = ?',
      [namespace, datacenterId],
    );
    const first = Number(next);
    const count = Math.min(BATCH, workerIds - first);
    if (count <= 0) return false;
    const rows = Array.from({ length: count }, () => '(?, ?, ?, -1, 0)').join(', ');
    await change(
      request,
      insert(
        `snowdrift_slots (namespace, datacenter_id, worker_id, ceiling, expires) VALUES ${rows}`,
      ),
      Array.from({ length: count }, (_, n) => [namespace, datacenterId, first + n]).flat(),
    );
    return true;
  }

  /** Takes a slot, if it is still free, and its ceiling and the namespace's floor are what was seen. */
  async function take({ worker_id, ceiling: seen }, floor, request) {
    const { owner, holder, ceiling, ttl } = request;
    const mine = { ...request, workerId: Number(worker_id) };
    await change(
      request,
      `UPDATE snowdrift_slots
       SET owner = ?, expires = ${now} + ?, ceiling = ${greatest}(ceiling, ?), host = ?, pid = ?, started = ?
       WHERE ${place} AND ceiling = ? AND (owner IS NULL OR expires <= ${now})
         AND ${inNamespace(' AND n.floor = ?')}`,
      [
        ...[owner, ttl, ceiling, holder.host.slice(0, 255), holder.pid, Number(holder.startedAt)],
        ...[...placeOf(mine), seen, namespace, request.namespace, floor],
      ],
    );
    const slot = await readSlot(mine);
    if (slot?.owner !== owner) return undefined;
    const { workerId } = mine;
    return {
      ...{ workerId, floor: Math.max(Number(seen), floor) },
      ...{ expires: slot.expires, now: slot.now },
    };
  }

  /** A slot as it is recorded; undefined if it is not, or the namespace has another ID. */
  async function readSlot(request) {
    const [found] = await read(
      request,
      `SELECT n.id, s.owner, s.ceiling, s.expires, ${now} AS now, ${is.isUncommitted} AS uncommitted
       FROM snowdrift_namespaces n JOIN snowdrift_slots s ON s.namespace = n.namespace
       WHERE s.namespace = ? AND s.datacenter_id = ? AND s.worker_id = ?`,
      placeOf(request),
    );
    if (found?.id !== request.namespace) return undefined;
    const { owner, ceiling, expires, now: time } = found;
    return {
      ...{ owner, ceiling: Number(ceiling) },
      ...{ expires: Number(expires), now: Number(time) },
    };
  }

  return {
    name,

    async now(request = {}) {
      const [{ ms }] = await run(request, `SELECT ${now} AS ms`);
      return Number(ms);
    },

    async open(request) {
      const found = await readNamespace(request);
      if (found) return found;
      try {
        await insertNamespace(request);
      } catch (failure) {
        if (!isMissing(failure)) throw failure;
        await createTables(request);
        await insertNamespace(request);
      }
      const created = await readNamespace(request);
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
        `UPDATE snowdrift_namespaces
         SET id = ?, floor = ${greatest}(floor, ?), ttl = ${greatest}(ttl, ?),
           max_clock_skew = ${greatest}(max_clock_skew, ?), max_ahead = ${greatest}(max_ahead, ?)
         WHERE namespace = ? AND id = ?`,
        [id, floor, ttl, maxClockSkew, maxAhead, namespace, before],
      );
      const found = await readNamespace(request);
      if (found?.id !== id) throw new Error('the namespace has another ID, or there is none');
      return found;
    },

    async acquire(request) {
      try {
        return await acquire(request);
      } catch (failure) {
        if (isMissing(failure)) return { isMissing: true };
        throw failure;
      }
    },

    async renew({ ceiling, confirmed, ttl, owner, ...request }) {
      try {
        await change(
          request,
          `UPDATE snowdrift_slots SET ceiling = ${greatest}(ceiling, ?), expires = ${now} + ?
           WHERE ${place} AND owner = ? AND ceiling >= ? AND ${inNamespace()}`,
          [ceiling, ttl, ...placeOf(request), owner, confirmed, namespace, request.namespace],
        );
        const slot = await readSlot(request);
        if (slot === undefined) return { isHeld: false, lost: 'missing' };
        // A later holder has started at `confirmed` or above.
        if (slot.ceiling < confirmed) return { isHeld: false, lost: 'reverted' };
        if (slot.owner !== owner) return { isHeld: false, lost: 'taken' };
        if (slot.ceiling < ceiling) throw uncommitted(name);
        return { isHeld: true, expires: slot.expires, now: slot.now };
      } catch (failure) {
        if (isMissing(failure)) return { isHeld: false, lost: 'missing' };
        throw failure;
      }
    },

    async release({ last, owner, ...request }) {
      await change(
        request,
        `UPDATE snowdrift_slots SET owner = NULL, ceiling = ?
         WHERE ${place} AND owner = ? AND ${inNamespace()}`,
        [last, ...placeOf(request), owner, namespace, request.namespace],
      );
    },

    async slots() {
      const found = await readNamespace({});
      if (found === undefined) return { slots: [] };
      const rows = await run(
        {},
        `SELECT datacenter_id, worker_id, host, pid, started, ceiling, expires,
           CASE WHEN owner IS NOT NULL AND expires > ${now} THEN 1 ELSE 0 END AS held
         FROM snowdrift_slots WHERE namespace = ? AND ceiling >= 0
         ORDER BY datacenter_id, worker_id`,
        [namespace],
      );
      const slots = rows.map((row) => ({
        datacenterId: Number(row.datacenter_id),
        workerId: Number(row.worker_id),
        host: row.host,
        pid: Number(row.pid),
        startedAt: new Date(Number(row.started)),
        ceiling: Number(row.ceiling),
        expires: Number(row.expires),
        isHeld: Number(row.held) === 1,
      }));
      return { namespace: found, slots };
    },

    close,
  };

  async function acquire(request) {
    let isComplete = false;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const found = await readNamespace(request);
      if (found?.id !== request.namespace) return { isMissing: true };
      // Of those that were never used any will do: others that come at the same time take others.
      const slots = await free(request);
      const lowest = slots.filter(({ ceiling }) => ceiling === slots[0].ceiling);
      const first = Math.floor(Math.random() * lowest.length);
      const order = [
        ...lowest.slice(first),
        ...lowest.slice(0, first),
        ...slots.slice(lowest.length),
      ];
      for (const slot of order) {
        const taken = await take(slot, found.floor, request);
        if (taken) return taken;
      }
      if (slots.length > 0) continue;
      // Once more after the last row was made: others may have made it since.
      if (isComplete) return { holders: await holders(request) };
      isComplete = !(await extend(request));
    }
    throw new Error(`other processes took each free slot first, ${MOST_ROUNDS} times`);
  }

  async function holders(request) {
    const rows = await run(
      request,
      `SELECT worker_id, host, pid, started FROM snowdrift_slots
       WHERE namespace = ? AND datacenter_id = ? AND owner IS NOT NULL AND expires > ${now}
       ORDER BY worker_id LIMIT 1024`,
      [namespace, request.datacenterId],
    );
    return rows.map(({ worker_id, host, pid, started }) => ({
      workerId: Number(worker_id),
      host,
      pid: Number(pid),
      startedAt: new Date(Number(started)),
    }));
  }
}

module.exports = {
  DIALECTS,
  LOCK,
  numbered,
  queryMysql,
  queryPostgres,
  sql,
  sqlStore,
  uncommitted,
};
