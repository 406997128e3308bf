'use strict';
// snowdrift/typeorm on real databases: entities, relations and every way to insert, with IDs above 2^53,
// where a number would be rounded.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { countDuplicates } = require('../support/support.js');
const { Animal, Author, Book, Cat, Tag, ...support } = require('../support/typeorm.js');
const { DataSource, In } = require('typeorm');

const { entities, nextIdString, onDatabases } = support;
const isId = (id) => typeof id === 'string' && BigInt(id) > 2n ** 53n;

onDatabases((database) => {
  const { repo, rounding } = database;

  test('an instance is inserted once, reloaded, found, changed and removed', async () => {
    const author = Object.assign(new Author(), { name: 'Ada' });
    await database.source.manager.save(author);
    assert.ok(isId(author.id), author.id);
    const { id } = author;
    for (const key of [id, BigInt(id)]) {
      const found = await repo(Author).findOneBy({ id: key });
      assert.deepEqual([found?.id, found?.name], [id, 'Ada']);
      assert.equal((await repo(Author).findBy({ id: In([key]) })).length, 1);
    }
    const loaded = await repo(Author).findOneByOrFail({ id });
    loaded.name = 'Ada L.';
    await repo(Author).save(loaded);
    assert.equal(loaded.id, id);
    await repo(Author).save({ id, name: 'Countess' });
    await repo(Author).save({ id: BigInt(id), name: 'Lovelace' });
    assert.equal(await repo(Author).count(), 1, 'no second row');
    assert.equal((await repo(Author).findOneByOrFail({ id })).name, 'Lovelace');
    await repo(Author).delete(id);
    assert.equal(await repo(Author).count(), 0);
  });

  test('a number is refused, in whatever it comes', async () => {
    const id = 2 ** 60;
    for (const attempt of [
      () => repo(Author).save({ id, name: 'x' }),
      () => repo(Author).insert({ id, name: 'x' }),
      () => repo(Author).findOneBy({ id }),
    ]) {
      await assert.rejects(attempt(), /the number 1152921504606847000, which may be rounded/);
    }
    assert.equal(await repo(Author).count(), 0);
  });

  test('every way to insert fills the ID, and leaves one that was set', async () => {
    const set = nextIdString();
    const made = [
      await repo(Tag).save({ label: 'plain' }),
      await repo(Tag).save(repo(Tag).create({ label: 'created' })),
      ...(await repo(Tag).save([{ label: 'a' }, { label: 'b' }])),
      await repo(Tag).save({ id: set, label: 'set' }),
    ];
    const inserted = { label: 'inserted' };
    const { identifiers } = await repo(Tag).insert(inserted);
    assert.equal(identifiers[0].id, inserted.id);
    await repo(Tag).insert([{ label: 'c' }, { label: 'd' }, { id: nextIdString(), label: 'e' }]);
    const builder = () => database.source.createQueryBuilder().insert().into(Tag);
    await builder().values({ label: 'builder' }).execute();
    await builder()
      .values([{ label: 'f' }, { label: 'g' }])
      .execute();
    const all = await repo(Tag).find();
    assert.equal(all.length, 12);
    assert.ok(all.every(({ id }) => isId(id)));
    assert.equal(countDuplicates(all.map(({ id }) => id)), 0);
    assert.equal(all.find(({ label }) => label === 'set').id, set);
    assert.ok(made.every(({ id }) => isId(id)));
  });

  test('cascades and relations carry IDs as strings, both ways', async () => {
    const author = await repo(Author).save({
      name: 'Cascade',
      books: [
        { title: 'one', tags: [{ label: 'x' }] },
        { title: 'two', tags: [] },
      ],
    });
    assert.ok(author.books.every(({ id }) => isId(id)));
    const loaded = await repo(Author).findOneOrFail({
      where: { id: author.id },
      relations: { books: { tags: true } },
    });
    assert.equal(loaded.books.length, 2);
    const one = loaded.books.find(({ title }) => title === 'one');
    assert.ok(isId(one.id) && isId(one.tags[0].id));
    const [book] = await repo(Book).find({
      where: { author: { id: author.id }, title: 'one' },
      relations: { author: true },
    });
    assert.equal(book.author.id, author.id);
    book.title = 'one, again';
    await repo(Book).save(book);
    assert.equal(await repo(Book).count(), 2);
    const later = await repo(Book).save({ title: 'three', author: { id: author.id } });
    const { author: of } = await repo(Book).findOneOrFail({
      where: { id: later.id },
      relations: { author: true },
    });
    assert.equal(of.id, author.id);
  });

  test('entities that inherit get IDs', async () => {
    const cat = await repo(Cat).save({ name: 'Tom', lives: 9 });
    const animal = await repo(Animal).save({ name: 'Other' });
    assert.ok(isId(cat.id) && isId(animal.id));
    assert.equal((await repo(Animal).findOneByOrFail({ id: cat.id })).constructor, Cat);
  });

  test('1,000 rows at once, and a partial selection invents no ID', async () => {
    const rows = Array.from({ length: 1000 }, (_, n) => ({ title: `bulk ${n}` }));
    await repo(Book).insert(rows);
    const saved = await repo(Book).save(rows.map(({ title }) => ({ title: `${title} saved` })));
    const ids = [...rows, ...saved].map(({ id }) => id);
    assert.equal(countDuplicates(ids), 0);
    const found = await repo(Book).findBy({ id: In(ids.slice(0, 500)) });
    assert.equal(found.length, 500);
    const [partial] = await repo(Book).find({ select: { title: true }, take: 1 });
    assert.equal(partial.id, undefined);
  });

  if (rounding === undefined) return;
  test('an option that reads IDs as numbers is refused when it starts', async () => {
    const rounds = new DataSource({
      ...database.options,
      url: database.server.url,
      entities,
      ...rounding.set,
    });
    await assert.rejects(rounds.initialize(), ({ code, message }) => {
      assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, new RegExp(`Set ${rounding.line} in the options of the DataSource`));
      return true;
    });
    // TypeORM has set it for all connections of the process.
    require('pg').defaults.parseInt8 = false;
  });
});
