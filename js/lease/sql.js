'use strict';
// Slots in a table of a SQL database: the statements, whatever the database and its client. Every
// change is one statement that checks what it rests on, so no transaction is needed and none of a
// caller's is disturbed; a look afterwards tells whether it took place.

const { argumentError } = require('../errors.js');
const { layoutConflict } = require('./conflict.js');

/** How many free slots are looked at, and how many rows are made, at a time. */
const BATCH = 64;

/** Two that create a table at once would fail on PostgreSQL, in spite of IF NOT EXISTS. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtext('snowdrift'))";

const DIALECTS = {
  postgres: {
    now: 'CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)',
    greatest: 'GREATEST',
    text: (length) => `VARCHAR(${length})`,
    insert: (into) => `INSERT INTO ${into} ON CONFLICT DO NOTHING`,
    isMissing: ({ code }) => code === '42P01',
  },
  mysql: {
    now: 'CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)',
    greatest: 'GREATEST',
    // Compared byte by byte, whatever the database's own collation.
    text: (length) => `VARCHAR(${length}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    insert: (into) => `INSERT IGNORE INTO ${into}`,
    isMissing: ({ code, errno }) => code === 'ER_NO_SUCH_TABLE' || errno === 1146,
  },
  sqlite: {
    now: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    greatest: 'MAX',
    text: () => 'TEXT',
    insert: (into) => `INSERT OR IGNORE INTO ${into}`,
    isMissing: ({ message }) => /no such table/.test(message),
  },
};

function tables({ text }) {
  return [
    `CREATE TABLE IF NOT EXISTS snowdrift_namespaces (
  namespace ${text(64)} NOT NULL PRIMARY KEY,
  layout ${text(191)} NOT NULL
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

/** Runs one statement with `?` in place of its values by a client of `pg`; answers its rows. */
async function queryPostgres(client, text, values) {
  // Without values, pg sends several statements as one.
  return (await client.query(numbered(text), values)).rows;
}

/** The same by a client of `mysql2`, which has its promises apart, or of `mysql2/promise`. */
async function queryMysql(client, text, values) {
  const promised = typeof client.promise === 'function' ? client.promise() : client;
  return (await promised.query(text, values))[0];
}

/**
 * A LeaseStore on a database.
 *
 * @param query runs one statement with `?` in place of its values; answers the rows of a SELECT
 */
function sqlStore({ name, dialect, namespace, query, close }) {
  const { now, greatest, insert, isMissing } = DIALECTS[dialect];
  const place = 'namespace = ? AND datacenter_id = ? AND worker_id = ?';
  const placeOf = ({ datacenterId, workerId }) => [namespace, datacenterId, workerId];
  /** By layout: whether the tables are there, and the namespace is for it. */
  const ready = new Map();

  function beReady(layout) {
    if (!ready.has(layout)) {
      const preparing = prepare(layout);
      ready.set(layout, preparing);
      preparing.catch(() => ready.delete(layout));
    }
    return ready.get(layout);
  }

  async function prepare(layout) {
    const look = () =>
      query('SELECT layout FROM snowdrift_namespaces WHERE namespace = ?', [namespace]);
    let found;
    try {
      found = await look();
    } catch (failure) {
      if (!isMissing(failure)) throw failure;
      const create = tables(DIALECTS[dialect]);
      if (dialect === 'postgres') await query([LOCK, ...create].join(';\n'));
      else for (const table of create) await query(table);
      found = [];
    }
    if (found.length === 0) {
      await query(insert('snowdrift_namespaces (namespace, layout) VALUES (?, ?)'), [
        namespace,
        layout,
      ]);
      found = await look();
    }
    if (found[0].layout !== layout) throw layoutConflict(name, found[0].layout, layout);
  }

  const free = ({ datacenterId }) =>
    query(
      `SELECT worker_id, ceiling FROM snowdrift_slots
       WHERE namespace = ? AND datacenter_id = ? AND (owner IS NULL OR expires <= ${now})
       ORDER BY ceiling, worker_id LIMIT ${BATCH}`,
      [namespace, datacenterId],
    );

  /** Makes rows for more worker IDs, if there are more. */
  async function extend({ datacenterId, workerIds }) {
    const [{ next }] = await query(
      'SELECT COALESCE(MAX(worker_id) + 1, 0) AS next FROM snowdrift_slots WHERE namespace = ? AND datacenter_id = ?',
      [namespace, datacenterId],
    );
    const first = Number(next);
    const count = Math.min(BATCH, workerIds - first);
    if (count <= 0) return false;
    const rows = Array.from({ length: count }, () => '(?, ?, ?, -1, 0)').join(', ');
    await query(
      insert(
        `snowdrift_slots (namespace, datacenter_id, worker_id, ceiling, expires) VALUES ${rows}`,
      ),
      Array.from({ length: count }, (_, n) => [namespace, datacenterId, first + n]).flat(),
    );
    return true;
  }

  /** Takes a slot whose ceiling is still what was seen, if it is still free. */
  async function take({ worker_id: workerId, ceiling: seen }, request) {
    const { owner, holder, ceiling, ttl } = request;
    await query(
      `UPDATE snowdrift_slots
       SET owner = ?, expires = ${now} + ?, ceiling = ${greatest}(ceiling, ?), host = ?, pid = ?, started = ?
       WHERE ${place} AND ceiling = ? AND (owner IS NULL OR expires <= ${now})`,
      [
        ...[owner, ttl, ceiling, holder.host.slice(0, 255), holder.pid, Number(holder.startedAt)],
        ...placeOf({ ...request, workerId }),
        seen,
      ],
    );
    const expires = await expiryOf({ ...request, workerId });
    return expires && { workerId: Number(workerId), floor: Number(seen), expires };
  }

  /** When the caller's hold on its slot expires; undefined if the slot is not its own. */
  async function expiryOf({ owner, ...request }) {
    const rows = await query(`SELECT expires FROM snowdrift_slots WHERE ${place} AND owner = ?`, [
      ...placeOf(request),
      owner,
    ]);
    return rows.length === 1 ? Number(rows[0].expires) : undefined;
  }

  return {
    name,

    async now() {
      const [{ ms }] = await query(`SELECT ${now} AS ms`);
      return Number(ms);
    },

    async acquire(request) {
      await beReady(request.layout);
      let isComplete = false;
      for (;;) {
        // Of those that were never used any will do: whoever comes at the same time takes others.
        const slots = await free(request);
        const lowest = slots.filter(({ ceiling }) => ceiling === slots[0].ceiling);
        const first = Math.floor(Math.random() * lowest.length);
        const order = [
          ...lowest.slice(first),
          ...lowest.slice(0, first),
          ...slots.slice(lowest.length),
        ];
        for (const slot of order) {
          const taken = await take(slot, request);
          if (taken) return taken;
        }
        if (slots.length > 0) continue;
        // Once more after the last row was made: others may have made it since.
        if (isComplete) return { holders: await holders(request) };
        isComplete = !(await extend(request));
      }
    },

    async renew({ ceiling, ttl, owner, ...request }) {
      await query(
        `UPDATE snowdrift_slots SET ceiling = ${greatest}(ceiling, ?), expires = ${now} + ?
         WHERE ${place} AND owner = ?`,
        [ceiling, ttl, ...placeOf(request), owner],
      );
      const expires = await expiryOf({ ...request, owner });
      return { isHeld: expires !== undefined, expires };
    },

    async release({ last, owner, ...request }) {
      await query(
        `UPDATE snowdrift_slots SET owner = NULL, ceiling = ? WHERE ${place} AND owner = ?`,
        [last, ...placeOf(request), owner],
      );
    },

    async slots() {
      let found;
      try {
        found = await query('SELECT layout FROM snowdrift_namespaces WHERE namespace = ?', [
          namespace,
        ]);
      } catch (failure) {
        if (!isMissing(failure)) throw failure;
        found = [];
      }
      if (found.length === 0) return { slots: [] };
      const rows = await query(
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
      return { layout: found[0].layout, slots };
    },

    close,
  };

  async function holders({ datacenterId }) {
    const rows = await query(
      `SELECT worker_id, host, pid, started FROM snowdrift_slots
       WHERE namespace = ? AND datacenter_id = ? AND owner IS NOT NULL AND expires > ${now}
       ORDER BY worker_id LIMIT 1024`,
      [namespace, datacenterId],
    );
    return rows.map(({ worker_id, host, pid, started }) => ({
      workerId: Number(worker_id),
      host,
      pid: Number(pid),
      startedAt: new Date(Number(started)),
    }));
  }
}

module.exports = { DIALECTS, LOCK, numbered, queryMysql, queryPostgres, sql, sqlStore };
