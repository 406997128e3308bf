'use strict';
// The exports of `snowdrift/typeorm`: a primary column with snowdrift IDs. A subscriber sets the IDs, since TypeORM
// calls it for plain objects and query builders, too.
//
// A decorator does not know its database. So the columns get their type when a DataSource has built its metadata: the
// type that the driver reads back exactly. If there is none, initialize() throws.

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

function PrimarySnowFlakeColumn(options = NONE) {
  const {
    name,
    comment,
    nextIdString = nextOfDefault,
  } = optionsOf(options, 'options of PrimarySnowFlakeColumn()', [
    'name',
    'comment',
    'nextIdString',
  ]);
  if (typeof nextIdString !== 'function') {
    throw configError(
      `nextIdString must be a function that returns an ID as a string, such as flake.nextIdString; it is ${describe(nextIdString)}`,
    );
  }
  const transformer = new SnowFlakeTransformer(nextIdString, 'an ID');
  return PrimaryColumn({ type: 'bigint', name, comment, transformer });
}

function prepare(dataSource) {
  const columns = dataSource.entityMetadatas.flatMap((metadata) =>
    metadata.columns.filter(holdsId),
  );
  if (columns.length === 0) return;
  const { type } = dataSource.options;
  for (const { option, value, fix } of ROUNDING_OPTIONS) {
    if (dataSource.options[option] === value) {
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

const { buildMetadatas } = DataSource.prototype;
if (typeof buildMetadatas !== 'function') {
  throw configError('snowdrift/typeorm does not support this version of typeorm: install 0.3 or 1');
}
DataSource.prototype.buildMetadatas = async function buildWithSnowFlakes() {
  await buildMetadatas.call(this);
  prepare(this);
};
InsertQueryBuilder.prototype.execute = reportingRealIds(InsertQueryBuilder.prototype.execute);

module.exports = { PrimarySnowFlakeColumn };
