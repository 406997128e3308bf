'use strict';
// What Drizzle and Sequelize read of IDs that no number holds, in nested reads, aggregates and raw results: exact
// where their pages say so, and rounded or refused where they say that.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { eq, max, relations, sql } = require('drizzle-orm');
const mysqlCore = require('drizzle-orm/mysql-core');
const drizzleMysql = require('drizzle-orm/mysql2');
const drizzlePostgres = require('drizzle-orm/node-postgres');
const pgCore = require('drizzle-orm/pg-core');
const drizzleSqlite = require('drizzle-orm/sql-js');
const sqliteCore = require('drizzle-orm/sqlite-core');
const mysql = require('mysql2/promise');
const pg = require('pg');
const { DataTypes, Sequelize } = require('sequelize');
const openSqlJs = require('sql.js');

const { assertExact, assertRounded, oddFlake } = require('../support/exact.js');
const { Server, missing } = require('../support/lease/servers.js');
const { missingOrm, replacePackage } = require('../support/installed.js');
const { blocksOf } = require('../support/page.js');
const { toBase32 } = require('../../js/id.js');

const { nextId, nextIdString } = oddFlake();
const EXACT = { supportBigNumbers: true, bigNumberStrings: true };
const REFUSED = /An ID was rounded to 9\d+/;

/** A statement of a page, run with what it uses; returns what it declares. */
function fromPage(page, declaration, uses) {
  const block = blocksOf(page).find(({ code }) => code.includes(declaration)).code;
  const [typed] = /^[\s\S]*?^\}.*$/m.exec(block.slice(block.indexOf(declaration)));
  const code = typed.replace(/<\{.*?\}>/, '');
  const [, name] = /^\w+ (\w+)/.exec(declaration);
  return new Function(...Object.keys(uses), `${code}\nreturn ${name};`)(...Object.values(uses));
}

const DRIZZLE = 'docs/orms.md';
const snowflakeOf = ({ customType }) => fromPage(DRIZZLE, 'const snowflake', { customType });

/** Users, their books, and how these are related. */
function drizzleSchema(tableOf, type) {
  const users = tableOf('users', { id: type('id').primaryKey(), name: type('other') });
  const books = tableOf('books', { id: type('id').primaryKey(), userId: type('user_id') });
  const usersRelations = relations(users, ({ many }) => ({ books: many(books) }));
  const booksRelations = relations(books, ({ one }) => ({
    user: one(users, { fields: [books.userId], references: [users.id] }),
  }));
  return { users, books, usersRelations, booksRelations };
}
const bigintOf = (core) => (name) => core.bigint(name, { mode: 'bigint' });

/** A user with two books, one of which has another one's ID beside. */
const [USER, OTHER, BOOK, BOOK2] = Array.from({ length: 4 }, nextId);

/** @param as a column's form of an ID */
async function fill(db, { users, books }, as = (id) => id) {
  await db.insert(users).values([{ id: as(USER), name: as(OTHER) }]);
  await db.insert(books).values([
    { id: as(BOOK), userId: as(USER) },
    { id: as(BOOK2), userId: as(USER) },
  ]);
}

/** What does not go through JSON. */
async function readsFlat(db, { users, books }, as = (id) => id) {
  assertExact(await db.select().from(users), USER, OTHER);
  const joined = db.select().from(users).leftJoin(books, eq(books.userId, users.id));
  assertExact(await joined, USER, OTHER, BOOK, BOOK2);
  assertExact(
    await db
      .select()
      .from(books)
      .where(eq(books.id, as(BOOK2))),
    BOOK2,
    USER,
  );
  assertExact(
    await db.select({ max: max(books.id), raw: sql`min(${books.id})` }).from(books),
    BOOK,
    BOOK2,
  );
}

describe('on PostgreSQL', { skip: missing('postgres') }, () => {
  let server;
  let pool;
  before(async () => {
    server = await Server.start('postgres');
    pool = new pg.Pool({ connectionString: server.url });
  });
  after(async () => {
    await pool?.end();
    await server?.stop();
  });

  describe('Drizzle', () => {
    const schema = drizzleSchema(pgCore.pgTable, snowflakeOf(pgCore));
    const plain = drizzleSchema(pgCore.pgTable, bigintOf(pgCore));
    let db;
    before(async () => {
      db = drizzlePostgres.drizzle(pool, { schema });
      await db.execute('CREATE TABLE users (id bigint PRIMARY KEY, other bigint)');
      await db.execute('CREATE TABLE books (id bigint PRIMARY KEY, user_id bigint)');
      await fill(db, schema);
    });

    const nested = (one) => [
      one.query.users.findMany({ with: { books: true } }),
      one.query.books.findMany({ with: { user: true } }),
      one.query.users.findFirst({ with: { books: { with: { user: true } } } }),
    ];

    test('rows, joins, RETURNING and aggregates of columns are exact', async () => {
      await readsFlat(db, schema);
      const added = nextId();
      assertExact(await db.insert(schema.users).values({ id: added }).returning(), added);
      assertExact(
        await db.delete(schema.users).where(eq(schema.users.id, added)).returning(),
        added,
      );
      const { rows } = await db.execute(
        sql`SELECT id, array_agg(id) AS all FROM books GROUP BY id`,
      );
      assertExact(rows, BOOK, BOOK2);
    });

    test('relations are refused, where bigint takes other IDs for them', async () => {
      for (const query of nested(db)) await assert.rejects(query, REFUSED);
      const found = await drizzlePostgres.drizzle(pool, { schema: plain }).query.users.findMany({
        with: { books: true },
      });
      assertExact({ ...found[0], books: [] }, USER, OTHER);
      assertRounded(found[0].books);
    });

    test('relations and JSON aggregates are exact with the parser', async (t) => {
      const parse = fromPage(DRIZZLE, 'function parseExactly', {});
      const types = [pg.types.builtins.JSON, pg.types.builtins.JSONB];
      for (const type of types) pg.types.setTypeParser(type, parse);
      t.after(() => {
        for (const type of types) pg.types.setTypeParser(type, JSON.parse);
      });
      for (const each of [schema, plain]) {
        const [many, one, deep] = await Promise.all(
          nested(drizzlePostgres.drizzle(pool, { schema: each })),
        );
        assertExact(many, USER, OTHER, BOOK, BOOK2);
        assertExact(one, BOOK, BOOK2, USER, OTHER);
        assertExact(deep, USER, OTHER, BOOK, BOOK2);
        assert.ok([...many[0].books, deep.books[0].user].every(({ id }) => typeof id === 'bigint'));
      }
      const json = sql`SELECT json_agg(id) AS a, jsonb_agg(id) AS b, to_jsonb(books) AS c FROM books GROUP BY books.*, id`;
      assertExact((await db.execute(json)).rows, BOOK, BOOK2, USER);
    });
  });

  test('a parser of pg that makes numbers rounds for all ORMs, which Drizzle’s column refuses', async (t) => {
    const { INT8 } = pg.types.builtins;
    pg.types.setTypeParser(INT8, Number);
    t.after(() => pg.types.setTypeParser(INT8, String));
    const select = `SELECT ${USER}::bigint AS id`;
    const sequelize = new Sequelize(server.url, { logging: false });
    assertRounded((await sequelize.query(select))[0]);
    await sequelize.close();
    const { users } = drizzleSchema(pgCore.pgTable, snowflakeOf(pgCore));
    await assert.rejects(drizzlePostgres.drizzle(pool).select().from(users), REFUSED);
  });

  test('the parser of Drizzle’s page changes nothing but integers that no number holds', () => {
    const parse = fromPage(DRIZZLE, 'function parseExactly', {});
    const samples = [
      ...[0, -1, 1.5, 1e21, -1e-300, 2 / 3, 9007199254740991, -9007199254740991],
      ...['', '"', '\\', '\\"', `"${USER}`, `\\"${USER},`, '\u2028\n', String(USER), 'é'],
      ...[null, true, [], {}, { [`"${USER}`]: [{ '\\': `${USER}"` }] }],
    ];
    for (const value of [...samples, samples]) {
      assert.deepEqual(parse(JSON.stringify(value)), value);
      assert.deepEqual(parse(JSON.stringify({ a: value, b: [value] }, null, 2)), {
        a: value,
        b: [value],
      });
    }
    assert.deepEqual(
      parse(`[${USER}, -${USER}, 9007199254740993, {"\\\\":${USER}}, 0.66666666666666666666]`),
      [String(USER), `-${USER}`, '9007199254740993', { '\\': String(USER) }, 2 / 3],
    );
    assert.equal(parse(JSON.stringify('\\"'.repeat(1e6))).length, 2e6);
    for (const broken of ['{', `[${USER}`, '"']) assert.throws(() => parse(broken), SyntaxError);
  });

  test('Sequelize: includes are exact, and aggregates as strings', async () => {
    const sequelize = new Sequelize(server.url, { logging: false });
    await readsInSequelize(sequelize, { json: 'json_agg(id)', texts: 'json_agg(id::text)' });
    await sequelize.close();
  });
});

describe('on MariaDB', { skip: missing('mysql') }, () => {
  let server;
  let uri;
  before(async () => {
    server = await Server.start('mysql');
    const connection = await mysql.createConnection({ uri: server.url, connectTimeout: 60_000 });
    await connection.query('CREATE DATABASE app');
    await connection.end();
    uri = server.url.replace(/mysql$/, 'app');
  });
  after(() => server?.stop());

  const json = { json: 'json_arrayagg(id)', texts: 'json_arrayagg(CAST(id AS CHAR))' };
  const poolOf = (options) => mysql.createPool({ uri, connectTimeout: 60_000, ...options });

  describe('Drizzle', () => {
    const schema = drizzleSchema(mysqlCore.mysqlTable, snowflakeOf(mysqlCore));
    const plain = drizzleSchema(mysqlCore.mysqlTable, bigintOf(mysqlCore));
    const texts = drizzleSchema(
      (name, columns) => mysqlCore.mysqlTable(`texts_${name}`, columns),
      (name) => mysqlCore.varchar(name, { length: 13 }),
    );
    // MariaDB has no LATERAL, so Drizzle reads its relations as PlanetScale's.
    const open = (pool, schema) => drizzleMysql.drizzle(pool, { schema, mode: 'planetscale' });
    let pool;
    before(async () => {
      pool = poolOf(EXACT);
      for (const [prefix, type] of [
        ['', 'bigint'],
        ['texts_', 'varchar(13)'],
      ]) {
        await pool.query(`CREATE TABLE ${prefix}users (id ${type} PRIMARY KEY, other ${type})`);
        await pool.query(`CREATE TABLE ${prefix}books (id ${type} PRIMARY KEY, user_id ${type})`);
      }
      await fill(open(pool, schema), schema);
      await fill(open(pool, texts), texts, toBase32);
    });
    after(() => pool?.end());

    test('rows, joins and aggregates of columns are exact with a pool that reads big numbers', async () => {
      await readsFlat(open(pool, schema), schema);
    });

    test('a pool or URL without its options rounds, which is refused', async () => {
      const pools = [drizzleMysql.drizzle(uri).$client, poolOf()];
      for (const rounding of pools) {
        await assert.rejects(open(rounding, schema).select().from(schema.users), REFUSED);
        assertRounded(await open(rounding, plain).select().from(plain.users));
        await rounding.end();
      }
    });

    test('relations are refused, where bigint takes other IDs for them', async () => {
      const query = { with: { books: true } };
      await assert.rejects(open(pool, schema).query.users.findMany(query), REFUSED);
      const [found] = await open(pool, plain).query.users.findMany(query);
      assertRounded(found.books);
    });

    test('relations of base32 are exact', async () => {
      const found = await open(pool, texts).query.users.findMany({ with: { books: true } });
      assertExact(found, USER, OTHER, BOOK, BOOK2);
    });
  });

  test('Sequelize: includes are exact, and aggregates as strings', async () => {
    const sequelize = new Sequelize(uri, {
      logging: false,
      dialectOptions: { connectTimeout: 60_000 },
    });
    await readsInSequelize(sequelize, json);
    await sequelize.close();
  });
});

async function readsInSequelize(sequelize, { json, texts }) {
  const define = (name, fields) =>
    sequelize.define(
      name,
      {
        id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: nextIdString },
        ...fields,
      },
      { timestamps: false },
    );
  const Author = define('author', { name: DataTypes.STRING });
  const Novel = define('novel', {});
  const Tag = define('tag', {});
  Author.hasMany(Novel);
  Novel.belongsTo(Author);
  const through = { through: 'novel_tags', timestamps: false };
  Novel.belongsToMany(Tag, through);
  Tag.belongsToMany(Novel, through);
  await sequelize.sync();
  const include = [{ model: Novel, include: [Tag] }];
  const made = await Author.create({ name: 'Ada', novels: [{ tags: [{}, {}] }, {}] }, { include });
  const novels = made.novels.map(({ id }) => id);
  const tags = made.novels[0].tags.map(({ id }) => id);
  const all = [made.id, ...novels, ...tags];
  const plain = (rows) => JSON.parse(JSON.stringify(rows));

  assertExact(plain(made), ...all);
  assertExact(plain(await Author.findAll({ include })), ...all);
  const separate = [{ model: Novel, separate: true, include: [Tag, Author] }];
  assertExact(plain(await Author.findAll({ include: separate })), ...all);
  assertExact(plain(await Author.findAll({ include, limit: 1 })), ...all);
  assertExact(await Novel.findAll({ raw: true, nest: true, include: [Author, Tag] }), ...all);
  assertExact(plain(await made.getNovels()), made.id, ...novels);
  const last = String(novels.map(BigInt).reduce((a, b) => (a > b ? a : b)));
  assertRounded(await Novel.max('id'));
  assert.equal(await Novel.max('id', { dataType: 'string' }), last);
  const attributes = [[sequelize.fn('MAX', sequelize.col('id')), 'last']];
  assert.equal((await Novel.findAll({ attributes, raw: true }))[0].last, last);

  const [rows] = await sequelize.query('SELECT id, MAX(id) AS m FROM authors GROUP BY id');
  assertExact(rows, made.id);
  const aggregate = async (what) => (await sequelize.query(`SELECT ${what} AS a FROM tags`))[0];
  assertRounded(await aggregate(json));
  assertExact(await aggregate(texts), ...tags);
}

describe('Drizzle on SQLite, with base32', () => {
  const schema = drizzleSchema(sqliteCore.sqliteTable, sqliteCore.text);
  async function create(db) {
    db.run(sql`CREATE TABLE users (id text PRIMARY KEY, other text)`);
    db.run(sql`CREATE TABLE books (id text PRIMARY KEY, user_id text)`);
    await fill(db, schema, toBase32);
  }

  test('by sql.js: rows, joins and aggregates are exact', async () => {
    const { Database } = await openSqlJs();
    const db = drizzleSqlite.drizzle(new Database());
    await create(db);
    await readsFlat(db, schema, toBase32);
  });

  test('by better-sqlite3: relations are, too', {
    skip: missingOrm('better-sqlite3'),
  }, async () => {
    replacePackage('better-sqlite3', 'better-sqlite3');
    const db = require('drizzle-orm/better-sqlite3').drizzle(':memory:', { schema });
    await create(db);
    await readsFlat(db, schema, toBase32);
    const found = await db.query.users.findMany({ with: { books: { with: { user: true } } } });
    assertExact(found, USER, OTHER, BOOK, BOOK2);
    const one = await db.query.books.findMany({ with: { user: true } });
    assertExact(one, USER, OTHER, BOOK, BOOK2);
  });
});
