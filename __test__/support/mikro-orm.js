'use strict';
// Reads of MikroORM that could round: nested ones, formulas, embedded JSON, raw results.

const assert = require('node:assert/strict');

const { assertExact, assertRounded, oddFlake } = require('./exact.js');

/**
 * Asserts that all reads of IDs are exact, as bigints and as strings.
 * @param driver a package of MikroORM
 * @param options of MikroORM: which database
 * @param aggregates expressions of all IDs in JSON: as they are, and as texts
 */
async function readExactly({ BigIntType, EntitySchema, MikroORM }, options, aggregates) {
  for (const mode of ['bigint', 'string']) {
    const flake = oddFlake();
    const next = mode === 'bigint' ? flake.nextId : flake.nextIdString;
    const type = new BigIntType(mode);
    const id = { type, primary: true, autoincrement: false, onCreate: next };
    const orm = await MikroORM.init({
      ...options,
      entities: [
        new EntitySchema({ name: 'Reference', embeddable: true, properties: { to: { type } } }),
        new EntitySchema({
          name: 'Shelf',
          properties: {
            id,
            boxes: { kind: '1:m', entity: 'Box', mappedBy: 'shelf' },
            last: {
              type,
              formula: (shelf) => `(SELECT MAX(box.id) FROM box WHERE box.shelf_id = ${shelf}.id)`,
            },
            one: { kind: 'embedded', entity: 'Reference', object: true },
            many: { kind: 'embedded', entity: 'Reference', array: true },
          },
        }),
        new EntitySchema({
          name: 'Box',
          properties: {
            id,
            shelf: { kind: 'm:1', entity: 'Shelf' },
            labels: { kind: 'm:n', entity: 'Label', owner: true },
          },
        }),
        new EntitySchema({ name: 'Label', properties: { id } }),
      ],
    });
    await orm.schema.createSchema();
    const em = orm.em.fork();
    const [one, many] = [next(), next()];
    const boxes = [{ labels: [{}, {}] }, {}];
    const shelf = em.create('Shelf', { one: { to: one }, many: [{ to: many }], boxes });
    await em.flush();
    const [full, empty] = shelf.boxes.getItems();
    const labels = full.labels.getItems();
    const all = [shelf.id, one, many, full.id, empty.id, ...labels.map((label) => label.id)];

    const populate = ['boxes.labels', 'boxes.shelf'];
    for (const strategy of ['joined', 'select-in', 'balanced']) {
      const [found] = await orm.em.fork().find('Shelf', {}, { populate, strategy });
      const [last] = [full.id, empty.id].sort().reverse();
      assert.deepEqual([typeof found.id, found.last], [mode, last], strategy);
      const read = found.boxes.getItems();
      const parts = read.map((box) => [
        box.id,
        box.shelf.id,
        box.labels.getItems().map((l) => l.id),
      ]);
      assertExact([found.id, found.one.to, found.many[0].to, parts], ...all);
      assertExact(JSON.parse(JSON.stringify(found)), ...all);
    }
    for (const where of [{ boxes: { id: full.id } }, { boxes: { labels: { id: labels[1].id } } }]) {
      assert.equal(await orm.em.fork().count('Shelf', where), 1);
    }
    const rows = await em.execute('SELECT id, MAX(shelf_id) AS shelf FROM box GROUP BY id');
    assertExact(rows, full.id, empty.id, shelf.id);
    const [numbers, texts] = aggregates;
    assertRounded(await em.execute(`SELECT ${numbers} AS ids FROM box`));
    assertExact(await em.execute(`SELECT ${texts} AS ids FROM box`), full.id, empty.id);
    await orm.schema.dropSchema();
    await orm.close(true);
  }
}

module.exports = { readExactly };
