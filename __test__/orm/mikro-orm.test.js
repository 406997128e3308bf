'use strict';
// MikroORM with `onCreate`, as docs/orms.md has it: what it fills, that what skips it is refused rather than
// numbered by the database, and that IDs are read exactly.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const postgresql = require('@mikro-orm/postgresql');
const mysql = require('mysql2/promise');

const { cross, crossingFlake } = require('../support/crossing.js');
const { assertRounded, oddFlake } = require('../support/exact.js');
const { Server, missing } = require('../support/lease/servers.js');
const { readExactly } = require('../support/mikro-orm.js');
const { missingOrm, modulesOf } = require('../support/installed.js');
const { fromBase32 } = require('../../js/id.js');
const { SnowFlake, countDuplicates } = require('../support/support.js');

const { BigIntType, EntitySchema, MikroORM } = postgresql;
const flake = new SnowFlake({ datacenterId: 2, workerId: 5 });
const isId = (id) => typeof id === 'bigint' && id > 2n ** 53n;

const id = {
  type: new BigIntType('bigint'),
  primary: true,
  autoincrement: false,
  onCreate: () => flake.nextId(),
};
const entity = (name, properties) =>
  new EntitySchema({ name, properties: { id, name: { type: 'string' }, ...properties } });
const author = entity('Author', {
  email: { type: 'string', nullable: true, unique: true },
  books: { kind: '1:m', entity: 'Book', mappedBy: 'author' },
});
const book = entity('Book', { author: { kind: 'm:1', entity: 'Author', nullable: true } });
const tag = entity('Tag', {
  id: { ...id, type: new BigIntType('string'), onCreate: () => flake.nextIdString() },
});

describe('MikroORM', { skip: missing('postgres') }, () => {
  let server;
  let orm;
  before(async () => {
    server = await Server.start('postgres');
    orm = await MikroORM.init({ entities: [author, book, tag], clientUrl: server.url });
    await orm.schema.createSchema();
  });
  after(async () => {
    await orm?.close();
    await server?.stop();
  });
  const fork = () => orm.em.fork();

  test('entities get IDs when they are flushed, cascades and 1,000 at once too', async () => {
    const em = fork();
    const ada = em.create('Author', { name: 'Ada', books: [{ name: 'Notes' }] });
    const set = flake.nextId();
    em.create('Author', { id: set, name: 'set' });
    for (let n = 0; n < 1000; n++) em.create('Book', { name: `bulk ${n}` });
    await em.flush();
    assert.ok(isId(ada.id) && isId(ada.books[0].id));
    const found = await fork().findOneOrFail('Author', ada.id, { populate: ['books'] });
    assert.deepEqual([found.id, found.books[0].id], [ada.id, ada.books[0].id]);
    assert.ok(await fork().findOne('Author', set));
    const books = await fork().find('Book', {});
    assert.equal(books.length, 1001);
    assert.ok(books.every((row) => isId(row.id)));
    assert.equal(countDuplicates(books.map((row) => String(row.id))), 0);
    const later = fork();
    (await later.findOneOrFail('Author', { name: 'Ada' })).name = 'Ada L.';
    await later.flush();
    assert.equal((await fork().findOneOrFail('Author', ada.id)).name, 'Ada L.');
    assert.equal(JSON.parse(JSON.stringify(found)).id, String(ada.id));
  });

  test('strings, by the type made for them', async () => {
    const em = fork();
    const made = em.create('Tag', { name: 'x' });
    await em.flush();
    const { id: key } = await fork().findOneOrFail('Tag', { name: 'x' });
    assert.deepEqual([typeof key, key], ['string', made.id]);
  });

  test('what skips onCreate is refused, and takes an ID that it is given', async () => {
    const count = await fork().count('Author');
    const row = { name: 'x', email: 'a@b' };
    for (const attempt of [
      () => fork().insert('Author', row),
      () => fork().insertMany('Author', [row]),
      () => fork().upsert('Author', row),
      () => fork().createQueryBuilder('Author').insert(row).execute(),
    ]) {
      await assert.rejects(attempt(), /null value in column "id" of relation "author"/);
    }
    assert.equal(await fork().count('Author'), count);

    const first = flake.nextId();
    assert.equal(await fork().insert('Author', { id: first, ...row }), first);
    const options = { onConflictFields: ['email'], onConflictExcludeFields: ['id'] };
    const upsert = { ...row, id: flake.nextId(), name: 'y' };
    const kept = await fork().upsert('Author', upsert, options);
    assert.deepEqual([kept.id, kept.name], [first, 'y']);
  });

  test('nested reads, formulas and embedded JSON are exact, and JSON aggregates with a cast', () =>
    readExactly(postgresql, { clientUrl: server.url }, ['json_agg(id)', 'json_agg(id::text)']));
});

describe('MikroORM on other databases', { skip: missingOrm('mikro-orm') }, () => {
  const driverOf = (name) => require(join(modulesOf('mikro-orm'), '@mikro-orm', name));

  test('on MariaDB, reads are as exact as on PostgreSQL', { skip: missing('mysql') }, async () => {
    const server = await Server.start('mysql');
    const connection = await mysql.createConnection(server.url);
    await connection.query('CREATE DATABASE app');
    await connection.end();
    const clientUrl = server.url.replace(/mysql$/, 'app');
    const texts = 'JSON_ARRAYAGG(CAST(id AS CHAR))';
    await readExactly(driverOf('mariadb'), { clientUrl }, ['JSON_ARRAYAGG(id)', texts]);
    await server.stop();
  });

  test('on SQLite, a BIGINT is rounded, and base32 is exact and sorts', async () => {
    const sqlite = driverOf('libsql');
    const rounded = (mode) =>
      new sqlite.EntitySchema({
        name: `Rounded_${mode}`,
        properties: { id: { ...id, type: new sqlite.BigIntType(mode) } },
      });
    const next = crossingFlake().nextIdBase32;
    const exact = new sqlite.EntitySchema({
      name: 'Exact',
      properties: {
        id: { type: 'string', primary: true, onCreate: next },
        parent: { kind: 'm:1', entity: 'Exact', nullable: true },
      },
    });
    const orm = await sqlite.MikroORM.init({
      entities: [rounded('bigint'), rounded('string'), exact],
      dbName: ':memory:',
    });
    await orm.schema.createSchema();
    const { nextIdString } = oddFlake();
    for (const name of ['Rounded_bigint', 'Rounded_string']) {
      await orm.em.fork().insert(name, { id: nextIdString() });
      assertRounded((await orm.em.fork().find(name, {})).map((row) => row.id));
    }
    const em = orm.em.fork();
    const made = [];
    for (let n = 0; n < 20; n++) {
      made.push(em.create('Exact', { parent: made.at(-1) }));
      await em.flush();
    }
    const orderBy = { id: 'asc' };
    for (const strategy of ['joined', 'select-in']) {
      const options = { orderBy, strategy, populate: ['parent'] };
      const found = await orm.em.fork().find('Exact', {}, options);
      assert.deepEqual(
        found.map((row) => [row.id, row.parent?.id]),
        made.map((row) => [row.id, row.parent?.id]),
      );
    }
    assert.ok(cross(made.map((row) => fromBase32(row.id))));
    await orm.close(true);
  });
});
