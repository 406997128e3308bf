'use strict';
// Generates IDs for entities before TypeORM inserts them.

const { describe, invalidId } = require('../../messages/errors.js');
const { SnowFlake } = require('../../snowflake.js');
const { checkTextIds } = require('../text-ids.js');
const { holdsId, isSnowFlakeColumn } = require('./columns.js');
const { isSqlite } = require('./sqlite.js');

/** Reads the static method at each call, so that columns use a mock of it. */
const nextOfDefault = () => SnowFlake.nextIdString();

class IdSubscriber {
  /** The entities whose columns were checked. */
  #seen = new WeakSet();

  beforeInsert({ entity, metadata, queryRunner }) {
    if (entity === undefined) return undefined;
    let looked;
    for (const column of metadata.primaryColumns.filter(isSnowFlakeColumn)) {
      const value = column.getEntityValue(entity);
      if (value !== undefined && value !== null) continue;
      const { next } = column.transformer;
      const id = checkGenerated(next(), column);
      column.setEntityValue(entity, id);
      if (this.#seen.has(metadata)) continue;
      this.#seen.add(metadata);
      looked = storesText(metadata, queryRunner).then((isText) => {
        const isDefault = next === nextOfDefault || next === SnowFlake.nextIdString;
        if (isText) checkTextIds(id, isDefault ? SnowFlake.parse : undefined);
      });
      // A failure of this check must not fail the insert.
      looked = looked.catch(() => {});
    }
    return looked;
  }
}

/** Refuses a missing ID: SQLite would number the rows 1, 2, 3. */
function checkGenerated(id, { entityMetadata, propertyPath }) {
  if (typeof id === 'string' || typeof id === 'bigint') return id;
  throw invalidId(
    `nextIdString of ${entityMetadata.name}.${propertyPath} must return an ID as a string; it returned ${describe(id)}`,
  );
}

const isText = (type) => /char|text|clob|string/i.test(type?.name ?? type);

/** Whether a table stores IDs as text: its driver needs that, or an earlier version created SQLite's table. */
async function storesText({ columns, tableName }, queryRunner) {
  const ids = columns.filter(holdsId);
  if (ids.some(({ type }) => isText(type))) return true;
  const { driver } = queryRunner.dataSource ?? queryRunner.connection;
  if (!isSqlite(driver.options.type)) return false;
  const types = await queryRunner.query('SELECT name, type FROM pragma_table_info(?)', [tableName]);
  const names = new Set(ids.map(({ databaseName }) => databaseName));
  return types.some(({ name, type }) => names.has(name) && isText(type));
}

module.exports = { IdSubscriber, nextOfDefault };
