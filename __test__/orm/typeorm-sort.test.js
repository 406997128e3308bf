'use strict';
// IDs of TypeORM's entities sort as numbers while they grow from 18 to 19 digits, and are read exactly: by SQLite's
// drivers, in relations and in raw results.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { byValue, cross, crossingFlake } = require('../support/crossing.js');
const { assertExact, assertRounded, oddFlake } = require('../support/exact.js');
const { Author, Book, Tag, ...support } = require('../support/typeorm.js');
const { Between, DataSource, LessThan, MoreThan } = require('typeorm');

const { drawn, entities, onDatabases } = support;

const idsOf = (rows) => rows.map(({ id }) => id);

/** In SQL: all IDs of a query as JSON, as they are and as texts. */
const AGGREGATES = {
  postgres: ['json_agg(id)', 'json_agg(id::text)'],
  mysql: ['JSON_ARRAYAGG(id)', 'JSON_ARRAYAGG(CAST(id AS CHAR))'],
  sqlite: ['json_group_array(id)', 'json_group_array(CAST(id AS TEXT))'],
};

/** Its statements ignore safeIntegers(), as other packages with this interface may. */
function roundingDriver(Database) {
  // TypeORM before 0.3.29 calls it without `new`.
  return function open(...values) {
    const database = new Database(...values);
    const { prepare } = database;
    database.prepare = (sql) => {
      const statement = prepare.call(database, sql);
      statement.safeIntegers = () => statement;
      return statement;
    };
    return database;
  };
}

onDatabases((database) => {
  const { repo } = database;

  test('rows sort, page and are found across 10^18', async () => {
    drawn.flake = crossingFlake();
    const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
    const made = [];
    for (const name of names)
      made.push(await repo(Author).save({ name, books: [{ title: name }] }));
    const ids = idsOf(made);
    assert.ok(cross(ids));
    assert.deepEqual(ids, byValue(ids));

    const sorted = await repo(Author).find({ order: { id: 'ASC' } });
    assert.deepEqual(idsOf(sorted), ids);
    const last = ids.findIndex(({ length }) => length === 19) - 1;
    // Polls after the newest, as a cursor does.
    const newer = await repo(Author).findBy({ id: MoreThan(ids[last]) });
    assert.deepEqual(byValue(idsOf(newer)), ids.slice(last + 1));
    const around = await repo(Author).findBy({ id: Between(ids[last - 2], ids[last + 3]) });
    assert.equal(around.length, 6);
    assert.equal(await repo(Author).countBy({ id: LessThan(BigInt(ids[last + 1])) }), last + 1);
    for (const id of [ids[last], ids[last + 1]]) {
      const [author] = await repo(Author).find({ where: { id }, relations: { books: true } });
      assert.equal(author.books[0].title, author.name);
      assert.equal((await repo(Book).findOneBy({ author: { id } })).authorId, id);
    }
    // Joins with a limit read the IDs of a page first.
    const [page, total] = await repo(Author).findAndCount({
      relations: { books: true },
      order: { id: 'DESC' },
      skip: last,
      take: 4,
    });
    assert.equal(total, ids.length);
    assert.deepEqual(idsOf(page), ids.toReversed().slice(last, last + 4));
    assert.ok(page.every(({ books }) => books.length === 1));
  });

  test('raw parameters may be strings or bigints, and raw results are exact', async () => {
    const ids = byValue(idsOf(await repo(Author).find()));
    const [middle] = ids.filter(({ length }) => length === 19);
    const builder = () => repo(Author).createQueryBuilder('author');
    for (const id of [middle, BigInt(middle)]) {
      assert.equal((await builder().where('author.id = :id', { id }).getOne()).id, middle);
      const above = builder().where('author.id >= :id', { id }).orderBy('author.id').getMany();
      assert.deepEqual(idsOf(await above), ids.slice(ids.indexOf(middle)));
    }
    const raw = await builder().select('author.id', 'id').orderBy('author.id').getRawMany();
    assert.deepEqual(
      raw.map(({ id }) => String(id)),
      ids,
    );
    const { max } = await builder().select('MAX(author.id)', 'max').getRawOne();
    assert.equal(max, ids.at(-1));
    // A number of another column is a number, as ever.
    const [{ rank }] = await builder().select('author.rank', 'rank').take(1).getRawMany();
    assert.equal(rank, 100);
    assert.equal(await repo(Author).count(), 20);
  });

  test('relations are exact, by joins and by queries, and so are relation IDs and raw results', async () => {
    drawn.flake = oddFlake();
    const { source } = database;
    await repo(Author).delete({ name: 'nested' });
    const author = await repo(Author).save({
      name: 'nested',
      books: [{ title: 'x' }, { title: 'y' }],
    });
    const [first, second] = author.books;
    first.tags = [await repo(Tag).save({ label: 'a' }), await repo(Tag).save({ label: 'b' })];
    first.editor = author;
    await repo(Book).save(first);
    const tags = idsOf(first.tags);
    const all = [author.id, first.id, second.id, ...tags];

    const where = { id: author.id };
    const relations = { books: { author: true, editor: true, tags: true } };
    for (const relationLoadStrategy of ['join', 'query']) {
      const options = { where, relations, relationLoadStrategy };
      assertExact(await repo(Author).find(options), ...all);
      assertExact(await repo(Author).findOne(options), ...all);
      assertExact(await repo(Author).find({ ...options, take: 1 }), ...all);
    }
    const book = { where: { id: first.id } };
    assertExact(await repo(Book).find(book), author.id, first.id, ...tags);
    assertExact(
      await repo(Book).find({ ...book, loadRelationIds: true }),
      author.id,
      first.id,
      ...tags,
    );
    const joined = repo(Book)
      .createQueryBuilder('book')
      .leftJoinAndSelect('book.author', 'author')
      .leftJoinAndSelect('book.tags', 'tag')
      .where(book.where);
    assertExact(await joined.getMany(), author.id, first.id, ...tags);
    assertExact(await joined.getRawMany(), author.id, first.id, ...tags);
    assertExact((await joined.getRawAndEntities()).raw, author.id, first.id, ...tags);

    const greatest = repo(Tag).createQueryBuilder('tag').where({ label: 'b' });
    assertExact(await greatest.select('MAX(tag.id)', 'max').getRawMany(), tags[1]);
    assertRounded(await repo(Tag).maximum('id', { label: 'b' }));
    assertRounded(await repo(Tag).minimum('id', { label: 'b' }));

    const { type } = source.options;
    const [numbers, texts] = AGGREGATES[type === 'mariadb' ? 'mysql' : type] ?? AGGREGATES.sqlite;
    const aggregate = async (what) => {
      const [{ all }] = await source.query(
        `SELECT ${what} AS ${source.driver.escape('all')} FROM tag WHERE label = 'b'`,
      );
      return typeof all === 'string' ? JSON.parse(all) : all;
    };
    assertRounded(await aggregate(numbers));
    assertExact(await aggregate(texts), tags[1]);
  });

  test('a driver of SQLite that rounds integers is refused when it starts', async () => {
    const { type, driver } = database.options;
    if (type !== 'better-sqlite3') return;
    const options = { type, database: ':memory:', driver: roundingDriver(driver), entities };
    await assert.rejects(new DataSource(options).initialize(), ({ code, message }) => {
      assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
      assert.match(message, /reads 9007199254740993 as 9007199254740992/);
      return true;
    });
  });
});
