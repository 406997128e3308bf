'use strict';
// Columns that hold the ID of another row: @SnowFlakeColumn(), beside a relation and without one, and in an EntitySchema.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { PrimarySnowFlakeColumn, SnowFlakeColumn } = require('../../js/orm/typeorm.js');
const { decorate, nextIdString, onDatabases } = require('../support/typeorm.js');
const { refuses, rejects } = require('../support/support.js');
const typeorm = require('typeorm');

const { Column, DataSource, EntitySchema, In, Index, IsNull, JoinColumn, ManyToOne } = typeorm;

class Writer {}
class Article {}
class Credit {}

decorate(Writer, 'writer', {
  id: PrimarySnowFlakeColumn({ nextIdString }),
  name: Column('varchar'),
  articles: typeorm.OneToMany(
    () => Article,
    (article) => article.writer,
  ),
});
decorate(Article, 'article', {
  id: PrimarySnowFlakeColumn({ nextIdString }),
  title: Column('varchar'),
  writerId: [Index(), SnowFlakeColumn({ name: 'writer_id', comment: 'who wrote it' })],
  writer: [
    ManyToOne(
      () => Writer,
      (writer) => writer.articles,
    ),
    JoinColumn({ name: 'writer_id' }),
  ],
  editorId: SnowFlakeColumn({ nullable: true }),
  editor: [
    ManyToOne(() => Writer, undefined, { nullable: true }),
    JoinColumn({ name: 'editorId' }),
  ],
  // Of another service: there is no table to refer to.
  tenantId: SnowFlakeColumn({ unique: true, nullable: true }),
  ownerId: SnowFlakeColumn({ default: 7n, select: false }),
});
decorate(Credit, 'credit', {
  writerId: SnowFlakeColumn({ primary: true }),
  articleId: SnowFlakeColumn({ primary: true }),
  writer: [ManyToOne(() => Writer), JoinColumn({ name: 'writerId' })],
  role: Column('varchar'),
});

// TypeORM relates schemas to schemas only.
const Room = new EntitySchema({
  name: 'Room',
  columns: { id: PrimarySnowFlakeColumn.forSchema({ nextIdString }), name: { type: 'varchar' } },
});
const Shelf = new EntitySchema({
  name: 'Shelf',
  columns: {
    id: PrimarySnowFlakeColumn.forSchema({ nextIdString }),
    label: { type: 'varchar' },
    roomId: SnowFlakeColumn.forSchema({ nullable: true }),
  },
  relations: {
    room: {
      ...{ type: 'many-to-one', target: 'Room', nullable: true },
      joinColumn: { name: 'roomId' },
    },
  },
});

onDatabases(
  (database) => {
    const { repo } = database;
    const writer = () => repo(Writer).save({ name: 'Ada' });
    const write = async (more) => {
      const { id: writerId } = await writer();
      return await repo(Article).save({ title: 'x', writerId, ...more });
    };

    test('the foreign key has the type of the primary key, and a schema that does not change', async () => {
      const { driver } = database.source;
      const typesOf = (metadata) =>
        metadata.columns
          .filter(({ propertyName }) => /id$/i.test(propertyName))
          .map((column) => [driver.normalizeType(column), column.length]);
      const all = [Writer, Article, Credit, Room, Shelf].flatMap((one) =>
        typesOf(database.source.getMetadata(one)),
      );
      const [primary] = all;
      assert.equal(all.length, 11);
      for (const type of all) assert.deepEqual(type, primary);
      const { upQueries } = await driver.createSchemaBuilder().log();
      // For MySQL, TypeORM reads MariaDB's default of nullable columns, NULL, as a text.
      if (database.name !== 'MySQL') assert.deepEqual(upQueries, []);
      const table = await database.source.createQueryRunner().getTable('article');
      assert.ok(table.indices.some(({ columnNames }) => columnNames.join() === 'writer_id'));
      assert.equal(table.foreignKeys.length, 2);
    });

    test('a row is inserted, found, changed and reloaded by the ID of another', async () => {
      const { id: writerId } = await writer();
      for (const given of [
        { writerId },
        { writerId: BigInt(writerId) },
        { writer: { id: writerId } },
      ]) {
        const { id, ...saved } = await repo(Article).save({ title: 'x', ...given });
        const found = await repo(Article).findOneByOrFail({ id });
        assert.equal(found.writerId, writerId);
        assert.doesNotThrow(() => JSON.stringify(saved));
      }
      for (const key of [writerId, BigInt(writerId), In([writerId])]) {
        assert.equal((await repo(Article).find({ where: { writerId: key } })).length, 3);
      }
      assert.equal(await repo(Article).countBy({ writer: { id: writerId } }), 3);
      const [first] = await repo(Article).findBy({ writerId });
      const { id: other } = await writer();
      await repo(Article).update(first.id, { writerId: other });
      first.title = 'y';
      await repo(Article).save({ id: first.id, title: 'y' });
      const { writerId: changed, title } = await repo(Article).findOneByOrFail({ id: first.id });
      assert.deepEqual([changed, title], [other, 'y']);
    });

    test('relations are read both ways, loaded by ID, joined and nested', async () => {
      const { id, writerId } = await write();
      const found = await repo(Article).findOneOrFail({
        where: { id },
        relations: { writer: { articles: true } },
      });
      assert.deepEqual(
        [found.writerId, found.writer.id, found.writer.articles[0].writerId],
        [writerId, writerId, writerId],
      );
      const byId = await repo(Article).findOneOrFail({
        where: { id },
        loadRelationIds: { relations: ['writer', 'editor'] },
      });
      assert.deepEqual([byId.writer, byId.editor], [writerId, null]);
      const builder = database.source
        .createQueryBuilder(Article, 'article')
        .innerJoinAndSelect('article.writer', 'writer')
        .where('article.writerId = :writerId', { writerId });
      assert.equal((await builder.getOneOrFail()).writer.id, writerId);
      const [raw] = await builder.getRawMany();
      assert.equal(String(raw.article_writer_id), writerId);
      const ofWriter = await database.source
        .createQueryBuilder()
        .relation(Writer, 'articles')
        .of(writerId)
        .loadMany();
      assert.equal(ofWriter[0].writerId, writerId);
    });

    test('null, unique, a default and select: false are those of the column', async () => {
      const { id, ownerId } = await write({ tenantId: '9007199254740993' });
      const found = await repo(Article).findOneByOrFail({ id });
      assert.deepEqual(
        [found.editorId, found.tenantId, found.ownerId],
        [null, '9007199254740993', undefined],
      );
      assert.ok(ownerId === undefined || ownerId === '7');
      const { ownerId: selected } = await database.source
        .createQueryBuilder(Article, 'article')
        .addSelect('article.ownerId')
        .where({ id })
        .getOneOrFail();
      assert.equal(selected, '7');
      assert.ok((await repo(Article).countBy({ editorId: IsNull() })) > 0);
      await assert.rejects(write({ tenantId: '9007199254740993' }), { name: 'QueryFailedError' });
      await assert.rejects(write({ writerId: null }), { name: 'QueryFailedError' });
    });

    test('it generates no ID: a missing one is an error, and so is one of no row', async () => {
      const { identifiers } = await repo(Article)
        .insert({ title: 'x' })
        .catch(() => ({}));
      assert.equal(identifiers, undefined);
      await assert.rejects(repo(Article).insert({ title: 'x', writerId: '5' }), {
        name: 'QueryFailedError',
      });
    });

    test('a composite key of foreign keys is saved, found and saved again', async () => {
      const { id: articleId, writerId } = await write();
      await repo(Credit).save({ articleId, writerId, role: 'author' });
      await repo(Credit).save({ articleId, writerId: BigInt(writerId), role: 'editor' });
      const [credit, ...others] = await repo(Credit).find({ relations: { writer: true } });
      assert.deepEqual(others, []);
      assert.deepEqual(
        [credit.articleId, credit.writerId, credit.writer.id, credit.role],
        [articleId, writerId, writerId, 'editor'],
      );
    });

    test('an EntitySchema has both columns', async () => {
      const { id: roomId } = await repo(Room).save({ name: 'north' });
      const { id } = await repo(Shelf).save({ label: 'a', room: { id: roomId } });
      const inserted = { label: 'b', roomId };
      await repo(Shelf).insert(inserted);
      assert.ok(BigInt(inserted.id) > BigInt(id));
      const found = await repo(Shelf).find({
        ...{ where: { roomId: BigInt(roomId) }, relations: { room: true }, order: { id: 'ASC' } },
      });
      assert.deepEqual(
        found.map((shelf) => [shelf.label, shelf.roomId, shelf.room.id]),
        [
          ['a', roomId, roomId],
          ['b', roomId, roomId],
        ],
      );
      await rejects(repo(Shelf).save({ label: 'c', roomId: 5 }), 'ERR_SNOWFLAKE_INVALID_ID');
    });

    test('what is no ID is refused, with entity and property', async () => {
      for (const id of ['', 'abc', '007', 5, -1n]) {
        for (const attempt of [
          () => repo(Article).save({ title: 'x', writerId: id }),
          () => repo(Article).insert({ title: 'x', writerId: id }),
          () => repo(Article).findBy({ writerId: id }),
        ]) {
          const { message } = await rejects((async () => attempt())(), 'ERR_SNOWFLAKE_INVALID_ID');
          assert.match(message, /^Article\.writer/);
        }
      }
    });

    test('a property of another type, and a relation to what has no IDs, are refused at the start', async () => {
      const open = async (...entities) => {
        const url = database.server?.url;
        const source = new DataSource({ ...database.options, url, entities });
        await source.initialize();
        await source.destroy();
      };
      const one = decorate(class One {}, 'one', {
        id: PrimarySnowFlakeColumn({ nextIdString }),
        twoId: SnowFlakeColumn(),
      });
      for (const type of [Number, BigInt, Boolean, Date, Array]) {
        Reflect.defineMetadata('design:type', type, one.prototype, 'twoId');
        const { message } = await rejects(open(one), 'ERR_SNOWFLAKE_CONFIG');
        assert.match(message, /^One\.twoId is declared as an? .* twoId!: string$/);
      }
      const referring = (type) => {
        const two = decorate(class Two {}, 'two', {
          id: typeorm.PrimaryColumn(type),
        });
        const three = decorate(class Three {}, 'three', {
          id: PrimarySnowFlakeColumn({ nextIdString }),
          twoId: SnowFlakeColumn(),
          two: [ManyToOne(() => two), JoinColumn({ name: 'twoId' })],
        });
        return open(two, three);
      };
      for (const type of ['int', 'varchar']) {
        const { message } = await rejects(referring(type), 'ERR_SNOWFLAKE_CONFIG');
        const start = 'Three.twoId is a column of IDs, and refers to Two.id, which has none';
        assert.ok(message.startsWith(start), message);
        assert.match(message, new RegExp(`${type}.*@PrimarySnowFlakeColumn\\(\\).*@Column\\(\\)`));
      }
      await referring('bigint');
    });
  },
  [Writer, Article, Credit, Room, Shelf],
);

test('options that a column of IDs has not, and wrong ones, are refused', () => {
  const { message } = refuses(() => SnowFlakeColumn({ type: 'int' }), 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /SnowFlakeColumn\(\) has no 'type'/);
  for (const make of [SnowFlakeColumn, SnowFlakeColumn.forSchema]) {
    for (const options of [{ nullable: 1 }, { nulable: true }, { nextIdString }, null, 5]) {
      refuses(() => make(options), 'ERR_SNOWFLAKE_CONFIG');
    }
    for (const value of [5, 'x', {}, -1n]) {
      refuses(() => make({ default: value }), 'ERR_SNOWFLAKE_INVALID_ID');
    }
  }
  for (const make of [SnowFlakeColumn, SnowFlakeColumn.forSchema, PrimarySnowFlakeColumn]) {
    for (const options of [{ name: 5 }, { name: '' }, { name: {} }, { comment: 5 }]) {
      refuses(() => make(options), 'ERR_SNOWFLAKE_CONFIG');
    }
  }
  const { primary, default: value } = SnowFlakeColumn.forSchema({ primary: true, default: 5n });
  assert.deepEqual([primary, value], [true, '5']);
});
