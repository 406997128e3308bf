'use strict';
// The clients that docs/sql-databases.md names for sql(), each with the function that the page shows for it.

const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const { generatePrisma, missingOrm, missingPackages, modulesOf } = require('../installed.js');

const ROOT = join(__dirname, '../../..');
const FOLDER = join(ROOT, '__test__/support/clients/sql');
const MODULES = join(FOLDER, 'node_modules');

const missingClient = () => missingPackages(FOLDER, '--clients');
const fromFolder = (name) => require(join(MODULES, name));
const fromOrm = (orm, name) => require(join(modulesOf(orm), name));

/** By the first words of a row: the body of `query` there, and `placeholder` if the row has one. */
function shownFor(client) {
  const page = readFileSync(join(ROOT, 'docs/sql-databases.md'), 'utf8');
  const row = page.split('\n').find((line) => line.startsWith(`| ${client}`));
  const [, cell] = / \| `([^`]*)` \|$/.exec(row);
  const [, placeholder] = /placeholder: '([^']*)'/.exec(row) ?? [];
  return { code: cell, placeholder };
}

/** Runs SQL that an expression of the page sends. @param given what an application has around it, by name */
function clientOf(client, dialect, given) {
  const { code, placeholder } = shownFor(client);
  const names = Object.keys(given);
  const query = new Function(...names, `return async (text, values) => ${code};`)(
    ...Object.values(given),
  );
  return { dialect, query, ...(placeholder && { placeholder }) };
}

const PRISMA = { postgres: 'postgresql', mysql: 'mysql', sqlite: 'sqlite' };
const folderOf = (dialect) => join(modulesOf('prisma'), `.sql-${dialect}`);

/** Generates the clients of Prisma. */
async function prepare() {
  for (const [dialect, provider] of Object.entries(PRISMA)) {
    const folder = folderOf(dialect);
    mkdirSync(folder, { recursive: true });
    const schema = `generator client {\n provider = "prisma-client-js"\n output = "./generated"\n}\ndatasource db {\n provider = "${provider}"\n}\nmodel users {\n id BigInt @id\n}\n`;
    writeFileSync(join(folder, 'schema.prisma'), schema);
    await generatePrisma(folder);
  }
}

function openPrisma(dialect, adapter) {
  const { PrismaClient } = require(join(folderOf(dialect), 'generated'));
  const db = new PrismaClient({ adapter });
  return { given: { db }, end: () => db.$disconnect() };
}

async function openMikroOrm(driver, options) {
  const db = await driver.MikroORM.init({
    ...{ entities: [], discovery: { warnWhenNoEntities: false }, pool: { min: 0, max: 4 } },
    ...options,
  });
  return { given: { db }, end: () => db.close() };
}

function openKysely(dialect) {
  const { CompiledQuery, Kysely } = fromOrm('kysely', 'kysely');
  const db = new Kysely({ dialect });
  return { given: { db, CompiledQuery }, end: () => db.destroy() };
}

function openBetter(path) {
  const Database = fromOrm('better-sqlite3', 'better-sqlite3');
  return new Database(path, { timeout: BUSY_MS });
}

/** How long SQLite waits for another writer. */
const BUSY_MS = 10_000;

const hasSqlite = () => Number(process.versions.node.split('.')[0]) >= 24;

/** The parts of a server's URL. */
function partsOf(url) {
  const { hostname: host, port, username: user, pathname } = new URL(url);
  return { host, port: Number(port), user, database: pathname.slice(1) };
}

/** A pool that does not end the process where its server goes away. */
function openPg(connectionString) {
  const pool = new (require('pg').Pool)({ connectionString, max: 4 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

const orms =
  (...names) =>
  () =>
    names.map(missingOrm).find(Boolean);

/**
 * By name: the row of the page, the engine (`file` for SQLite), why it is not tried here, and how an application opens it:
 * by a URL or a path.
 */
const SQL_CLIENTS = {
  postgres: {
    ...{ row: '`postgres`', dialect: 'postgres', missing: missingClient },
    async open(url) {
      const db = fromFolder('postgres')(url, { max: 4, onnotice() {}, fetch_types: false });
      return { given: { db }, end: () => db.end() };
    },
  },
  PGlite: {
    ...{ row: 'PGlite', dialect: 'postgres', engine: 'memory', missing: missingClient },
    async open() {
      const { PGlite } = await import(join(MODULES, '@electric-sql/pglite/dist/index.js'));
      const db = new PGlite();
      return { given: { db }, end: () => db.close() };
    },
  },
  'Drizzle on pg': {
    ...{ row: 'Drizzle', dialect: 'postgres', missing: () => undefined },
    async open(url) {
      const pool = openPg(url);
      const db = require('drizzle-orm/node-postgres').drizzle(pool);
      return { given: { db }, end: () => pool.end() };
    },
  },
  'Knex on pg': {
    ...{ row: 'Knex 3 on `pg`', dialect: 'postgres', missing: () => undefined },
    async open(url) {
      const db = require('knex')({ client: 'pg', connection: url, pool: { min: 0, max: 4 } });
      return { given: { db }, end: () => db.destroy() };
    },
  },
  'Knex on mysql2': {
    ...{ row: 'Knex 3 on `mysql2`', dialect: 'mysql', missing: () => undefined },
    async open(url) {
      const db = require('knex')({ client: 'mysql2', connection: url, pool: { min: 0, max: 4 } });
      return { given: { db }, end: () => db.destroy() };
    },
  },
  'Knex on better-sqlite3': {
    ...{ row: 'Knex 3 on `better-sqlite3`', dialect: 'sqlite', engine: 'file' },
    missing: orms('better-sqlite3'),
    async open(path) {
      const { replacePackage } = require('../installed.js');
      replacePackage('better-sqlite3', 'better-sqlite3');
      const options = { client: 'better-sqlite3', connection: { filename: path } };
      const db = require('knex')({ ...options, useNullAsDefault: true });
      return { given: { db }, end: () => db.destroy() };
    },
  },
  'Sequelize on pg': {
    ...{ row: 'Sequelize', dialect: 'postgres', missing: () => undefined },
    open: (url) => openSequelize(url),
  },
  'Sequelize on mysql2': {
    ...{ row: 'Sequelize', dialect: 'mysql', missing: () => undefined },
    open: (url) => openSequelize(url),
  },
  'MikroORM on pg': {
    ...{ row: 'MikroORM', dialect: 'postgres', missing: () => undefined },
    open: (url) => openMikroOrm(require('@mikro-orm/postgresql'), { clientUrl: url }),
  },
  'MikroORM on mariadb': {
    ...{ row: 'MikroORM', dialect: 'mysql', missing: orms('mikro-orm') },
    open(url) {
      const { database: dbName, ...rest } = partsOf(url);
      return openMikroOrm(fromOrm('mikro-orm', '@mikro-orm/mariadb'), { dbName, ...rest });
    },
  },
  'MikroORM on libSQL': {
    ...{ row: 'MikroORM', dialect: 'sqlite', engine: 'file', missing: orms('mikro-orm') },
    async open(path) {
      const driver = fromOrm('mikro-orm', '@mikro-orm/libsql');
      const opened = await openMikroOrm(driver, { dbName: path, pool: { min: 1, max: 1 } });
      await opened.given.db.em.getConnection().execute(`PRAGMA busy_timeout = ${BUSY_MS}`);
      return opened;
    },
  },
  'Prisma on pg': {
    ...{ row: 'Prisma', dialect: 'postgres', missing: orms('prisma') },
    async open(url) {
      const { PrismaPg } = fromOrm('prisma', '@prisma/adapter-pg');
      return openPrisma('postgres', new PrismaPg({ connectionString: url, max: 4 }));
    },
  },
  'Prisma on mariadb': {
    ...{ row: 'Prisma', dialect: 'mysql', missing: orms('prisma') },
    async open(url) {
      const { PrismaMariaDb } = fromOrm('prisma', '@prisma/adapter-mariadb');
      return openPrisma('mysql', new PrismaMariaDb({ ...partsOf(url), connectionLimit: 4 }));
    },
  },
  'Prisma on libSQL': {
    ...{ row: 'Prisma', dialect: 'sqlite', engine: 'file', missing: orms('prisma') },
    async open(path) {
      const { PrismaLibSql } = fromOrm('prisma', '@prisma/adapter-libsql');
      return openPrisma('sqlite', new PrismaLibSql({ url: `file:${path}`, timeout: BUSY_MS }));
    },
  },
  'Kysely on pg': {
    ...{ row: 'Kysely', dialect: 'postgres', missing: orms('kysely') },
    async open(url) {
      const { PostgresDialect } = fromOrm('kysely', 'kysely');
      const pool = openPg(url);
      return openKysely(new PostgresDialect({ pool }));
    },
  },
  'Kysely on mysql2': {
    ...{ row: 'Kysely', dialect: 'mysql', missing: orms('kysely') },
    async open(url) {
      const { MysqlDialect } = fromOrm('kysely', 'kysely');
      const pool = require('mysql2').createPool({ uri: url, connectionLimit: 4 });
      return openKysely(new MysqlDialect({ pool }));
    },
  },
  'Kysely on better-sqlite3': {
    ...{ row: 'Kysely', dialect: 'sqlite', engine: 'file' },
    missing: orms('kysely', 'better-sqlite3'),
    async open(path) {
      const { SqliteDialect } = fromOrm('kysely', 'kysely');
      return openKysely(new SqliteDialect({ database: openBetter(path) }));
    },
  },
  'better-sqlite3': {
    ...{ row: 'better-sqlite3', dialect: 'sqlite', engine: 'file' },
    missing: orms('better-sqlite3'),
    async open(path) {
      const db = openBetter(path);
      return { given: { db }, end: () => db.close() };
    },
  },
  'node:sqlite': {
    ...{ row: '`node:sqlite`', dialect: 'sqlite', engine: 'file' },
    missing: () => (hasSqlite() ? undefined : `Node ${process.version} has no node:sqlite`),
    async open(path) {
      const { DatabaseSync } = require('node:sqlite');
      const db = new DatabaseSync(path, { timeout: BUSY_MS });
      return { given: { db }, end: () => db.close() };
    },
  },
  libSQL: {
    ...{ row: 'libSQL', dialect: 'sqlite', engine: 'file', missing: missingClient },
    async open(path) {
      const db = fromFolder('@libsql/client').createClient({
        url: `file:${path}`,
        timeout: BUSY_MS,
      });
      return { given: { db }, end: () => db.close() };
    },
  },
};

async function openSequelize(url) {
  const { Sequelize } = require('sequelize');
  const db = new Sequelize(url, { logging: false, pool: { max: 4 } });
  return { given: { db }, end: () => db.close() };
}

/**
 * Opens a client of the page.
 * @param place the URL of its server, or the path of its file
 * @returns what sql() takes, and `end`
 */
async function openSqlClient(name, place) {
  const { row, dialect, open } = SQL_CLIENTS[name];
  const { given, end } = await open(place);
  return { client: clientOf(row, dialect, given), end };
}

/** The engine of a client's server, or `file` or `memory`. */
const engineOf = (name) => SQL_CLIENTS[name].engine ?? SQL_CLIENTS[name].dialect;

module.exports = { SQL_CLIENTS, engineOf, openSqlClient, preparePrismaClients: prepare };
