'use strict';
// Databases that run what `snowdrift sql` prints, and layouts to try. Each call returns a text, null for NULL, or
// `undefined` if the database refuses the value.

const { Client } = require('pg');
const mysql = require('mysql2/promise');
const openSqlJs = require('sql.js');

const { ceilingId, layouts } = require('../../js/id.js');
const { Server } = require('./lease/servers.js');

/** The SQLSTATE of what the functions refuse. */
const REFUSED = '22023';

/** @param row runs a SELECT of one value */
function calls(row) {
  const value = (sql) =>
    row(sql).catch((error) => {
      if ((error.code === 'ER_SIGNAL_EXCEPTION' ? error.sqlState : error.code) === REFUSED) return;
      throw error;
    });
  return value;
}

const literal = (text) => (text === null ? 'NULL' : `'${text.replaceAll("'", "''")}'`);

async function postgres() {
  const server = await Server.start('postgres');
  const client = new Client({ connectionString: server.url });
  await client.connect();
  // A clock of its own place changes no result.
  await client.query("SET TIME ZONE 'America/New_York'");
  const value = calls(async (sql) => {
    const { rows } = await client.query({ text: `SELECT (${sql})::text`, rowMode: 'array' });
    return rows[0][0];
  });
  const format = `'YYYY-MM-DD"T"HH24:MI:SS.US'`;
  return {
    query: async (sql) => (await client.query(sql)).rows,
    async use(statements) {
      await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
      await client.query(Object.values(statements).join(';\n'));
    },
    time: (id) => value(`to_char(snowflake_time(${id}) AT TIME ZONE 'UTC', ${format})`),
    floorId: (time) => value(`snowflake_floor_id(${literal(time && `${time}Z`)})`),
    toBase32: (id) => value(`snowflake_to_base32(${id})`),
    fromBase32: (text) => value(`snowflake_from_base32(${literal(text)})`),
    async stop() {
      await client.end();
      await server.stop();
    },
  };
}

async function mariadb() {
  const server = await Server.start('mysql');
  const client = await mysql.createConnection({
    uri: server.url,
    dateStrings: true,
    connectTimeout: 0,
  });
  await client.query("SET time_zone = '-05:00'");
  const value = calls(async (sql) => {
    const [rows] = await client.query({ sql: `SELECT CAST(${sql} AS CHAR)`, rowsAsArray: true });
    return rows[0][0];
  });
  return {
    port: server.port,
    query: async (sql) => (await client.query(sql))[0],
    async use(statements) {
      await client.query('CREATE OR REPLACE DATABASE app CHARACTER SET utf8mb4');
      await client.query('USE app');
      for (const sql of Object.values(statements)) await client.query(sql);
    },
    async time(id) {
      const text = await value(`snowflake_time(${id})`);
      return text && `${text.replace(' ', 'T')}000`;
    },
    floorId: (time) => value(`snowflake_floor_id(${literal(time)})`),
    toBase32: (id) => value(`snowflake_to_base32(${id})`),
    fromBase32: (text) => value(`snowflake_from_base32(${literal(text)})`),
    async stop() {
      await client.end();
      await server.stop();
    },
  };
}

async function sqlite() {
  const { Database } = await openSqlJs();
  const database = new Database();
  let expressions;
  const query = async (sql, values) => database.exec(sql, values)[0]?.values;
  // As text, since a number does not hold an ID.
  const value = async (sql, values) =>
    (await query(`SELECT CAST((${sql}) AS TEXT)`, values))[0][0] ?? undefined;
  return {
    query,
    async use(texts) {
      expressions = texts;
    },
    async time(id) {
      const text = await value(`SELECT ${expressions.time} FROM (SELECT ${id} AS id)`);
      return text?.replace('Z', '000');
    },
    floorId: (time) => value(expressions.floor_id, { ':moment': time }),
    toBase32: (id) => value(`SELECT ${expressions.to_base32} FROM (SELECT ${id} AS id)`),
    fromBase32: (text) => value(expressions.from_base32, { ':base32': text }),
    stop: async () => database.close(),
  };
}

const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const layoutOf = (timestampBits, sequenceBits, tickMs, epoch) => ({
  ...{ timestampBits, datacenterBits: 0, workerBits: 1, clockBackBits: 0, sequenceBits },
  ...{ tickMs, epoch: typeof epoch === 'string' ? Date.parse(epoch) : epoch },
});
const LAYOUTS = {
  ...layouts,
  'before 1970': layoutOf(43, 9, 1, '1890-12-31T23:59:59.999Z'),
  'the year 1': layoutOf(48, 14, 1, '0001-01-01'),
  '10 ms': layoutOf(39, 12, 10, '2026-01-01T00:00:00.007Z'),
  '37 ms, few bits': layoutOf(20, 1, 37, '1969-12-31T23:59:59.990Z'),
  'days from 16:00': layoutOf(21, 41, 86_400_000, layouts.node.epoch),
  'beyond all dates': layoutOf(61, 1, 86_400_000, '2020-02-02T02:02:02.002Z'),
};

/** What names a layout on the command line. */
const flagsOf = (layout) => ['--layout', JSON.stringify(layout)];

/** Of a layout: its last time and its last ID, within the years up to 9999. */
function endsOf(layout) {
  const { epoch, tickMs, timestampBits } = layout;
  const last = Math.min(epoch + 2 ** timestampBits * tickMs - 1, LAST_MS);
  return { last, lastId: ceilingId(last, layout) };
}

const DATABASES = { postgres, mysql: mariadb, sqlite };

module.exports = { DATABASES, LAST_MS, LAYOUTS, endsOf, flagsOf };
