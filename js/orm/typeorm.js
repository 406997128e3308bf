'use strict';
// The exports of `snowdrift/typeorm`: columns of snowdrift's IDs, as decorators and as options of an EntitySchema. Of primary
// columns, a subscriber sets the IDs, since TypeORM calls it for plain objects and query builders, too.
//
// A decorator does not know its database. So the columns get their type when a DataSource has built its metadata: the
// type that the driver reads back exactly. If there is none, initialize() throws.

/**
 * @import { PrimarySnowFlakeColumnOptions, SnowFlakeColumnOptions } from './typeorm.d.ts'
 * @import { DataSource as TypeOrmDataSource } from 'typeorm'
 *
 * TypeORM declares this method for its own classes only.
 * @typedef {{ buildMetadatas: (this: TypeOrmDataSource) => Promise<void> }} Building
 */

const { configError, describe, needsPackage } = require('../messages/errors.js');
const { optionsOf } = require('../messages/checks.js');
const { NONE } = require('../ids/properties.js');
const {
  IdTransformer,
  SnowFlakeTransformer,
  holdsId,
  prepareColumn,
  toText,
} = require('./typeorm/columns.js');
const { reportingRealIds } = require('./typeorm/conflicts.js');
const { columnTypeFor, isSqlite, readIntegersExactly } = require('./typeorm/sqlite.js');
const { IdSubscriber, nextOfDefault } = require('./typeorm/subscriber.js');

const { Column, DataSource, InsertQueryBuilder, PrimaryColumn } = load();

function load() {
  try {
    return require('typeorm');
  } catch (cause) {
    throw needsPackage('snowdrift/typeorm', 'typeorm', cause);
  }
}

const BIGINT = /** @type {const} */ ('bigint');

/** Options that make drivers read each BIGINT as a JavaScript number. */
const ROUNDING_OPTIONS = [
  { option: 'parseInt8', value: true, fix: 'parseInt8: false' },
  { option: 'supportBigNumbers', value: false, fix: 'supportBigNumbers: true' },
];

const TEXTS = /** @type {const} */ (['name', 'comment']);

/**
 * @param {PrimarySnowFlakeColumnOptions} options
 * @param {string} caller
 */
function readPrimary(options, caller) {
  const given = optionsOf(options, `options of ${caller}()`, [...TEXTS, 'nextIdString']);
  checkTexts(given, caller);
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
  return { type: BIGINT, name, comment, transformer };
}

/**
 * @param {{ name?: unknown, comment?: unknown }} given
 * @param {string} caller
 */
function checkTexts({ name, comment }, caller) {
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw configError(`name of ${caller}() must be the name of a column; it is ${describe(name)}`);
  }
  if (comment !== undefined && typeof comment !== 'string') {
    throw configError(`comment of ${caller}() must be a text; it is ${describe(comment)}`);
  }
}

const FLAGS = /** @type {const} */ ([
  'nullable',
  'unique',
  'primary',
  'select',
  'insert',
  'update',
]);
/**
 * @param {SnowFlakeColumnOptions} options
 * @param {string} caller
 */
function readColumn(options, caller) {
  const given = optionsOf(options, `options of ${caller}()`, [...TEXTS, ...FLAGS, 'default']);
  const read = /** @type {SnowFlakeColumnOptions} */ ({ ...given });
  checkTexts(read, caller);
  for (const name of FLAGS) {
    const flag = read[name];
    if (flag === undefined || typeof flag === 'boolean') continue;
    throw configError(`${name} of ${caller}() must be true or false; it is ${describe(flag)}`);
  }
  const { default: value } = read;
  if (value !== undefined && value !== null && typeof value !== 'function') {
    read.default = toText(value, `the default of ${caller}()`);
  }
  const transformer = new IdTransformer('an ID');
  return { ...read, type: BIGINT, transformer };
}

/** @param {PrimarySnowFlakeColumnOptions} [options] */
function PrimarySnowFlakeColumn(options = NONE) {
  return PrimaryColumn(readPrimary(options, 'PrimarySnowFlakeColumn'));
}

/** @param {SnowFlakeColumnOptions} [options] */
function SnowFlakeColumn(options = NONE) {
  return Column(readColumn(options, 'SnowFlakeColumn'));
}

/**
 * The options of an EntitySchema's column.
 * @param {PrimarySnowFlakeColumnOptions} [options]
 */
PrimarySnowFlakeColumn.forSchema = (options = NONE) => ({
  ...readPrimary(options, 'PrimarySnowFlakeColumn.forSchema'),
  primary: true,
});

/** @param {SnowFlakeColumnOptions} [options] */
SnowFlakeColumn.forSchema = (options = NONE) => readColumn(options, 'SnowFlakeColumn.forSchema');

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
module.exports = { PrimarySnowFlakeColumn, SnowFlakeColumn };
