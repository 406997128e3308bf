'use strict';
// Generates IDs for entities before TypeORM inserts them.

/**
 * @import { ColumnType, InsertEvent, ObjectLiteral } from 'typeorm'
 * @import { ColumnMetadata } from './columns.js'
 */

const { describe, invalidId } = require('../../messages/errors.js');
const { SnowFlake } = require('../../snowflake.js');
const { checkTextIds } = require('../text-ids.js');
const { nextOf } = require('./columns.js');

/** Reads the static method at each call, so that columns use a mock of it. */
const nextOfDefault = () => SnowFlake.nextIdString();

/** @param {ColumnType} type */
const isText = (type) =>
  /char|text|clob|string/i.test(typeof type === 'function' ? type.name : type);

class IdSubscriber {
  /** @param {InsertEvent<ObjectLiteral>} event */
  beforeInsert({ entity, metadata }) {
    if (entity === undefined) return;
    for (const column of metadata.primaryColumns) {
      const next = nextOf(column);
      if (next === undefined) continue;
      const value = column.getEntityValue(entity);
      if (value !== undefined && value !== null) continue;
      const id = checkGenerated(next(), column);
      column.setEntityValue(entity, id);
      const isDefault = next === nextOfDefault || next === SnowFlake.nextIdString;
      if (isText(column.type)) checkTextIds(id, isDefault ? SnowFlake.parse : undefined);
    }
  }
}

/**
 * Refuses a missing ID: SQLite would number the rows 1, 2, 3.
 * @param {unknown} id
 * @param {ColumnMetadata} column
 */
function checkGenerated(id, { entityMetadata, propertyPath }) {
  if (typeof id === 'string' || typeof id === 'bigint') return id;
  throw invalidId(
    `nextIdString of ${entityMetadata.name}.${propertyPath} must return an ID as a string; it returned ${describe(id)}`,
  );
}

module.exports = { IdSubscriber, nextOfDefault };
