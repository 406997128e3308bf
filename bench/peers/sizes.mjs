// The part `sizes`: bits and characters of each kind, and what it takes as a primary key in a database: bytes a row of its
// index and of the table with its index, and the time of an insert. Batches of all kinds take turns in a random order,
// each in a table of its own.

import mysql from 'mysql2/promise';
import pg from 'pg';
import { median, shuffled } from '../measure.mjs';
import kinds from './kinds.cjs';

const { KINDS, namesHere, numberOf, open, stored, textOf, versionOf } = kinds;
const BATCH = 1000;

const binary = (uuid) => Buffer.from(uuid.replaceAll('-', ''), 'hex');

const DATABASES = {
  postgres: {
    types: {
      bigint: 'bigint PRIMARY KEY',
      identity: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
      text: 'text COLLATE "C" PRIMARY KEY',
      uuid: 'uuid PRIMARY KEY',
    },
    async connect(url) {
      const client = new pg.Client(url);
      await client.connect();
      return client;
    },
    insert(client, table, column, ids) {
      const [names, values, given] =
        column === 'identity'
          ? ['payload', 'SELECT generate_series(1, $1::int)', ids.length]
          : ['id, payload', `SELECT unnest($1::${column}[]), 1`, ids.map(String)];
      return client.query(`INSERT INTO ${table} (${names}) ${values}`, [given]);
    },
    async sizes(client, table) {
      await client.query(`VACUUM ANALYZE ${table}`);
      const { rows } = await client.query(
        'SELECT pg_relation_size($1)::int AS index, pg_total_relation_size($2)::int AS whole',
        [`${table}_pkey`, table],
      );
      return rows[0];
    },
  },
  /** The table is the index of its primary key, and each other index holds that key, too. */
  mysql: {
    types: {
      bigint: 'BIGINT PRIMARY KEY',
      identity: 'BIGINT AUTO_INCREMENT PRIMARY KEY',
      text: 'CHAR(26) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY',
      uuid: 'BINARY(16) PRIMARY KEY',
    },
    other: ', INDEX other (payload)',
    connect: (url) => mysql.createConnection(url),
    insert(client, table, column, ids) {
      const value = { identity: () => null, uuid: binary }[column] ?? String;
      const rows = ids.map((id, i) => [value(id), i]);
      return client.query(`INSERT INTO ${table} (id, payload) VALUES ?`, [rows]);
    },
    async sizes(client, table) {
      await client.query(`ANALYZE TABLE ${table}`);
      const [[{ data_length: data, index_length: index }]] = await client.query(
        'SELECT data_length, index_length FROM information_schema.tables WHERE table_name = ?',
        [table],
      );
      return { index, whole: data + index };
    },
  },
};

/** The server's name and version. */
async function versionOn(database, client) {
  const [answer] = await client
    .query('SELECT version() AS version')
    .then(({ rows, 0: own }) => rows ?? own);
  const number = /\d+(\.\d+)+/.exec(answer.version)[0];
  return `${database === 'postgres' ? 'PostgreSQL' : 'MariaDB'} ${number}`;
}

/** By kind: bytes a row of `index` and of `whole`, and `insertUs` a row. */
async function sizesIn(database, url, names, rows) {
  const { connect, insert, other = '', sizes: sizesOf, types } = DATABASES[database];
  const client = await connect(url);
  const tables = [];
  for (const [i, kind] of names.entries()) {
    const { column, isAsync } = KINDS[kind];
    const draw = isAsync ? () => 0 : await open(kind);
    const table = `kind_${i}`;
    tables.push({ kind, column, draw, table, times: [] });
    await client.query(`CREATE TABLE ${table} (id ${types[column]}, payload int NOT NULL${other})`);
  }
  for (let done = 0; done < rows; done += BATCH) {
    for (const { kind, column, draw, table, times } of shuffled(tables)) {
      const ids = Array.from({ length: BATCH }, () => stored(kind, draw()));
      const start = performance.now();
      await insert(client, table, column, ids);
      times.push(((performance.now() - start) * 1000) / BATCH);
    }
  }
  const results = {};
  for (const { kind, table, times } of tables) {
    const { index, whole } = await sizesOf(client, table);
    results[kind] = {
      index: index / rows,
      whole: whole / rows,
      insertUs: median(times),
    };
  }
  const version = await versionOn(database, client);
  await client.end();
  return { [version]: results };
}

/** What an ID of a kind is. */
async function measuresOf(kind) {
  const draw = await open(kind, numberOf(kind));
  const ids = [];
  for (let i = 0; i < 100; i++) ids.push(stored(kind, await draw()));
  return {
    version: versionOf(kind),
    // Of what a database stores: 128 bits for what is no bigint.
    bits: typeof ids[0] === 'bigint' ? 64 : 128,
    text: Math.max(...ids.map((id) => textOf(kind, id).length)),
  };
}

export async function sizes({ isQuick, servers }) {
  const rows = isQuick ? 20_000 : 200_000;
  const names = namesHere();
  const [measured, databases] = [{}, {}];
  for (const kind of names) measured[kind] = await measuresOf(kind);
  for (const [database, server] of Object.entries(servers)) {
    if (server) Object.assign(databases, await sizesIn(database, server.url, names, rows));
  }
  return { rows, kinds: measured, databases };
}
