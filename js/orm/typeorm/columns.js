'use strict';
// Columns of IDs in TypeORM: they accept a bigint or canonical digits, and return a string.

const { configError, invalidId } = require('../../messages/errors.js');
const { readId } = require('../../generator/arguments.js');

/** Converts between the property, a string, and the database. TypeORM applies it to conditions, too. */
class IdTransformer {
  /** @param name the entity and property, for errors */
  constructor(name) {
    this.name = name;
  }

  to(value) {
    return toProperty(value, this.name);
  }

  from(value) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw invalidId(
        `the driver has read ${this.name} as the number ${value}, which is rounded. Configure it to read BIGINT as strings`,
      );
    }
    return typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
  }
}

/** The transformer of a primary column. Its class marks snowdrift's columns. */
class SnowFlakeTransformer extends IdTransformer {
  constructor(nextIdString, name) {
    super(name);
    this.next = nextIdString;
  }
}

const isSnowFlakeColumn = ({ transformer }) => transformer instanceof SnowFlakeTransformer;

/** An ID as the property's string. Returns objects and functions, such as operators and SQL, unchanged. */
function toProperty(value, name) {
  if (value === undefined || value === null) return value;
  if (typeof value === 'object' || typeof value === 'function') return value;
  try {
    const id = readId(value);
    return typeof value === 'string' ? value : String(id);
  } catch ({ message }) {
    throw invalidId(`${name}: ${message}`);
  }
}

/** Whether a column holds IDs: snowdrift's, foreign keys, and columns of junction tables. */
function holdsId(column) {
  const { referencedColumn } = column;
  return isSnowFlakeColumn(column) || (referencedColumn !== undefined && holdsId(referencedColumn));
}

/** Makes a column check and convert its IDs wherever TypeORM reads an entity or a condition. */
function prepareColumn(column) {
  const name = `${column.entityMetadata.name}.${column.propertyPath}`;
  refuseOtherTypes(column, name);
  if (isSnowFlakeColumn(column)) {
    column.transformer = new SnowFlakeTransformer(column.transformer.next, name);
  } else {
    column.transformer ??= new IdTransformer(name);
  }
  const { getEntityValue, getEntityValueMap } = column;
  column.getEntityValue = (entity, transform) => {
    // TypeORM transforms conditions. They belong to the caller, so they keep their bigints.
    if (!transform) writeString(column, entity, name);
    return toProperty(getEntityValue.call(column, entity, transform), name);
  };
  column.getEntityValueMap = (entity) => {
    writeString(column, entity, name);
    return getEntityValueMap.call(column, entity);
  };
}

/**
 * Refuses a property that TypeScript declares as a number or a bigint, since it would hold a string. (IDs of a layout
 * of at most 53 bits could be numbers; the column does not know the layout.)
 */
function refuseOtherTypes({ target, propertyName }, name) {
  const declaring = typeof target === 'function' ? target.prototype : undefined;
  if (declaring === undefined || typeof Reflect.getMetadata !== 'function') return;
  const type = Reflect.getMetadata('design:type', declaring, propertyName);
  if (type !== Number && type !== BigInt) return;
  const declared =
    type === Number
      ? 'a number, which cannot hold an ID of 64 bits'
      : 'a bigint, and TypeORM reads IDs as strings';
  throw configError(
    `${name} is declared as ${declared}: declare it as a string, such as ${propertyName}!: string`,
  );
}

/** Replaces a bigint of an entity by its string, since JSON has no bigint. */
function writeString({ embeddedMetadata, propertyName }, entity, name) {
  let owner = entity;
  for (const property of embeddedMetadata?.parentPropertyNames ?? []) owner = owner?.[property];
  if (owner === null || typeof owner !== 'object') return;
  // Does not call the getter, which would load a lazy relation.
  const value = Object.getOwnPropertyDescriptor(owner, propertyName)?.value;
  // Defines it, since an assignment throws if the object is frozen.
  if (typeof value === 'bigint') Reflect.set(owner, propertyName, toProperty(value, name));
}

module.exports = { SnowFlakeTransformer, holdsId, isSnowFlakeColumn, prepareColumn };
