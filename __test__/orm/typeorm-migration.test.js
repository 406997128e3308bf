'use strict';
// SQLite tables of an earlier version, whose IDs are varchar(20): they keep working with a warning, and both
// synchronize and a generated migration make their IDs integers.

const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { describe, test } = require('node:test');

const { SnowFlake } = require('../support/support.js');
const { DATABASES, decorate } = require('../support/typeorm.js');
const { PrimarySnowFlakeColumn } = require('../../js/orm/typeorm.js');
const { Column, DataSource, ManyToOne, MoreThan, PrimaryColumn } = require('typeorm');

/** An ID from before 10^18, and those after it. */
const OLD = '501276370534924288';
const clock = () => clock.now++;
const flake = new SnowFlake({ datacenterId: 2, workerId: 3, clock });
clock.now = flake.parse(10n ** 18n).timestamp;
const { nextIdString } = flake;

function entitiesWith(primaryColumn) {
  const Parent = decorate(class Parent {}, 'parent', {
    id: primaryColumn(),
    name: Column('varchar'),
  });
  const Child = decorate(class Child {}, 'child', {
    id: primaryColumn(),
    parent: ManyToOne(() => Parent),
  });
  return { Parent, Child };
}

const before = entitiesWith(() => PrimaryColumn('varchar', { length: 20 }));
const now = entitiesWith(() => PrimarySnowFlakeColumn({ nextIdString }));
const TYPES = `SELECT "parent"."id", typeof("parent"."id") AS "own", typeof("parentId") AS "foreign"
  FROM "child" JOIN "parent" ON "parent"."id" = "parentId"`;

const FILES = {
  sqljs: (location) => ({ location, autoSave: true }),
  'better-sqlite3': (database) => ({ database }),
};

for (const { name, skip, options } of DATABASES.filter(({ options }) => FILES[options.type])) {
  describe(name, { skip }, () => {
    /** Opens a file with these entities, for the time of a call. */
    async function opened(file, entities, more, call) {
      const place = FILES[options.type](file);
      const source = new DataSource({
        ...options,
        ...place,
        entities: Object.values(entities),
        ...more,
      });
      await source.initialize();
      try {
        return await call(source);
      } finally {
        await source.destroy();
      }
    }

    async function withOldTables(call) {
      const folder = mkdtempSync(join(tmpdir(), 'snowdrift-sqlite-'));
      const file = join(folder, 'app.db');
      try {
        await opened(file, before, { synchronize: true }, async (source) => {
          await source.getRepository(before.Parent).insert({ id: OLD, name: 'old' });
          await source
            .getRepository(before.Child)
            .insert({ id: `${OLD.slice(0, -1)}9`, parent: { id: OLD } });
        });
        await call(file);
      } finally {
        rmSync(folder, { recursive: true });
      }
    }

    /** Old rows are found, related, changed and referred to. */
    async function works(source) {
      const parents = source.getRepository(now.Parent);
      const [child] = await source.getRepository(now.Child).find({ relations: { parent: true } });
      assert.deepEqual([child.parent.id, child.parent.name], [OLD, 'old']);
      child.parent.name = 'changed';
      await parents.save(child.parent);
      assert.equal((await parents.findOneByOrFail({ id: BigInt(OLD) })).name, 'changed');
      await source.getRepository(now.Child).save({ parent: { id: OLD } });
      assert.equal(await source.getRepository(now.Child).countBy({ parent: { id: OLD } }), 2);
      assert.equal(await parents.count(), 1);
    }

    /** IDs are integers, and sort. */
    async function isMigrated(source) {
      assert.deepEqual(await source.query(TYPES), [
        { id: OLD, own: 'integer', foreign: 'integer' },
      ]);
      assert.deepEqual(await source.query('PRAGMA foreign_key_check'), []);
      await works(source);
      const parents = source.getRepository(now.Parent);
      const { id } = await parents.save({ name: 'new' });
      assert.deepEqual(
        (await parents.find({ order: { id: 'ASC' } })).map((row) => row.id),
        [OLD, id],
      );
      assert.equal(await parents.countBy({ id: MoreThan(OLD) }), 1);
    }

    test('without a migration, they work as before', () =>
      withOldTables((file) =>
        opened(file, now, {}, async (source) => {
          await works(source);
          assert.equal((await source.query(TYPES))[0].own, 'text');
        }),
      ));

    test('synchronize migrates them', () =>
      withOldTables((file) => opened(file, now, { synchronize: true }, isMigrated)));

    test('a migration as migration:generate writes it', () =>
      withOldTables(async (file) => {
        const { upQueries } = await opened(file, now, {}, (source) =>
          source.driver.createSchemaBuilder().log(),
        );
        class IntegerIds1 {
          name = 'IntegerIds1700000000000';

          async up(queryRunner) {
            for (const { query, parameters } of upQueries)
              await queryRunner.query(query, parameters);
          }
        }
        const migrations = { migrations: [IntegerIds1], migrationsRun: true };
        await opened(file, now, migrations, isMigrated);
        const { upQueries: left } = await opened(file, now, {}, (source) =>
          source.driver.createSchemaBuilder().log(),
        );
        assert.deepEqual(left, []);
      }));
  });
}
