'use strict';
// Drizzle, Sequelize and Knex as docs/orms.md has them, while IDs grow from 18 to 19 digits: BIGINT and base32 sort,
// decimal text does not.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { asc, gt, sql } = require('drizzle-orm');
const postgres = require('drizzle-orm/node-postgres');
const { bigint, pgTable, text } = require('drizzle-orm/pg-core');
const sqlite = require('drizzle-orm/sql-js');
const { blob, sqliteTable, text: sqliteText } = require('drizzle-orm/sqlite-core');
const Knex = require('knex');
const pg = require('pg');
const { DataTypes, Op, Sequelize } = require('sequelize');
const openSqlJs = require('sql.js');

const { byValue, cross, crossingFlake } = require('../support/crossing.js');
const { Server, missing } = require('../support/lease/servers.js');
const { missingOrm, replacePackage } = require('../support/installed.js');

const COUNT = 20;
const idsOf = (rows) => rows.map(({ id }) => id);
const times = (make) => Array.from({ length: COUNT }, make);

function assertSorted(ids) {
  assert.equal(ids.length, COUNT);
  assert.ok(cross(ids));
  assert.deepEqual(ids, byValue(ids));
}

function assertUnsorted(ids) {
  assert.ok(cross(ids));
  assert.notDeepEqual(ids, byValue(ids));
}

describe('on PostgreSQL', { skip: missing('postgres') }, () => {
  let server;
  before(async () => {
    server = await Server.start('postgres');
  });
  after(() => server?.stop());

  test('Drizzle: bigint sorts, text does not', async () => {
    const flake = crossingFlake();
    const pool = new pg.Pool({ connectionString: server.url });
    const db = postgres.drizzle(pool);
    const numbers = pgTable('numbers', {
      id: bigint({ mode: 'bigint' }).primaryKey().$defaultFn(flake.nextId),
      name: text(),
    });
    const texts = pgTable('texts', {
      id: text().primaryKey().$defaultFn(crossingFlake().nextIdString),
      name: text(),
    });
    await db.execute(sql`CREATE TABLE numbers (id bigint PRIMARY KEY, name text)`);
    await db.execute(sql`CREATE TABLE texts (id text COLLATE "C" PRIMARY KEY, name text)`);
    for (const table of [numbers, texts]) {
      await db.insert(table).values(times(() => ({ name: 'x' })));
    }
    const sorted = idsOf(await db.select().from(numbers).orderBy(asc(numbers.id)));
    assertSorted(sorted);
    const newer = await db.select().from(numbers).where(gt(numbers.id, sorted[4]));
    assert.equal(newer.length, COUNT - 5);
    assertUnsorted(idsOf(await db.select().from(texts).orderBy(asc(texts.id))));
    await pool.end();
  });

  test('Sequelize: BIGINT sorts, and STRING with base32', async () => {
    const sequelize = new Sequelize(server.url, { logging: false });
    const define = (name, type, form) =>
      sequelize.define(
        name,
        { id: { type, primaryKey: true, defaultValue: crossingFlake()[form] } },
        { timestamps: false },
      );
    const Number64 = define('number64', DataTypes.BIGINT, 'nextIdString');
    const Base32 = define('base32', DataTypes.STRING(13), 'nextIdBase32');
    const Text = define('text20', DataTypes.STRING(20), 'nextIdString');
    await sequelize.sync();
    for (const Model of [Number64, Base32, Text]) await Model.bulkCreate(times(() => ({})));
    for (const Model of [Number64, Base32]) {
      const sorted = idsOf(await Model.findAll({ order: ['id'] }));
      assertSorted(sorted);
      assert.equal(await Model.count({ where: { id: { [Op.gt]: sorted[4] } } }), COUNT - 5);
    }
    assertUnsorted(idsOf(await Text.findAll({ order: ['id'] })));
    await sequelize.close();
  });

  test('Knex: bigInteger sorts', async () => {
    const knex = Knex({ client: 'pg', connection: server.url });
    await sortsInKnex(knex);
    await knex.destroy();
  });
});

async function sortsInKnex(knex) {
  const flake = crossingFlake();
  await knex.schema.createTable('users', (table) => {
    table.bigInteger('id').primary();
  });
  await knex('users').insert(times(() => ({ id: flake.nextIdString() })));
  const sorted = idsOf(await knex('users').orderBy('id'));
  assertSorted(sorted);
  assert.equal((await knex('users').where('id', '>', sorted[4])).length, COUNT - 5);
}

test('Knex on MariaDB', { skip: missing('mysql') }, async () => {
  const server = await Server.start('mysql');
  const { hostname: host, port, username: user, pathname } = new URL(server.url);
  const connection = { host, port, user, database: pathname.slice(1) };
  const knex = Knex({
    client: 'mysql2',
    connection: {
      ...connection,
      connectTimeout: 0,
      supportBigNumbers: true,
      bigNumberStrings: true,
    },
  });
  await sortsInKnex(knex);
  await knex.destroy();
  await server.stop();
});

test('Knex on SQLite, by better-sqlite3', { skip: missingOrm('better-sqlite3') }, async () => {
  replacePackage('better-sqlite3', 'better-sqlite3');
  const knex = Knex({
    client: 'better-sqlite3',
    connection: ':memory:',
    useNullAsDefault: true,
    pool: {
      afterCreate: (database, done) => done(null, database.defaultSafeIntegers()),
    },
  });
  await sortsInKnex(knex);
  await knex.destroy();
});

test('Drizzle on SQLite: base32 sorts, a blob does not', async () => {
  const { Database } = await openSqlJs();
  const db = sqlite.drizzle(new Database());
  const texts = sqliteTable('texts', {
    id: sqliteText().primaryKey().$defaultFn(crossingFlake().nextIdBase32),
  });
  const blobs = sqliteTable('blobs', {
    id: blob({ mode: 'bigint' }).primaryKey().$defaultFn(crossingFlake().nextId),
  });
  db.run(sql`CREATE TABLE texts (id text PRIMARY KEY)`);
  db.run(sql`CREATE TABLE blobs (id blob PRIMARY KEY)`);
  for (const table of [texts, blobs])
    db.insert(table)
      .values(times(() => ({})))
      .run();
  const sorted = idsOf(db.select().from(texts).orderBy(asc(texts.id)).all());
  assertSorted(sorted);
  assert.equal(db.select().from(texts).where(gt(texts.id, sorted[4])).all().length, COUNT - 5);
  assertUnsorted(idsOf(db.select().from(blobs).orderBy(asc(blobs.id)).all()));
});
