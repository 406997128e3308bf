'use strict';
// Kysely as docs/orms.md has it: rows are exact with the drivers' options, and JSON with a cast; an insert without an ID is
// refused.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { describe, test } = require('node:test');
const mysql = require('mysql2');
const pg = require('pg');

const { assertExact, assertRounded, oddFlake } = require('../support/exact.js');
const { Server, missing } = require('../support/lease/servers.js');
const { missingOrm, modulesOf } = require('../support/installed.js');

const { nextId } = oddFlake();

/** @param nested the database's helper for relations, if Kysely has one for it */
async function tryIt(db, nested) {
  const { ParseJSONResultsPlugin } = requireKysely('kysely');
  for (const [table, column, type] of [
    ['users', 'name', 'varchar(9)'],
    ['books', 'user_id', 'bigint'],
  ]) {
    await db.schema
      .createTable(table)
      .addColumn('id', 'bigint', (id) => id.notNull().primaryKey())
      .addColumn(column, type)
      .execute();
  }
  const ids = [nextId(), nextId(), nextId()];
  const [user, ...books] = ids;
  await db.insertInto('users').values({ id: user, name: 'Ada' }).execute();
  const rows = books.map((id) => ({ id: String(id), user_id: String(user) }));
  await db.insertInto('books').values(rows).execute();

  assertExact(await db.selectFrom('books').selectAll().execute(), ...ids);
  const joined = db.selectFrom('books').innerJoin('users', 'users.id', 'books.user_id');
  assertExact(await joined.select(['books.id', 'users.id as of']).execute(), ...ids);
  const most = ({ fn }) => [fn.max('id').as('max'), fn.min('id').as('min')];
  assertExact(await db.selectFrom('books').select(most).execute(), ...books);
  const above = db.selectFrom('books').selectAll().where('id', '>', String(books[0]));
  assertExact(await above.execute(), user, books[1]);

  if (nested !== undefined) {
    const parsed = db.withPlugin(new ParseJSONResultsPlugin());
    const read = (select) => {
      const books = (of) =>
        of.selectFrom('books').select(select).whereRef('user_id', '=', 'users.id');
      return parsed
        .selectFrom('users')
        .select((of) => ['name', nested(books(of)).as('books')])
        .execute();
    };
    assertRounded(await read('books.id'));
    assertExact(await read((of) => of.cast('books.id', 'text').as('id')), ...books);
  }

  await assert.rejects(db.insertInto('users').values({ name: 'Eve' }).execute());

  await db.destroy();
}

const requireKysely = (path) => require(require.resolve(path, { paths: [modulesOf('kysely')] }));

describe('Kysely', { skip: missingOrm('kysely') }, () => {
  const open = (dialect) => new (requireKysely('kysely').Kysely)({ dialect });
  const nestedBy = (database) => requireKysely(`kysely/helpers/${database}`).jsonArrayFrom;

  test('on PostgreSQL', { skip: missing('postgres') }, async () => {
    const server = await Server.start('postgres');
    const pool = new pg.Pool({ connectionString: server.url });
    const db = open(new (requireKysely('kysely').PostgresDialect)({ pool }));
    await tryIt(db, nestedBy('postgres'));
    await server.stop();
  });

  test('on MariaDB', { skip: missing('mysql') }, async () => {
    const server = await Server.start('mysql');
    const createPool = (options) =>
      mysql.createPool({ uri: server.url, connectTimeout: 60_000, ...options });
    const { MysqlDialect, sql } = requireKysely('kysely');
    const rounding = open(new MysqlDialect({ pool: createPool() }));
    assertRounded(await sql.raw(`SELECT ${nextId()} AS id`).execute(rounding));
    await rounding.destroy();
    const admin = open(new MysqlDialect({ pool: createPool() }));
    await sql`CREATE DATABASE app`.execute(admin);
    await admin.destroy();
    const pool = createPool({
      uri: server.url.replace(/mysql$/, 'app'),
      supportBigNumbers: true,
      bigNumberStrings: true,
    });
    await tryIt(open(new MysqlDialect({ pool })));
    await server.stop();
  });

  test('on SQLite, by better-sqlite3', { skip: missingOrm('better-sqlite3') }, async () => {
    const Database = require(join(modulesOf('better-sqlite3'), 'better-sqlite3'));
    const database = new Database(':memory:').defaultSafeIntegers();
    const { SqliteDialect } = requireKysely('kysely');
    await tryIt(open(new SqliteDialect({ database })), nestedBy('sqlite'));
  });
});
