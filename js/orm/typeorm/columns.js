'use strict';
// Columns of IDs in TypeORM: they accept a bigint or canonical digits, and return a string.

/**
 * @import { EntityMetadata, ObjectLiteral } from 'typeorm'
 * @typedef {EntityMetadata['columns'][number]} ColumnMetadata
 */

const { configError, describe, invalidId } = require('../../messages/errors.js');
const { readId } = require('../../generator/arguments.js');

/**
 * Converts between the property, a string, and the database. TypeORM applies it to conditions, too. Its class marks
 * snowdrift's columns.
 */
class IdTransformer {
  /** @param {string} name the entity and property, for errors */
  constructor(name) {
    this.name = name;
  }

  /** @param {unknown} value */
  to(value) {
    return toProperty(value, this.name);
  }

  /** @param {unknown} value */
  from(value) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw invalidId(
        `the driver has read ${this.name} as the number ${value}, which is rounded. Configure it to read BIGINT as strings`,
      );
    }
    return typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
  }
}

/** The transformer of a primary column, whose IDs are generated. */
class SnowFlakeTransformer extends IdTransformer {
  /**
   * @param {() => unknown} nextIdString
   * @param {string} name
   */
  constructor(nextIdString, name) {
    super(name);
    this.next = nextIdString;
  }
}

/** @param {ColumnMetadata} column */
const nextOf = ({ transformer }) =>
  transformer instanceof SnowFlakeTransformer ? transformer.next : undefined;

/** @param {ColumnMetadata} column */
const isDeclared = ({ transformer }) => transformer instanceof IdTransformer;

/**
 * Whether IDs are generated for a column.
 * @param {ColumnMetadata} column
 */
const isSnowFlakeColumn = (column) => nextOf(column) !== undefined;

/**
 * An ID as the property's string. Returns objects and functions, such as operators and SQL, unchanged.
 * @param {unknown} value
 * @param {string} name
 */
function toProperty(value, name) {
  if (value === undefined || value === null) return value;
  if (typeof value === 'object' || typeof value === 'function') return value;
  return toText(value, name);
}

/**
 * An ID as a string.
 * @param {unknown} value
 * @param {string} name
 */
function toText(value, name) {
  try {
    const id = readId(value);
    return typeof value === 'string' ? value : String(id);
  } catch (failure) {
    throw invalidId(`${name}: ${/** @type {Error} */ (failure).message}`);
  }
}

/**
 * Whether a column holds IDs: snowdrift's, foreign keys, and columns of junction tables.
 * @param {ColumnMetadata} column
 * @returns {boolean}
 */
function holdsId(column) {
  const { referencedColumn } = column;
  return isDeclared(column) || (referencedColumn !== undefined && holdsId(referencedColumn));
}

/**
 * Makes a column check and convert its IDs wherever TypeORM reads an entity or a condition.
 * @param {ColumnMetadata} column
 */
function prepareColumn(column) {
  const name = `${column.entityMetadata.name}.${column.propertyPath}`;
  refuseOtherTypes(column, name);
  refuseOtherKeys(column, name);
  const next = nextOf(column);
  if (next !== undefined) column.transformer = new SnowFlakeTransformer(next, name);
  else if (isDeclared(column)) column.transformer = new IdTransformer(name);
  else column.transformer ??= new IdTransformer(name);
  const { getEntityValue, getEntityValueMap } = column;
  /** @type {ColumnMetadata['getEntityValue']} */
  column.getEntityValue = (entity, transform) => {
    // TypeORM transforms conditions. They belong to the caller, so they keep their bigints.
    if (!transform) writeString(column, entity, name);
    return toProperty(getEntityValue.call(column, entity, transform), name);
  };
  /** @type {ColumnMetadata['getEntityValueMap']} */
  column.getEntityValueMap = (entity) => {
    writeString(column, entity, name);
    return getEntityValueMap.call(column, entity);
  };
}

/** Types of properties that hold no ID, as errors name them. */
const OTHERS = new Map(
  /** @type {[unknown, string][]} */ ([
    [Number, 'a number, which cannot hold an ID of 64 bits'],
    [BigInt, 'a bigint, and TypeORM reads IDs as strings'],
    [Boolean, 'a boolean, which is no ID'],
    [Date, 'a Date, which is no ID'],
    [Array, 'an array, which is no ID'],
  ]),
);

/**
 * Refuses a property that TypeScript declares as another type, such as a number: it would hold a string. (IDs of a layout
 * of at most 53 bits could be numbers; the column does not know the layout.)
 * @param {ColumnMetadata} column
 * @param {string} name
 */
function refuseOtherTypes({ target, propertyName }, name) {
  const declaring = typeof target === 'function' ? target.prototype : undefined;
  if (declaring === undefined || typeof Reflect.getMetadata !== 'function') return;
  const declared = OTHERS.get(Reflect.getMetadata('design:type', declaring, propertyName));
  if (declared === undefined) return;
  throw configError(
    `${name} is declared as ${declared}: declare it as a string, such as ${propertyName}!: string`,
  );
}

/**
 * Refuses a foreign key that refers to what is no ID, such as a UUID: TypeORM gives it the type of that column. Integers of 64
 * bits may be IDs that another program inserts.
 * @param {ColumnMetadata} column
 * @param {string} name
 */
function refuseOtherKeys({ referencedColumn }, name) {
  if (referencedColumn === undefined || holdsId(referencedColumn)) return;
  const { entityMetadata, propertyPath, type } = referencedColumn;
  if (['bigint', 'int8'].includes(String(type))) return;
  const other = `${entityMetadata.name}.${propertyPath}`;
  throw configError(
    `${name} is a column of IDs, and refers to ${other}, which has none (its type is ${describe(typeof type === 'function' ? type.name : type)}): declare ${other} with @PrimarySnowFlakeColumn(), or ${name} with @Column()`,
  );
}

/**
 * Replaces a bigint of an entity by its string, since JSON has no bigint.
 * @param {ColumnMetadata} column
 * @param {ObjectLiteral} entity
 * @param {string} name
 */
function writeString({ embeddedMetadata, propertyName }, entity, name) {
  let owner = entity;
  for (const property of embeddedMetadata?.parentPropertyNames ?? []) owner = owner?.[property];
  if (owner === null || typeof owner !== 'object') return;
  // Does not call the getter, which would load a lazy relation.
  const value = Object.getOwnPropertyDescriptor(owner, propertyName)?.value;
  // Defines it, since an assignment throws if the object is frozen.
  if (typeof value === 'bigint') Reflect.set(owner, propertyName, toProperty(value, name));
}

module.exports = {
  IdTransformer,
  SnowFlakeTransformer,
  holdsId,
  isSnowFlakeColumn,
  nextOf,
  prepareColumn,
  toText,
};
