'use strict';
// snowdrift/prisma on a real PostgreSQL: every way that Prisma has to create rows, nested ones too, with IDs
// above 2^53.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { promisify } = require('node:util');
const { Client } = require('pg');

const { byValue, cross, crossingFlake } = require('../support/crossing.js');
const { Server, missing } = require('../support/lease/servers.js');
const { generatePrisma, missingOrm, modulesOf } = require('../support/installed.js');
const { SnowFlake, countDuplicates } = require('../support/support.js');
const { withSnowFlake } = require('../../js/orm/prisma.js');

const folder = join(__dirname, '../support/orms/prisma');
const flake = new SnowFlake({ datacenterId: 2, workerId: 4 });
const isId = (id) => typeof id === 'bigint' && id > 2n ** 53n;

/** An argument that nobody may change. */
function frozen(value) {
  if (value !== null && typeof value === 'object') Object.values(Object.freeze(value)).map(frozen);
  return value;
}

test('arguments are not changed: what differs is a copy', () => {
  // Prisma may pass a copy itself, so this asks what it is given.
  const client = {
    _engineConfig: {
      inlineSchema: 'model A {\n id BigInt @id\n b B[]\n}\nmodel B {\n x Int @id\n a A[]\n}',
    },
    $extends: ({ query }) => query.$allModels.$allOperations,
  };
  const run = withSnowFlake({ flake })(client);
  const args = frozen({
    data: { b: { create: [{ a: { connectOrCreate: { where: {}, create: {} } } }] } },
  });
  const query = (filled) => filled;
  const { data } = run({ model: 'A', operation: 'create', args, query });
  assert.ok(isId(data.id));
  assert.ok(isId(data.b.create[0].a.connectOrCreate.create.id));
  assert.equal(data.b.create[0].x, undefined);
  assert.equal(run({ model: 'A', operation: 'findMany', args, query }), args);
  // Prisma refuses these.
  for (const wrong of [5, null, [null], 'x', { b: 5 }, { b: { create: null } }, { none: {} }]) {
    const given = frozen({ data: wrong });
    const filled = run({ model: 'A', operation: 'create', args: given, query }).data;
    if (filled?.id) delete filled.id;
    assert.deepEqual(filled, wrong);
  }
});

test('a mock that returns no ID is refused', () => {
  for (const [type, method] of [
    ['BigInt', 'nextId'],
    ['String', 'nextIdString'],
  ]) {
    const client = {
      _engineConfig: { inlineSchema: `model A {\n id ${type} @id\n}` },
      $extends: ({ query }) => query.$allModels.$allOperations,
    };
    const mock = { nextId() {}, nextIdString() {} };
    const run = withSnowFlake({ flake: mock, models: ['A'] })(client);
    const query = () => assert.fail('it ran');
    assert.throws(() => run({ model: 'A', operation: 'create', args: { data: {} }, query }), {
      code: 'ERR_SNOWFLAKE_INVALID_ID',
      message: `flake.${method}() must return an ID; it returned undefined`,
    });
  }
});

describe('Prisma', { skip: missing('postgres') ?? missingOrm('prisma') }, () => {
  let server;
  let plain;
  let prisma;
  let withTags;

  before(async () => {
    server = await Server.start('postgres');
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query(readFileSync(join(folder, 'tables.sql'), 'utf8'));
    await client.end();
    await generatePrisma(folder);
    const { PrismaClient } = require(join(modulesOf('prisma'), 'generated'));
    const { PrismaPg } = require(join(modulesOf('prisma'), '@prisma/adapter-pg'));
    plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: server.url }) });
    prisma = plain.$extends(withSnowFlake({ flake }));
    withTags = plain.$extends(
      withSnowFlake({ flake, models: ['Author', 'Book', 'Tag', 'Profile', 'Note'] }),
    );
  });
  after(async () => {
    await plain?.$disconnect();
    await server?.stop();
  });

  test('a row gets an ID, which is read back as it is, found and kept', async () => {
    const { id } = await prisma.author.create({ data: { name: 'Ada' } });
    assert.ok(isId(id), String(id));
    assert.deepEqual(await prisma.author.findUnique({ where: { id } }), {
      id,
      name: 'Ada',
      email: null,
    });
    await prisma.author.update({ where: { id }, data: { name: 'Ada L.' } });
    assert.equal((await prisma.author.findUniqueOrThrow({ where: { id } })).name, 'Ada L.');
    assert.equal(await prisma.author.count({ where: { id: { gte: id } } }), 1);
  });

  test('an ID that was set is kept', async () => {
    const id = flake.nextId();
    const tag = { create: { key: 'set', label: 'set' } };
    const { books, ...author } = await withTags.author.create({
      data: { id, name: 'set', books: { create: [{ id: id + 1n, title: 'a', tags: tag }] } },
      include: { books: { include: { tags: true } } },
    });
    assert.equal(author.id, id);
    assert.deepEqual(books[0].id, id + 1n);
    assert.equal(books[0].tags[0].key, 'set');
    const open = frozen({
      data: { id: undefined, name: 'open', books: { create: { title: 'b' } } },
    });
    assert.ok(isId((await prisma.author.create(open)).id));
  });

  test('each of many rows gets an ID', async () => {
    const data = Array.from({ length: 1000 }, (_, n) => ({ title: `bulk ${n}` }));
    await prisma.book.createMany({ data });
    const made = await prisma.book.createManyAndReturn({ data });
    const ids = (await prisma.book.findMany({ where: { title: { startsWith: 'bulk' } } })).map(
      ({ id }) => id,
    );
    assert.equal(ids.length, 2000);
    assert.ok(ids.every(isId));
    assert.ok(made.every(({ id }) => ids.includes(id)));
    assert.equal(countDuplicates(ids.map(String)), 0);
    await prisma.book.createMany({ data: { title: 'single' } });
  });

  test('upsert fills the ID of a new row, and keeps that of an old one', async () => {
    const upsert = (name) =>
      prisma.author.upsert({
        where: { email: 'a@b' },
        create: { email: 'a@b', name, books: { create: { title: 'made' } } },
        update: { name, books: { create: { title: 'updated' } } },
        include: { books: true },
      });
    const first = await upsert('first');
    assert.ok(isId(first.id));
    const second = await upsert('second');
    assert.deepEqual([second.id, second.name], [first.id, 'second']);
    assert.deepEqual(second.books.map(({ title }) => title).sort(), ['made', 'updated']);
    assert.ok(second.books.every(({ id }) => isId(id)));
  });

  test('what is created in relations gets IDs, at any depth, of named String models too', async () => {
    const author = await withTags.author.create({
      data: {
        name: 'nested',
        profile: { create: { data: {}, notes: { createMany: { data: [{ text: 'n' }] } } } },
        books: {
          create: [
            {
              title: 'one',
              tags: {
                create: { label: 'x' },
                connectOrCreate: [{ where: { label: 'y' }, create: { label: 'y' } }],
              },
            },
          ],
          connectOrCreate: { where: { id: 1n }, create: { title: 'two' } },
        },
        members: { create: { club: { create: { name: 'a club of its own number' } } } },
      },
      include: {
        profile: { include: { notes: true } },
        books: { include: { tags: true } },
        members: { include: { club: true } },
      },
    });
    assert.ok(isId(author.profile.id) && isId(author.profile.notes[0].id));
    assert.equal(author.books.length, 2);
    const keys = author.books.flatMap(({ tags }) => tags.map(({ key }) => key));
    assert.equal(keys.length, 2);
    assert.ok(keys.every((key) => isId(BigInt(key))));
    assert.equal(author.members[0].club.number, 1, 'the database numbers what is not ours');

    const [one] = author.books.filter(({ title }) => title === 'one');
    const updated = await withTags.author.update({
      where: { id: author.id },
      data: {
        books: {
          update: {
            where: { id: one.id },
            data: { title: 'one, again', tags: { create: { label: 'z' } } },
          },
          upsert: [
            {
              where: { id: 2n },
              create: { title: 'three' },
              update: { title: 'not there' },
            },
            {
              where: { id: one.id },
              create: { title: 'not this' },
              update: { tags: { create: { label: 'w' } } },
            },
          ],
          createMany: { data: [{ title: 'four' }] },
        },
        // A single row's update, of a model that has a field called data itself.
        profile: { update: { data: { a: 1 }, notes: { create: { text: 'o' } } } },
      },
      include: {
        profile: { include: { notes: true } },
        books: { include: { tags: true }, orderBy: { title: 'asc' } },
      },
    });
    assert.deepEqual(
      updated.books.map(({ title }) => title),
      ['four', 'one, again', 'three', 'two'],
    );
    assert.ok(updated.books.every(({ id }) => isId(id)));
    assert.equal(updated.books[1].tags.length, 4);
    assert.deepEqual(updated.profile.data, { a: 1 });
    assert.equal(updated.profile.notes.length, 2);

    // The other two forms of a single row's update, and its upsert.
    const note = await prisma.note.create({ data: { text: 'p' } });
    await prisma.note.update({
      where: { id: note.id },
      data: { profile: { connect: { id: author.profile.id } } },
    });
    const wrapped = await prisma.profile.update({
      where: { id: author.profile.id },
      data: {
        author: { update: { data: { books: { create: { title: 'five' } } } } },
        notes: { upsert: { where: { id: 3n }, create: { text: 'q' }, update: {} } },
      },
      include: { author: { include: { books: true } }, notes: true },
    });
    assert.equal(wrapped.author.books.length, 5);
    assert.equal(wrapped.notes.length, 4);
    const other = await prisma.author.create({ data: { name: 'without a profile' } });
    const { profile } = await prisma.author.update({
      where: { id: other.id },
      data: { profile: { upsert: { create: { data: 1 }, update: { data: 2 } } } },
      include: { profile: true },
    });
    assert.ok(isId(profile.id));
  });

  test('rows get IDs in transactions of both kinds', async () => {
    const [a, b] = await prisma.$transaction([
      prisma.author.create({ data: { name: 'a' } }),
      prisma.author.create({ data: { name: 'b' } }),
    ]);
    assert.ok(isId(a.id) && isId(b.id) && a.id !== b.id);
    // Its limits are 2 s and 5 s by default, for which a busy machine may stop the database.
    const limits = { maxWait: 300_000, timeout: 300_000 };
    const c = await prisma.$transaction((tx) => tx.author.create({ data: { name: 'c' } }), limits);
    assert.ok(isId(c.id));
  });

  test('what does not come through the extension is refused by the database', async () => {
    const nulls = /null value in column "id"|Null constraint violation/;
    await assert.rejects(plain.author.create({ data: { name: 'x' } }), nulls);
    await assert.rejects(prisma.$executeRaw`INSERT INTO "Author" (name) VALUES ('x')`, nulls);
    await assert.rejects(
      prisma.tag.create({ data: { label: 'no model of ours' } }),
      /Null constraint violation/,
    );
  });

  test('BigInt sorts across 10^18, and so does String in base32', async () => {
    const sortedBy = async (model, key, name) => {
      const { nextId, nextIdBase32 } = crossingFlake();
      const flake = { nextId, nextIdString: nextIdBase32 };
      const extended = plain.$extends(withSnowFlake({ flake, models: ['Book', 'Tag'] }));
      const data = Array.from({ length: 20 }, (_, n) => ({ [name]: `cross ${n}` }));
      await extended[model].createMany({ data });
      const where = { [name]: { startsWith: 'cross' } };
      return (await plain[model].findMany({ where, orderBy: { [key]: 'asc' } })).map((r) => r[key]);
    };
    for (const names of ['book id title', 'tag key label']) {
      const ids = await sortedBy(...names.split(' '));
      assert.deepEqual([ids, cross(ids)], [byValue(ids), true]);
    }
  });

  test('the extended client has its types still', async () => {
    const tsc = join(__dirname, '../../node_modules/typescript/bin/tsc');
    const options =
      '--module node20 --target es2022 --strict --types node --skipLibCheck --noEmit --ignoreConfig';
    const args = [tsc, ...options.split(' '), 'types.ts'];
    await promisify(execFile)(process.execPath, args, { cwd: folder }).catch(({ stdout }) =>
      assert.fail(stdout),
    );
  });

  test('an extension that cannot do what is asked says so', () => {
    const extend = (options) => () => plain.$extends(withSnowFlake(options));
    const config = (message) => ({ code: 'ERR_SNOWFLAKE_CONFIG', message });
    assert.throws(extend({ models: ['Nobody'] }), config(/names 'Nobody', but only .* Author, /));
    for (const model of ['Club', 'Member', 'Hidden']) {
      assert.throws(extend({ models: [model] }), config(/with a BigInt or String @id/));
    }
    assert.throws(extend({ models: [] }), config(/models must be an array/));
    assert.throws(extend({ flake: {} }), config(/flake must be a SnowFlake, with nextId\(\)/));
    assert.throws(extend({ model: [] }), config(/has no 'model'/));
    assert.throws(() => withSnowFlake()({}), config(/cannot read the schema of this client/));
    const strings = { _engineConfig: { inlineSchema: 'model Tag {\n key String @id\n}' } };
    assert.throws(() => withSnowFlake()(strings), config(/no model has a BigInt @id/));
  });
});
