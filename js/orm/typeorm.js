'use strict';
// The exports of `snowdrift/typeorm`: a primary column with snowdrift IDs. A subscriber sets the IDs, since TypeORM
// calls it for plain objects and query builders, too.
//
// A decorator does not know its database. So the columns get their type when a DataSource has built its metadata: the
// type that the driver reads back exactly. If there is none, initialize() throws.

/**
 * @import { PrimarySnowFlakeColumnOptions } from './typeorm.d.ts'
 * @import { DataSource as TypeOrmDataSource } from 'typeorm'
 *
 * TypeORM declares this method for its own classes only.
 * @typedef {{ buildMetadatas: (this: TypeOrmDataSource) => Promise<void> }} Building
 */

const { configError, describe, needsPackage } = require('../messages/errors.js');
const { optionsOf } = require('../messages/checks.js');
const { NONE } = require('../ids/properties.js');
const { SnowFlakeTransformer, holdsId, prepareColumn } = require('./typeorm/columns.js');
const { reportingRealIds } = require('./typeorm/conflicts.js');
const { columnTypeFor, isSqlite, readIntegersExactly } = require('./typeorm/sqlite.js');
const { IdSubscriber, nextOfDefault } = require('./typeorm/subscriber.js');

const { DataSource, InsertQueryBuilder, PrimaryColumn } = load();

function load() {
  try {
    return require('typeorm');
  } catch (cause) {
    throw needsPackage('snowdrift/typeorm', 'typeorm', cause);
  }
}

/** Options that make drivers read each BIGINT as a JavaScript number. */
const ROUNDING_OPTIONS = [
  { option: 'parseInt8', value: true, fix: 'parseInt8: false' },
  { option: 'supportBigNumbers', value: false, fix: 'supportBigNumbers: true' },
];

/** @param {PrimarySnowFlakeColumnOptions} [options] */
function PrimarySnowFlakeColumn(options = NONE) {
  const given = optionsOf(options, 'options of PrimarySnowFlakeColumn()', [
    'name',
    'comment',
    'nextIdString',
  ]);
  const {
    name,
    comment,
    nextIdString = nextOfDefault,
  } = /** @type {PrimarySnowFlakeColumnOptions} */ (given);
  if (typeof nextIdString !== 'function') {
    throw configError(
      `nextIdString must be a function that returns an ID as a string, such as flake.nextIdString; it is ${describe(nextIdString)}`,
    );
  }
  const transformer = new SnowFlakeTransformer(nextIdString, 'an ID');
  return PrimaryColumn({ type: 'bigint', name, comment, transformer });
}

/** @param {TypeOrmDataSource} dataSource */
function prepare(dataSource) {
  const columns = dataSource.entityMetadatas.flatMap((metadata) =>
    metadata.columns.filter(holdsId),
  );
  if (columns.length === 0) return;
  const { type } = dataSource.options;
  for (const { option, value, fix } of ROUNDING_OPTIONS) {
    if (Reflect.get(dataSource.options, option) === value) {
      throw configError(
        `with ${option}: ${value}, ${type} reads IDs as numbers, which rounds them: save() would then insert a second row. Set ${fix} in the options of the DataSource`,
      );
    }
  }
  if (isSqlite(type)) {
    readIntegersExactly(dataSource);
    for (const column of columns) Object.assign(column, columnTypeFor(type));
  }
  columns.forEach(prepareColumn);
  dataSource.subscribers.push(new IdSubscriber());
}

const prototype = /** @type {Building} */ (/** @type {unknown} */ (DataSource.prototype));
const { buildMetadatas } = prototype;
if (typeof buildMetadatas !== 'function') {
  throw configError('snowdrift/typeorm does not support this version of typeorm: install 0.3 or 1');
}
prototype.buildMetadatas = async function buildWithSnowFlakes() {
  await buildMetadatas.call(this);
  prepare(this);
};
InsertQueryBuilder.prototype.execute = reportingRealIds(InsertQueryBuilder.prototype.execute);

/** @satisfies {Record<keyof typeof import('./typeorm.js'), unknown>} */
module.exports = { PrimarySnowFlakeColumn };
