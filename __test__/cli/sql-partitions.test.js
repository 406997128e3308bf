'use strict';
// `snowdrift sql --partitions`: the monthly partitions, made on PostgreSQL and MariaDB, have the IDs of their months.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { idRange } = require('../../js/id.js');
const { json, run } = require('../support/cli.js');
const { LARGEST_ID } = require('../support/layouts.js');
const { missing } = require('../support/lease/servers.js');
const { DATABASES, LAYOUTS, endsOf, flagsOf } = require('../support/sql-databases.js');

/** Of each database: a table to partition, and the months of its rows, by ID. */
const PARTITIONED = {
  postgres: {
    create: ({ query }) =>
      query('CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id)'),
    async months({ query }) {
      const rows = await query('SELECT id, tableoid::regclass::text AS part FROM events');
      return rows.map(({ id, part }) => [id, part.slice(-7).replace('_', '-')]);
    },
    unknown: /no partition of relation "events" found for row/,
  },
  mysql: {
    create: ({ query }) =>
      query(
        `CREATE TABLE events (id bigint PRIMARY KEY)
        PARTITION BY RANGE (id) (PARTITION empty VALUES LESS THAN (0))`,
      ),
    async months({ query }) {
      const parts = await query(
        `SELECT PARTITION_NAME AS part FROM information_schema.PARTITIONS
        WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'events'`,
      );
      const found = [];
      for (const { part } of parts) {
        const rows = await query(`SELECT CAST(id AS CHAR) AS id FROM events PARTITION (${part})`);
        found.push(...rows.map(({ id }) => [id, part.slice(1).replace('_', '-')]));
      }
      return found;
    },
    unknown: /Table has no partition for value/,
  },
};

/** The first and the last ID of each month, with the month. Those of the layout's first and last month, too. */
function edgesOf(months, layout) {
  const { last, lastId } = endsOf(layout);
  return months.flatMap((month) => {
    const from = Date.parse(`${month}-01`);
    const until = new Date(from).setUTCMonth(new Date(from).getUTCMonth() + 1);
    const range = idRange(Math.max(from, layout.epoch), Math.min(until, last), layout);
    if (until > last) range.last = lastId;
    return [
      [String(range.first), month],
      [String(range.last), month],
    ];
  });
}

for (const [name, { create, months, unknown }] of Object.entries(PARTITIONED)) {
  test(`on ${name}, each month's IDs are in its partition`, { skip: missing(name) }, async () => {
    const database = await DATABASES[name]();
    const insert = (id) => database.query(`INSERT INTO events VALUES (${id})`);
    try {
      for (const [title, from, count] of [
        ['node', '2026-11', 3],
        ['node', '2020-01', 2],
        ['node', '2089-09', 2],
        ['uid', '2024-10', 2],
        ['discord', '2027-12', 2],
        ['days from 16:00', '2026-01', 3],
        ['before 1970', '1969-12', 2],
        ['beyond all dates', '9999-11', 2],
      ]) {
        const layout = LAYOUTS[title];
        const args = ['--partitions', 'events', '--from', from, '--months', String(count)];
        const added = await json('sql', '--for', name, ...flagsOf(layout), ...args);
        assert.deepEqual([added.length, added[0].month], [count, from]);
        await database.use([]);
        await create(database);
        await assert.rejects(insert(0), unknown);
        for (const { sql } of added) await database.query(sql);
        const edges = edgesOf(
          added.map(({ month }) => month),
          layout,
        );
        for (const [id] of edges) await insert(id);
        assert.deepEqual((await months(database)).sort(), edges.sort(), title);
        // MySQL's ranges have no start.
        if (added[0].first !== '0') {
          if (name === 'mysql') await insert(0);
          else await assert.rejects(insert(0), unknown);
        }
        const end = edges.map(([id]) => BigInt(id)).reduce((a, b) => (a > b ? a : b)) + 1n;
        if (added.at(-1).end !== null) await assert.rejects(insert(end), unknown);
        else if (end <= LARGEST_ID) await insert(end);
      }
    } finally {
      await database.stop();
    }
  });
}

test('partitions are of this month and the next eleven, if no other is named', async () => {
  const monthNow = () => new Date().toISOString().slice(0, 7).replace('-', '_');
  const before = monthNow();
  const { stdout } = await run(['sql', '--for', 'postgres', '--partitions', 'app.Events']);
  const lines = stdout.trim().split('\n');
  const month = `(?:${before}|${monthNow()})`;
  assert.equal(lines.length, 12);
  const table = `CREATE TABLE "app"."Events_${month}" PARTITION OF "app"."Events" FOR VALUES FROM \\(`;
  assert.match(lines[0], new RegExp(`^${table}\\d+\\) TO \\(\\d+\\);$`));
});
