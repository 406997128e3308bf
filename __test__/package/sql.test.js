'use strict';
// The blocks of docs/sql.md and the files of examples/sql, as they stand there, on PostgreSQL, MariaDB and SQLite; and their
// functions, for each layout of the page's table, against `snowdrift/id`.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const fc = require('fast-check');
const mysql = require('mysql2/promise');
const { Client } = require('pg');
const openSqlJs = require('sql.js');

const { ceilingId, floorId, layouts, parse } = require('../../js/id.js');
const { widthOf } = require('../../js/ids/presets.js');
const { amount } = require('../support/amount.js');
const { LARGEST_ID } = require('../support/layouts.js');
const { Server, missing } = require('../support/lease/servers.js');
const { blocksOf } = require('../support/page.js');

const PAGE = 'docs/sql.md';
const SAMPLES = amount(15, 200);
const codes = blocksOf(PAGE).map(({ code }) => code);
const [postgres, postgresUse, mariadb, mariadbUse, sqlite] = codes;
const [postgresMonths, mariadbMonths] = ['postgresql', 'mariadb'].map((name) =>
  readFileSync(join(__dirname, `../../examples/sql/partitions-${name}.sql`), 'utf8'),
);
const [from, to] = ['2027-12', '2028-01'].map((month) => floorId(new Date(month)));

/** Of each: the blocks in order, with what else must work; what opens it; and SELECTs of an ID's time and of a bound. */
const DATABASES = {
  postgres: {
    blocks: `${postgres + postgresUse}CREATE INDEX ON users (snowflake_time(id));
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT name FROM users WHERE id >= snowflake_floor_id(now()); -- Index Scan using users_pkey on users
SET TIME ZONE 'America/New_York';
${postgresMonths}SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'events_2027_12'; -- FOR VALUES FROM ('${from}') TO ('${to}')
`,
    async open({ url: connectionString }) {
      const client = new Client({ connectionString, types: { getTypeParser: () => String } });
      await client.connect();
      await client.query("SET TIME ZONE 'UTC'");
      const run = async (text) => (await client.query({ text, rowMode: 'array' })).rows[0]?.[0];
      return { run, close: () => client.end() };
    },
    time: (id) => `to_char(snowflake_time(${id}) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')`,
    floor: (time) => `snowflake_floor_id('${time}Z')`,
  },
  mysql: {
    blocks: `${mariadb + mariadbUse + mariadbMonths}SELECT PARTITION_DESCRIPTION FROM information_schema.PARTITIONS WHERE PARTITION_NAME = 'p2027_12'; -- ${to}
`,
    async open({ url: uri }) {
      const numbers = { supportBigNumbers: true, bigNumberStrings: true, dateStrings: true };
      const client = await mysql.createConnection({ uri, ...numbers, connectTimeout: 0 });
      const run = async (sql) => (await client.query({ sql, rowsAsArray: true }))[0]?.[0]?.[0];
      return { run, close: () => client.end() };
    },
    time: (id) => `snowflake_time(${id})`,
    floor: (time) => `snowflake_floor_id('${time}')`,
  },
  sqlite: {
    blocks: sqlite,
    async open() {
      const database = new (await openSqlJs()).Database();
      const run = async (sql) => database.exec(sql, [], { useBigInt: true })[0]?.values[0][0];
      return { run, close: () => database.close() };
    },
    time: (id) => `${/CASE .* END/.exec(sqlite)} FROM (SELECT ${id} AS id)`,
    floor: (time) => />=\n(.+);/.exec(sqlite)[1].replace('2026-11-21', time),
  },
};

/** Runs statements. Behind one may be its first value, `-- Ada`. */
async function runAll(run, code) {
  for (const [, text, printed] of code.matchAll(/((?:\$\$.*?\$\$|[^;])+);(?: -- (.*?))?\n/gs)) {
    const value = await run(text);
    if (printed !== undefined) assert.equal(String(value), printed, text);
  }
}

/** Of the page's table: a layout's name, shift, tick and epoch. */
const rows = Array.from(
  readFileSync(join(__dirname, '../..', PAGE), 'utf8').matchAll(
    /^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|$/gm,
  ),
  ([, ...row]) => row,
);
const PLACES = /(?<=<< |>> )22\b|(?<=(?:[*/]|DIV) )1\b|1580486400000/g;

test('the table has each layout, and each database its shift, tick and epoch twice', () => {
  const expected = Object.entries(layouts).map(([name, layout]) => {
    const { timestampBits, tickMs, epoch } = layout;
    return [name, widthOf(layout) - timestampBits, tickMs, epoch].map(String);
  });
  assert.deepEqual(rows.sort(), expected.sort());
  const values = ['1', '1', '1580486400000', '1580486400000', '22', '22'];
  for (const code of [postgres, mariadb, sqlite])
    assert.deepEqual(code.match(PLACES).sort(), values);
  assert.equal(codes.length, 5);
});

/** An answer, or the SQLSTATE of what the database refuses. */
const answered = (answer) => answer.catch(({ code, sqlState = code }) => sqlState);

/** Compares the functions for a layout with `snowdrift/id`: edges, samples, and what is no ID or has none. */
async function compare(name, preset, ask) {
  const { time, floor } = DATABASES[name];
  const layout = layouts[preset];
  const first = layout.epoch;
  const second = first + layout.tickMs;
  const last = first + 2 ** layout.timestampBits * layout.tickMs - 1;
  const lastId = ceilingId(last, layout);
  const textOf = (ms) => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
  const ids = fc.sample(fc.bigInt({ min: 0n, max: lastId }), SAMPLES);
  for (const id of [0n, floorId(second, layout) - 1n, floorId(second, layout), lastId, ...ids]) {
    const found = (await ask(time(id))).replace('T', ' ').replace('Z', '');
    assert.equal(found, textOf(parse(id, layout).timestamp), `${preset}, ${id}`);
  }
  const times = fc.sample(fc.integer({ min: first, max: last }), SAMPLES);
  for (const ms of [first, second - 1, second, last, ...times]) {
    const found = await ask(floor(textOf(ms)));
    assert.equal(found, String(floorId(ms, layout)), `${preset}, ${ms}`);
  }
  // What the page says of others.
  assert.deepEqual([await ask(time(-1)), await ask(time('NULL'))], ['null', 'null']);
  assert.ok(Number(await ask(floor(textOf(first - 1)))) <= 0);
  const after = answered(ask(`${floor(textOf(last + 1))} > ${lastId}`));
  const isTooLarge = lastId === LARGEST_ID && name !== 'sqlite';
  assert.ok((await after).match(isTooLarge ? /^22003$/ : /^(1|t)$/), preset);
}

for (const [name, { blocks, open }] of Object.entries(DATABASES)) {
  const skip = name === 'sqlite' ? undefined : missing(name);
  test(`${name} runs its blocks, whose functions agree with snowdrift/id`, { skip }, async () => {
    const server = name === 'sqlite' ? undefined : await Server.start(name);
    const { run, close } = await open(server);
    try {
      await runAll(run, blocks);
      for (const [preset, shift, tick, epoch] of rows) {
        const inLayout = (code) =>
          code.replace(PLACES, (value) => ({ 22: shift, 1: tick })[value] ?? epoch);
        const functions = { postgres, mysql: mariadb }[name] ?? '';
        await runAll(run, inLayout(functions).replaceAll('CREATE', 'CREATE OR REPLACE'));
        const ask = async (sql) => String(await run(inLayout(`SELECT ${sql}`)));
        await compare(name, preset, ask);
      }
    } finally {
      await close();
      await server?.stop();
    }
  });
}
