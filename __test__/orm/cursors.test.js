'use strict';
// What docs/cursors.md says of readers that follow IDs, on PostgreSQL: `id > cursor` misses rows that commit late, a
// lag does not while it is long enough, and snapshots miss none.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');

const { Client } = require('pg');

const { floorId } = require('../../js/id.js');
const { amount, isStorms, seed } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake, seeded, standing } = require('../support/support.js');

const LAG_MS = 10_000;
const WRITERS = 4;
const STEPS = 150;

/** Each reads on from its cursor, and returns the IDs. */
const READERS = {
  plain: () => {
    let cursor = '0';
    return async (client) => {
      const { rows } = await client.query('SELECT id FROM events WHERE id > $1 ORDER BY id', [
        cursor,
      ]);
      cursor = rows.at(-1)?.id ?? cursor;
      return rows;
    };
  },
  lag: () => {
    let cursor = '0';
    return async (client, now) => {
      const query = 'SELECT id FROM events WHERE id > $1 AND id < $2 ORDER BY id LIMIT 3';
      const { rows } = await client.query(query, [cursor, floorId(now - LAG_MS)]);
      cursor = rows.at(-1)?.id ?? cursor;
      return rows;
    };
  },
  snapshot: () => {
    let cursor = { xid: '0', id: '0' };
    return async (client) => {
      const { rows } = await client.query(
        `SELECT xid, id FROM events
        WHERE (xid, id) > ($1::xid8, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY xid, id LIMIT 3`,
        [cursor.xid, cursor.id],
      );
      cursor = rows.at(-1) ?? cursor;
      return rows;
    };
  },
};

describe('readers by ID', { skip: missing('postgres') }, () => {
  let server;
  let reader;
  let writers;

  const connect = async () => {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    return client;
  };
  before(async () => {
    // A transaction of autovacuum's own would hold the snapshots back for a moment.
    server = await Server.start('postgres', { args: ['-c', 'autovacuum=off'] });
    reader = await connect();
    writers = await Promise.all(Array.from({ length: WRITERS }, connect));
  });
  after(async () => {
    await Promise.all([reader, ...writers].map((client) => client?.end()));
    await server?.stop();
  });

  /** An empty table, and a clock that the test steps. */
  async function begin() {
    await reader.query(`DROP TABLE IF EXISTS events;
      CREATE TABLE events (id bigint PRIMARY KEY, xid xid8 NOT NULL DEFAULT pg_current_xact_id());
      CREATE INDEX ON events (xid, id)`);
    const clock = standing(Date.UTC(2026, 10, 22));
    return { clock, flake: new SnowFlake({ datacenterId: 1, workerId: 1, clock }) };
  }

  async function insert(client, flake) {
    const id = flake.nextIdString();
    await client.query('INSERT INTO events (id) VALUES ($1)', [id]);
    return id;
  }

  /** All that a reader finds from here on. */
  async function readAll(read, now) {
    const found = [];
    for (let rows = await read(reader, now); rows.length > 0; rows = await read(reader, now)) {
      found.push(...rows.map(({ id }) => id));
    }
    return found;
  }

  test('two transactions: the late one is behind the cursor', async () => {
    const { clock, flake } = await begin();
    const [slow, fast] = writers;
    const reads = Object.entries(READERS).map(([name, open]) => [name, open()]);
    const found = { plain: [], lag: [], snapshot: [] };
    const readHere = async () => {
      for (const [name, read] of reads) found[name].push(await readAll(read, clock.now));
    };
    await slow.query('BEGIN');
    const late = await insert(slow, flake);
    const early = await insert(fast, flake);
    assert.ok(BigInt(late) < BigInt(early));
    clock.now += LAG_MS;
    await readHere();
    await slow.query('COMMIT');
    await readHere();
    clock.now++;
    await readHere();
    assert.deepEqual(found, {
      plain: [[early], [], []],
      lag: [[], [], [late, early]],
      snapshot: [[], [late, early], []],
    });
  });

  test('a transaction that takes longer than the lag is missed by the lag, not by snapshots', async () => {
    const { clock, flake } = await begin();
    const [slow, fast] = writers;
    const [lag, snapshot] = [READERS.lag(), READERS.snapshot()];
    await slow.query('BEGIN');
    const late = await insert(slow, flake);
    const early = await insert(fast, flake);
    clock.now += LAG_MS + 1;
    assert.deepEqual(await readAll(lag, clock.now), [early]);
    await slow.query('COMMIT');
    clock.now += LAG_MS;
    assert.deepEqual(await readAll(lag, clock.now), []);
    assert.deepEqual(await readAll(snapshot, clock.now), [late, early]);
  });

  test('any order of draws, commits and rollbacks: lag and snapshots see each row once', async () => {
    const first = seed ?? (isStorms ? Date.now() % 1_000_000 : 1);
    let missed = 0;
    for (let run = 0; run < amount(2, 20); run++) {
      missed += await storm(first + run);
    }
    assert.ok(
      missed > 0,
      `seed ${first}: the plain reader must miss rows, else this tests nothing`,
    );
  });

  /** Runs writers at random; returns how many rows the plain reader missed. */
  async function storm(seedHere) {
    const random = seeded(seedHere);
    const pick = (n) => Math.floor(random() * n);
    const { clock, flake } = await begin();
    const open = new Map();
    const committed = new Set();
    const reads = Object.entries(READERS).map(([name, open]) => [name, open(), []]);
    const readHere = async () => {
      for (const [, read, found] of reads) found.push(...(await readAll(read, clock.now)));
    };
    const end = async (writer, isCommit) => {
      const { ids } = open.get(writer);
      open.delete(writer);
      await writers[writer].query(isCommit ? 'COMMIT' : 'ROLLBACK');
      if (isCommit) for (const id of ids) committed.add(id);
    };
    for (let step = 0; step < STEPS; step++) {
      clock.now += pick(LAG_MS / 10);
      for (const [writer, { began }] of open) {
        // The longest transaction ends just within the lag.
        if (clock.now + LAG_MS / 10 > began + LAG_MS) await end(writer, true);
      }
      const writer = pick(WRITERS);
      if (!open.has(writer)) {
        await writers[writer].query('BEGIN');
        open.set(writer, { began: clock.now, ids: [] });
      }
      if (pick(2) === 0) await writers[writer].query('SAVEPOINT here');
      open.get(writer).ids.push(await insert(writers[writer], flake));
      if (pick(3) === 0) await end(writer, pick(4) > 0);
      if (pick(2) === 0) await readHere();
    }
    for (const writer of [...open.keys()]) await end(writer, true);
    clock.now += LAG_MS + 1;
    await readHere();
    const [plain, ...safe] = reads;
    for (const [name, , found] of safe) {
      assert.equal(new Set(found).size, found.length, `seed ${seedHere}: ${name} saw a row twice`);
      assert.deepEqual(new Set(found), committed, `seed ${seedHere}: ${name}`);
    }
    return committed.size - plain[2].length;
  }
});
