'use strict';
// What snowdrift/typeorm reports and refuses: the IDs of rows that an insert met, bigints as strings, and values
// that are no IDs.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { PrimarySnowFlakeColumn } = require('../../js/orm/typeorm.js');
const { Author, Book, Tag, decorate, nextIdString, onDatabases } = require('../support/typeorm.js');
const { Column, DataSource, In, JoinColumn, ManyToOne } = require('typeorm');

const email = (n) => `${n}@example.org`;

onDatabases((database) => {
  const { repo } = database;
  const idOf = async (address) => (await repo(Author).findOneByOrFail({ email: address })).id;
  const insertInto = (Class) => database.source.createQueryBuilder().insert().into(Class);

  test('upsert reports the ID of the row that it met, and a foreign key by it holds', async () => {
    const [first] = [{ email: email(1), name: 'first' }];
    await repo(Author).upsert(first, ['email']);
    const stored = await idOf(email(1));
    assert.equal(first.id, stored);
    const again = { email: email(1), name: 'second' };
    const { identifiers } = await repo(Author).upsert(again, ['email']);
    assert.equal(await idOf(email(1)), stored);
    assert.deepEqual([again.id, identifiers], [stored, [{ id: stored }]]);
    await repo(Book).insert({ title: 'by it', author: { id: again.id } });
    // Upserted once more, it does not change the row's ID.
    again.name = 'third';
    await repo(Author).upsert(again, ['email']);
    const row = await repo(Author).findOneByOrFail({ email: email(1) });
    assert.deepEqual([row.id, row.name], [stored, 'third']);
  });

  test('upsert of many tells the rows apart, new and met, in any order', async () => {
    await repo(Author).upsert(
      [10, 11, 12].map((n) => ({ email: email(n), name: 'old' })),
      ['email'],
    );
    const rows = [13, 12, 14, 10, 11].map((n) => ({ email: email(n), name: `new ${n}` }));
    const { identifiers, generatedMaps } = await repo(Author).upsert(rows, ['email']);
    for (const [at, row] of rows.entries()) {
      const id = await idOf(row.email);
      assert.deepEqual(
        [row.id, identifiers[at], row.name],
        [id, { id }, `new ${row.email.slice(0, 2)}`],
      );
      assert.equal(generatedMaps[at].id ?? id, id);
      assert.equal(row.rank, 100);
    }
  });

  test('upsert that leaves equal rows alone reports their IDs, too', async () => {
    // Only PostgreSQL has this option.
    if (database.name !== 'PostgreSQL') return;
    const options = { conflictPaths: ['email'], skipUpdateIfNoValuesChanged: true };
    const rows = () => [20, 21, 22].map((n) => ({ email: email(n), name: 'same' }));
    await repo(Author).upsert([rows()[1]], options);
    const many = rows();
    await repo(Author).upsert(many, options);
    for (const { email: address, id } of many) assert.equal(id, await idOf(address));
  });

  test('600 rows are upserted, of which 300 are there', async () => {
    const rows = (count) =>
      Array.from({ length: count }, (_, n) => ({ email: email(`bulk-${n}`), name: 'x' }));
    await repo(Author).insert(rows(300));
    const many = rows(600);
    await repo(Author).upsert(many, ['email']);
    const ids = new Map((await repo(Author).find()).map(({ email: address, id }) => [address, id]));
    assert.deepEqual(
      many.map(({ id }) => id),
      many.map(({ email: address }) => ids.get(address)),
    );
  });

  test('RETURNING tells IDs without a query of its own, but not if its order is another', async () => {
    const { source } = database;
    if (!source.driver.isReturningSqlSupported('insert')) return;
    const runner = source.createQueryRunner();
    const { query } = runner;
    let queries = 0;
    let reverses = false;
    runner.query = async (...args) => {
      queries++;
      const result = await query.apply(runner, args);
      if (reverses && args[0].startsWith('INSERT')) result.raw.reverse();
      return result;
    };
    try {
      const upsert = async (...numbers) => {
        const rows = numbers.map((n) => ({ email: email(n), name: 'x' }));
        await runner.manager.upsert(Author, rows, ['email']);
        for (const row of rows) assert.equal(row.id, await idOf(row.email));
      };
      await upsert(25, 26);
      await upsert(26, 25, 27);
      assert.equal(queries, 2);
      reverses = true;
      await upsert(25, 28, 29);
    } finally {
      await runner.release();
    }
  });

  test('the ID is left out where only the database knows which row was met', async () => {
    if (!['MariaDB', 'MySQL'].includes(database.name)) return;
    await repo(Author).insert({ email: 'case@example.org', name: 'there' });
    const row = { email: 'CASE@example.org', name: 'met' };
    await insertInto(Author).values(row).orUpdate(['name'], ['email']).execute();
    const { id, name } = await repo(Author).findOneByOrFail({ email: row.email });
    assert.equal(name, 'met');
    assert.equal(row.id, database.name === 'MariaDB' ? id : undefined);
  });

  test('orIgnore reports no ID for a row that it met, and the IDs of the others', async () => {
    await repo(Author).insert({ email: email(30), name: 'there' });
    const rows = [31, 30, 32].map((n) => ({ email: email(n), name: 'ignored?' }));
    const seen = [];
    database.source.subscribers.push({ afterInsert: ({ entity }) => seen.push(entity.id) });
    const { identifiers, raw } = await insertInto(Author).values(rows).orIgnore().execute();
    database.source.subscribers.pop();
    if (database.source.driver.isReturningSqlSupported('insert')) {
      assert.deepEqual(seen, [rows[0].id, undefined, rows[2].id]);
      assert.equal(raw.length, 2);
    }
    assert.equal((await repo(Author).findOneByOrFail({ email: email(30) })).name, 'there');
    assert.deepEqual(
      rows.map(({ id }) => id),
      [await idOf(email(31)), undefined, await idOf(email(32))],
    );
    assert.deepEqual(identifiers, [{ id: rows[0].id }, undefined, { id: rows[2].id }]);
  });

  test('orIgnore keeps an ID that the caller has set, if it is in the table', async () => {
    const set = { id: nextIdString(), email: email(40), name: 'set' };
    const insert = () =>
      insertInto(Author)
        .values({ ...set })
        .orIgnore()
        .execute();
    assert.deepEqual((await insert()).identifiers, [{ id: set.id }]);
    assert.deepEqual((await insert()).identifiers, [{ id: set.id }]);
    const other = { id: nextIdString(), email: email(40), name: 'other' };
    const { identifiers } = await insertInto(Author).values(other).orIgnore().execute();
    assert.deepEqual(identifiers, [undefined]);
  });

  test('AfterInsert listeners get the ID of the row', async () => {
    await repo(Author).insert({ email: email(50), name: 'there' });
    const seen = [];
    const subscriber = { afterInsert: ({ entity }) => seen.push(entity.id) };
    database.source.subscribers.push(subscriber);
    await repo(Author).upsert({ email: email(50), name: 'met' }, ['email']);
    database.source.subscribers.pop();
    assert.deepEqual(seen, [await idOf(email(50))]);
  });

  test('after an upsert that failed, the entity has no ID that was drawn for it', async () => {
    await repo(Author).upsert({ email: email(60), name: 'there' }, ['email']);
    const id = await idOf(email(60));
    const row = { email: email(60), name: null };
    await assert.rejects(repo(Author).upsert(row, ['email']));
    assert.equal(row.id, undefined);
    row.name = 'again';
    await repo(Author).upsert(row, ['email']);
    assert.equal(await idOf(email(60)), id);
  });

  test('within a transaction, and with other options of the builder, it is the same', async () => {
    await repo(Author).insert({ email: email(70), name: 'there' });
    const id = await idOf(email(70));
    await database.source.transaction(async (manager) => {
      const row = { email: email(70), name: 'met' };
      await manager.upsert(Author, row, ['email']);
      assert.equal(row.id, id);
      await manager.insert(Book, { title: 'in it', author: row });
    });
    const update = (row) => insertInto(Author).values(row).orUpdate(['name'], ['email']);
    const canReturn = database.source.driver.isReturningSqlSupported('insert');
    for (const prepare of [
      (builder) => builder.useTransaction(true),
      (builder) => builder.updateEntity(false),
      (builder) => (canReturn ? builder.returning(['name']) : builder),
      (builder) => (canReturn ? builder.returning('name') : builder),
    ]) {
      const row = { email: email(70), name: `with ${prepare}` };
      await prepare(update(row)).execute();
      assert.equal(row.id, id);
    }
  });

  test('a bigint becomes a string in whatever is saved', async () => {
    const id = BigInt(nextIdString());
    const text = String(id);
    const saved = await repo(Tag).save({ id, label: 'new' });
    const unchanged = await repo(Tag).save({ id, label: 'new' });
    const changed = await repo(Tag).save(Object.assign(new Tag(), { id, label: 'changed' }));
    const inserted = { id: id + 1n, label: 'inserted' };
    const { identifiers } = await repo(Tag).insert(inserted);
    assert.deepEqual(JSON.parse(JSON.stringify([saved.id, unchanged.id, changed.id])), [
      text,
      text,
      text,
    ]);
    assert.deepEqual([inserted.id, identifiers], [String(id + 1n), [{ id: String(id + 1n) }]]);
    const author = await repo(Author).save({ name: 'of books' });
    for (const given of [
      { author: { id: BigInt(author.id) } },
      { authorId: BigInt(author.id) },
      { editor: { id: BigInt(author.id) } },
    ]) {
      const book = await repo(Book).save({ title: 'x', ...given });
      assert.doesNotThrow(() => JSON.stringify(book));
      const where =
        'editor' in given ? { editor: { id: BigInt(author.id) } } : { authorId: author.id };
      assert.ok(await repo(Book).findOneBy({ id: book.id, ...where }));
    }
    const where = { id };
    await database.source.createQueryBuilder(Tag, 'tag').where(where).getOneOrFail();
    assert.equal(where.id, id, "a condition is the caller's");
  });

  test('what is no ID is refused, with entity and property', async () => {
    const count = () => Promise.all([repo(Tag).count(), repo(Book).count()]);
    const before = await count();
    const invalid = [
      '',
      'abc',
      '-5',
      '007',
      '1e3',
      '9223372036854775808',
      '１',
      -1n,
      2n ** 63n,
      true,
    ];
    for (const id of invalid) {
      for (const [attempt, name] of [
        [() => repo(Tag).save({ id, label: 'x' }), 'tag.id|Tag.id'],
        [() => repo(Tag).insert({ id, label: 'x' }), 'Tag.id'],
        [() => repo(Tag).upsert({ id, label: 'x' }, ['id']), 'Tag.id'],
        [() => insertInto(Tag).values({ id, label: 'x' }).execute(), 'Tag.id'],
        [() => repo(Tag).findOneBy({ id }), 'Tag.id'],
        [() => repo(Tag).findBy({ id: In([id]) }), 'Tag.id'],
        [() => repo(Tag).delete({ id }), 'Tag.id'],
        [() => repo(Book).insert({ title: 'x', authorId: id }), 'Book.author'],
        [() => repo(Book).insert({ title: 'x', editor: { id } }), 'Book.editor|Author.id'],
        [() => repo(Book).findBy({ authorId: id }), 'Book.author'],
      ]) {
        // TypeORM before 0.3.29 throws some of them.
        await assert.rejects(
          async () => attempt(),
          ({ code, message }) => {
            assert.equal(code, 'ERR_SNOWFLAKE_INVALID_ID', message);
            assert.match(message, new RegExp(`^(${name})`));
            return true;
          },
        );
      }
    }
    assert.deepEqual(await count(), before);
    for (const id of ['0', '9223372036854775807', 7n]) await repo(Tag).save({ id, label: 'edge' });
    assert.equal((await repo(Tag).findOneByOrFail({ id: 7n })).id, '7');
    assert.deepEqual(await count(), [before[0] + 3, before[1]]);
  });

  test('a nextIdString that returns no ID is refused, and inserts no row', async () => {
    for (const [returned, shown] of [
      [undefined, 'undefined'],
      [null, 'null'],
      [Promise.resolve('1'), 'Promise'],
      [1, '1'],
    ]) {
      const declared = decorate(class NoIds {}, 'no_ids', {
        id: PrimarySnowFlakeColumn({ nextIdString: () => returned }),
      });
      const source = await new DataSource({
        ...database.options,
        url: database.server?.url,
        entities: [declared],
        synchronize: true,
      }).initialize();
      try {
        await assert.rejects(source.getRepository(declared).save({}), ({ code, message }) => {
          assert.equal(code, 'ERR_SNOWFLAKE_INVALID_ID', message);
          assert.match(
            message,
            new RegExp(`NoIds\\.id must return an ID as a string; it.*${shown}`),
          );
          return true;
        });
        assert.equal(await source.getRepository(declared).count(), 0);
      } finally {
        await source.destroy();
      }
    }
  });

  test('a property declared as a number or a bigint is refused when it starts', async () => {
    for (const [type, property] of [Number, BigInt].flatMap((one) => [
      [one, 'id'],
      [one, 'authorId'],
    ])) {
      const declared = decorate(class {}, 'declared', {
        id: PrimarySnowFlakeColumn({ nextIdString }),
        authorId: Column('bigint'),
        author: [ManyToOne(() => declared), JoinColumn({ name: 'authorId' })],
      });
      Reflect.defineMetadata('design:type', type, declared.prototype, property);
      const source = new DataSource({
        ...database.options,
        url: database.server?.url,
        entities: [declared],
      });
      await assert.rejects(source.initialize(), ({ code, message }) => {
        assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', message);
        assert.match(
          message,
          new RegExp(
            `${property} is declared as a ${type.name.toLowerCase()},.*${property}!: string`,
          ),
        );
        return true;
      });
      Reflect.defineMetadata('design:type', String, declared.prototype, property);
      const fixed = new DataSource({
        ...database.options,
        url: database.server?.url,
        entities: [declared],
      });
      await fixed.initialize();
      await fixed.destroy();
    }
  });
});
