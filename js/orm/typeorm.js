'use strict';
// `snowdrift/typeorm`: a primary column whose IDs are SnowFlakes, and what makes it so in every way that
// TypeORM has to insert: a subscriber, which plain objects and query builders reach, too.
//
// Decorators do not know for which database they will be used. So what depends on that is done when a
// DataSource has built its metadata: there the columns get the type that their driver reads back
// exactly, or initialize() is refused.

const { SnowFlakeError, configError, needsPackage, shown } = require('../errors.js');
const { propertiesOf } = require('../options.js');
const { SnowFlake } = require('../snowflake.js');

const { DataSource, PrimaryColumn } = load();

function load() {
  try {
    return require('typeorm');
  } catch (cause) {
    throw needsPackage('snowdrift/typeorm', 'typeorm', cause);
  }
}

/** Drivers that read a BIGINT as a JavaScript number, whatever it is. */
const ROUNDING = [
  'sqljs',
  'better-sqlite3',
  'sqlite',
  'capacitor',
  'cordova',
  'expo',
  'nativescript',
];

/** Options of other drivers that have them do the same, and how to set them. */
const NUMBERS = [
  { option: 'parseInt8', set: true, line: 'parseInt8: false' },
  { option: 'supportBigNumbers', set: false, line: 'supportBigNumbers: true' },
];

function invalidId(message) {
  return new SnowFlakeError('ERR_SNOWFLAKE_INVALID_ID', message);
}

/** Between the property, a string, and the database. It also marks the columns that are ours. */
class SnowFlakeTransformer {
  constructor(nextIdString) {
    this.next = nextIdString;
  }

  to(value) {
    return asProperty(value);
  }

  from(value) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw invalidId(
        `the driver has read an ID as the number ${value}, which is rounded. Have it read BIGINT as strings; on SQLite the column must be varchar(20)`,
      );
    }
    return typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
  }
}

/** An ID as entities hold it. Other values, such as SQL and operators, are not IDs. */
function asProperty(value) {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') {
    throw invalidId(
      `an ID must be a string or a bigint; a number such as ${value} holds no more than 53 bits, so it may be another ID already`,
    );
  }
  return value;
}

function PrimarySnowFlakeColumn(options = {}) {
  const {
    name,
    comment,
    nextIdString = SnowFlake.nextIdString,
  } = propertiesOf(
    options,
    'options of PrimarySnowFlakeColumn()',
    ['name', 'comment', 'nextIdString'],
    configError,
  );
  if (typeof nextIdString !== 'function') {
    throw configError(
      `nextIdString must be a function that returns an ID as a string, such as flake.nextIdString; it is ${shown(nextIdString)}`,
    );
  }
  const transformer = new SnowFlakeTransformer(nextIdString);
  return PrimaryColumn({ type: 'bigint', name, comment, transformer });
}

const isOurs = ({ transformer }) => transformer instanceof SnowFlakeTransformer;

/** Fills what has no ID yet, whoever inserts it. */
const subscriber = {
  beforeInsert({ entity, metadata }) {
    if (entity === undefined) return;
    for (const column of metadata.primaryColumns.filter(isOurs)) {
      const value = column.getEntityValue(entity);
      if (value === undefined || value === null) {
        column.setEntityValue(entity, column.transformer.next());
      }
    }
  },
};

/** What is ours, and what refers to it: foreign keys, columns of junction tables. */
function columnsOf(dataSource) {
  const refersToOurs = (column) =>
    isOurs(column) ||
    (column.referencedColumn !== undefined && refersToOurs(column.referencedColumn));
  return dataSource.entityMetadatas.flatMap(({ columns }) => columns.filter(refersToOurs));
}

function adapt(dataSource) {
  const columns = columnsOf(dataSource);
  if (columns.length === 0) return;
  const { type } = dataSource.options;
  for (const { option, set, line } of NUMBERS) {
    if (dataSource.options[option] === set) {
      throw configError(
        `with ${option}: ${set}, ${type} reads IDs as numbers, which rounds them: save() would then insert a second row. Add ${line} to the options of the DataSource`,
      );
    }
  }
  for (const column of columns) {
    if (ROUNDING.includes(type)) Object.assign(column, { type: 'varchar', length: '20' });
    readExactly(column);
  }
  dataSource.subscribers.push(subscriber);
}

/** Entities that were given a bigint for an ID are the ones that have it as a string. */
function readExactly(column) {
  const { getEntityValue, getEntityValueMap } = column;
  column.getEntityValue = (...args) => asProperty(getEntityValue.apply(column, args));
  column.getEntityValueMap = (...args) => {
    const map = getEntityValueMap.apply(column, args);
    if (map !== undefined && Object.hasOwn(map, column.propertyName)) {
      map[column.propertyName] = asProperty(map[column.propertyName]);
    }
    return map;
  };
}

const { buildMetadatas } = DataSource.prototype;
if (typeof buildMetadatas !== 'function') {
  throw configError(
    'snowdrift/typeorm does not know this version of typeorm: it works with 0.3 and 1',
  );
}
DataSource.prototype.buildMetadatas = async function buildWithSnowFlakes() {
  await buildMetadatas.call(this);
  adapt(this);
};

module.exports = { PrimarySnowFlakeColumn };
