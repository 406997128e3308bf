'use strict';
// Prisma reads IDs exactly, nested ones too, as docs/prisma.md says: by queries and by joins, on PostgreSQL, MariaDB
// and SQLite. JSON aggregates round.

const assert = require('node:assert/strict');
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { describe, test } = require('node:test');

const mysql = require('mysql2/promise');

const { assertExact, assertRounded, oddFlake } = require('../support/exact.js');
const { Server, missing } = require('../support/lease/servers.js');
const { generatePrisma, missingOrm, modulesOf } = require('../support/installed.js');
const { createDirectory } = require('../support/own-directory.js');
const { withSnowFlake } = require('../../js/orm/prisma.js');

const schemaOf = (provider, features) => `
generator client {
  provider        = "prisma-client-js"
  output          = "./generated"
  previewFeatures = [${features}]
}
datasource db {
  provider = "${provider}"
}
model Author {
  id    BigInt @id @default(dbgenerated())
  books Book[]
}
model Book {
  id       BigInt @id @default(dbgenerated())
  author   Author @relation(fields: [authorId], references: [id])
  authorId BigInt
  tags     Tag[]
}
model Tag {
  id    BigInt @id @default(dbgenerated())
  books Book[]
}`;

/** Its tables. @param mark quotes names */
const tablesOf = (mark) =>
  [
    'Author (id bigint primary key)',
    'Book (id bigint primary key, authorId bigint)',
    'Tag (id bigint primary key)',
    '_BookToTag (A bigint, B bigint)',
  ].map(
    (table) => `CREATE TABLE ${table.replace(/\b(_?[A-Z]\w*|authorId)(?= )/g, `${mark}$1${mark}`)}`,
  );

const packageOf = (name) => require(join(modulesOf('prisma'), '@prisma', name));

/** A client for a provider's databases. */
async function clientOf(provider, adapter, features = '') {
  const folder = join(modulesOf('prisma'), `.exact-${provider}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'schema.prisma'), schemaOf(provider, features));
  await generatePrisma(folder);
  const { PrismaClient } = require(join(folder, 'generated'));
  return new PrismaClient({ adapter });
}

/**
 * Creates the tables, and asserts what is read.
 * @param options.strategies values of relationLoadStrategy, where there are several
 * @param options.mark quotes names
 * @param options.aggregates expressions of all IDs in JSON: as they are, and as texts
 */
async function readExactly(
  client,
  { strategies = [undefined], aggregates, isText = false, mark = '"' },
) {
  for (const table of tablesOf(mark)) await client.$executeRawUnsafe(table);
  const prisma = client.$extends(withSnowFlake({ flake: oddFlake() }));
  const include = { books: { include: { author: true, tags: true } } };
  const made = await prisma.author.create({
    data: { books: { create: [{ tags: { create: [{}, {}] } }, {}] } },
    include,
  });
  const books = made.books.map(({ id }) => id);
  const tags = made.books.flatMap((book) => book.tags.map(({ id }) => id));
  assertExact(made, made.id, ...books, ...tags);
  assert.equal(new Set([made.id, ...books, ...tags]).size, 5);
  for (const strategy of strategies) {
    const how = strategy && { relationLoadStrategy: strategy };
    const found = await prisma.author.findMany({ ...how, include });
    assert.deepEqual(found, [made]);
    const select = { author: { select: { id: true } }, tags: true };
    assertExact(await prisma.book.findMany({ ...how, select }), made.id, ...tags);
  }
  const last = books.reduce((a, b) => (a > b ? a : b));
  const { _max } = await prisma.book.aggregate({ _max: { id: true } });
  assert.equal(_max.id, last);
  assertExact(await prisma.book.groupBy({ by: ['authorId'], _max: { id: true } }), last, made.id);
  const raw = (what) =>
    prisma
      .$queryRawUnsafe(`SELECT ${what} FROM ${mark}Book${mark}`)
      .then(([row]) => (isText && typeof row.json === 'string' ? JSON.parse(row.json) : row));
  assertExact(await raw('MAX(id) AS last'), last);
  const [numbers, texts] = aggregates;
  assertRounded(await raw(`${numbers} AS json`));
  assertExact(await raw(`${texts} AS json`), ...books);
  await client.$disconnect();
}

describe('Prisma', { skip: missingOrm('prisma') }, () => {
  test('on PostgreSQL, by queries and by joins', { skip: missing('postgres') }, async () => {
    const server = await Server.start('postgres');
    const { PrismaPg } = packageOf('adapter-pg');
    const adapter = new PrismaPg({ connectionString: server.url });
    await readExactly(await clientOf('postgresql', adapter, '"relationJoins"'), {
      strategies: ['join', 'query'],
      aggregates: ['json_agg(id)', 'json_agg(id::text)'],
    });
    await server.stop();
  });

  test('on MariaDB', { skip: missing('mysql') }, async () => {
    const server = await Server.start('mysql');
    const connection = await mysql.createConnection(server.url);
    await connection.query('CREATE DATABASE app');
    await connection.end();
    const { PrismaMariaDb } = packageOf('adapter-mariadb');
    const adapter = new PrismaMariaDb(
      server.url.replace('mysql:', 'mariadb:').replace(/mysql$/, 'app'),
    );
    await readExactly(await clientOf('mysql', adapter), {
      mark: '`',
      aggregates: ['JSON_ARRAYAGG(id)', 'JSON_ARRAYAGG(CAST(id AS CHAR))'],
    });
    await server.stop();
  });

  test('on SQLite by libSQL, with intMode: without it, IDs are refused', async () => {
    const { PrismaLibSql } = packageOf('adapter-libsql');
    const url = () => `file:${join(createDirectory(), 'app.db')}`;
    await readExactly(
      await clientOf('sqlite', new PrismaLibSql({ url: url(), intMode: 'bigint' })),
      {
        aggregates: ['json_group_array(id)', 'json_group_array(CAST(id AS TEXT))'],
        isText: true,
      },
    );
    const client = await clientOf('sqlite', new PrismaLibSql({ url: url() }));
    await client.$executeRawUnsafe(tablesOf('"')[0]);
    const refused = client.author.create({ data: { id: oddFlake().nextId() } });
    await assert.rejects(refused, /cannot be safely represented as a JavaScript number/);
    await client.$disconnect();
  });
});
