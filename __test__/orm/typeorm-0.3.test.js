'use strict';
// All tests of snowdrift/typeorm, with the last version of TypeORM 0.3; and node-sqlite3, which only that has.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { test } = require('node:test');

const { missingOrm, modulesOf, replacePackage } = require('../support/installed.js');

const skip = missingOrm('typeorm-0.3') ?? missingOrm('better-sqlite3');
if (skip) {
  test('TypeORM 0.3', { skip }, () => {});
} else {
  replacePackage('typeorm', 'typeorm-0.3');
  require('./typeorm.test.js');
  require('./typeorm-foreign.test.js');
  require('./typeorm-ids.test.js');
  require('./typeorm-migration.test.js');
  require('./typeorm-sort.test.js');

  test('a driver of SQLite that can only round gets IDs as text, exactly', async () => {
    const { Author, Book, Tag, decorate, entities } = require('../support/typeorm.js');
    const { SnowFlakeColumn, PrimarySnowFlakeColumn } = require('../../js/orm/typeorm.js');
    const { DataSource } = require('typeorm');
    const options = { type: 'sqlite', database: ':memory:', driver: nodeSqlite3() };
    const Note = decorate(class Note {}, 'note', {
      id: PrimarySnowFlakeColumn(),
      tagId: SnowFlakeColumn(),
    });
    const all = [...entities, Note];
    const source = new DataSource({ ...options, entities: all, synchronize: true });
    await source.initialize();
    const author = await source
      .getRepository(Author)
      .save({ name: 'Ada', books: [{ title: 'x' }] });
    const [found] = await source.getRepository(Author).find({ relations: { books: true } });
    assert.deepEqual([found.id, found.books[0].id], [author.id, author.books[0].id]);
    assert.ok(await source.getRepository(Book).findOneBy({ author: { id: author.id } }));
    const [{ type }] = await source.query('SELECT typeof(id) AS type FROM author');
    assert.equal(type, 'text');
    const tag = await source.getRepository(Tag).save({ label: 'x' });
    await source.getRepository(Note).save({ id: '1', tagId: tag.id });
    assert.equal((await source.getRepository(Note).findOneBy({ tagId: tag.id })).tagId, tag.id);
    const [note] = await source.query('SELECT typeof(tagId) AS type FROM note');
    assert.equal(note.type, 'text');
    await source.destroy();
  });
}

/** The interface of node-sqlite3, which reads each integer as a number, on better-sqlite3. */
function nodeSqlite3() {
  const BetterSqlite3 = require(join(modulesOf('better-sqlite3'), 'better-sqlite3'));
  class Database {
    constructor(path, opened) {
      this.database = new BetterSqlite3(path);
      setImmediate(opened, null);
    }

    all(sql, parameters, done = parameters) {
      const values = Array.isArray(parameters) ? parameters : [];
      const statement = this.database.prepare(sql);
      if (statement.reader) return done.call({}, null, statement.all(...values));
      const { changes, lastInsertRowid } = statement.run(...values);
      return done.call({ changes, lastID: lastInsertRowid }, null);
    }

    run(...args) {
      return this.all(...args);
    }

    close(done) {
      this.database.close();
      done(null);
    }
  }
  return { verbose: () => ({ Database }) };
}
