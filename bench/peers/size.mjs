// What a primary key of each kind takes in a database: bytes a row of its index and of the table with its index, and
// the time of an insert. Batches of all kinds take turns, each in a table of its own.

import mysql from 'mysql2/promise';
import pg from 'pg';
import { median } from '../measure.mjs';
import kinds from './kinds.cjs';

const { KINDS, open, stored } = kinds;
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
export async function versionIn(database, url) {
  const client = await DATABASES[database].connect(url);
  const [answer] = await client
    .query('SELECT version() AS version')
    .then(({ rows, 0: own }) => rows ?? own);
  await client.end();
  const number = /\d+(\.\d+)+/.exec(answer.version)[0];
  return `${database === 'postgres' ? 'PostgreSQL' : 'MariaDB'} ${number}`;
}

/** By kind: bytes a row of `index` and of `whole`, and `insertUs` a row. */
export async function sizes(database, url, names, rows) {
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
    for (const { kind, column, draw, table, times } of tables) {
      const ids = Array.from({ length: BATCH }, () => stored(kind, draw()));
      const start = performance.now();
      await insert(client, table, column, ids);
      times.push(((performance.now() - start) * 1000) / BATCH);
    }
  }
  const results = {};
  for (const { kind, column, table, times } of tables) {
    const { index, whole } = await sizesOf(client, table);
    results[kind] = {
      column: types[column].replace(' PRIMARY KEY', ''),
      index: index / rows,
      whole: whole / rows,
      insertUs: median(times),
    };
  }
  await client.end();
  return results;
}
