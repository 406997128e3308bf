'use strict';
// Entities with snowdrift's IDs, and the databases that they are tested on.

const { dirname, join } = require('node:path');
const { after, before, describe } = require('node:test');

const { PrimarySnowFlakeColumn } = require('../../js/orm/typeorm.js');
const typeorm = require('typeorm');
const { gate } = require('./amount.js');
const { Server, missing } = require('./lease/servers.js');
const { missingOrm, modulesOf } = require('./installed.js');
const { SnowFlake } = require('./support.js');

const { Column, DataSource, Entity, JoinColumn, JoinTable, ManyToOne, RelationId } = typeorm;

/** The instance that all entities draw from. A test may set another one. */
const drawn = { flake: new SnowFlake({ datacenterId: 2, workerId: 2 }) };
const nextIdString = () => drawn.flake.nextIdString();

/** Applies decorators to a class as TypeScript does. */
function decorate(Class, name, decorators, options) {
  for (const [property, ...each] of Object.entries(decorators).map(([key, d]) => [key, d].flat())) {
    for (const decorator of each) decorator(Class.prototype, property);
  }
  Entity(name, options)(Class);
  return Class;
}

class Author {}
class Book {}
class Tag {}
class Animal {}
class Cat extends Animal {}

decorate(Author, 'author', {
  id: PrimarySnowFlakeColumn({ nextIdString }),
  name: Column('varchar'),
  email: Column('varchar', { nullable: true, unique: true }),
  rank: Column('int', { default: 100 }),
  books: typeorm.OneToMany(
    () => Book,
    (book) => book.author,
    { cascade: true },
  ),
});
decorate(Book, 'book', {
  id: PrimarySnowFlakeColumn({ nextIdString }),
  title: Column('varchar'),
  authorId: Column('bigint', { name: 'author_id', nullable: true }),
  author: [
    ManyToOne(
      () => Author,
      (author) => author.books,
      { nullable: true },
    ),
    JoinColumn({ name: 'author_id' }),
  ],
  editor: ManyToOne(() => Author, undefined, { nullable: true }),
  tags: [typeorm.ManyToMany(() => Tag, undefined, { cascade: true }), JoinTable()],
  tagIds: RelationId((book) => book.tags),
});
decorate(Tag, 'tag', { id: PrimarySnowFlakeColumn({ nextIdString }), label: Column('varchar') });
decorate(Animal, 'animal', {
  id: PrimarySnowFlakeColumn({ nextIdString }),
  name: Column('varchar'),
});
typeorm.TableInheritance({ column: { type: 'varchar', name: 'kind' } })(Animal);
decorate(Cat, undefined, { lives: Column('int', { nullable: true }) });
typeorm.ChildEntity()(Cat);

const entities = [Author, Book, Tag, Animal, Cat];

const DATABASES = [
  {
    name: 'PostgreSQL',
    skip: missing('postgres'),
    options: { type: 'postgres' },
    start: 'postgres',
    rounding: { set: { parseInt8: true }, line: 'parseInt8: false' },
  },
  {
    name: 'MariaDB',
    skip: gate ?? missing('mysql'),
    options: { type: 'mariadb', connectTimeout: 0 },
    start: 'mysql',
    rounding: { set: { supportBigNumbers: false }, line: 'supportBigNumbers: true' },
  },
  // MySQL has no RETURNING; MariaDB's server speaks its protocol.
  {
    name: 'MySQL',
    skip: gate ?? missing('mysql'),
    options: { type: 'mysql', connectTimeout: 0 },
    start: 'mysql',
  },
  { name: 'SQLite, by sql.js', options: { type: 'sqljs' } },
  {
    name: 'SQLite, by better-sqlite3',
    skip: missingOrm('better-sqlite3'),
    options: {
      type: 'better-sqlite3',
      database: ':memory:',
      // Where this line is in an application, `driver` is left out.
      get driver() {
        return require(join(modulesOf('better-sqlite3'), 'better-sqlite3'));
      },
    },
  },
];

const manifest = join(dirname(require.resolve('typeorm')), 'package.json');
const version = `TypeORM ${require(manifest).version}`;

/**
 * Runs the same tests on each database.
 * @param tests gets an opened database: its `source`, `repo(Class)`, and what DATABASES has
 * @param others entities to open instead of those of this file
 */
function onDatabases(tests, others = entities) {
  for (const database of DATABASES) {
    describe(`${database.name}, ${version}`, { skip: database.skip }, () => {
      const opened = {
        ...database,
        repo: (Class) => opened.source.getRepository(Class),
      };
      before(async () => {
        const server = database.start && (await Server.start(database.start));
        opened.server = server;
        opened.source = new DataSource({
          ...database.options,
          ...(server ? { url: server.url } : {}),
          entities: others,
          synchronize: true,
        });
        await opened.source.initialize();
      });
      after(async () => {
        if (opened.source?.isInitialized) await opened.source.destroy();
        await opened.server?.stop();
      });
      tests(opened);
    });
  }
}

module.exports = {
  ...{ Animal, Author, Book, Cat, Tag },
  ...{ DATABASES, decorate, drawn, entities, nextIdString, onDatabases },
};
