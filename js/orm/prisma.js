'use strict';
// The exports of `snowdrift/prisma`: a client extension that sets the ID of each row that a query creates, nested rows
// included.
//
// The models of a query's relations show which rows the query creates. This reads them from the schema text inside the
// generated client, since the client's other metadata does not name the ID field.

/**
 * @import { PrismaSnowFlakeOptions } from './prisma.d.ts'
 * @import { Parse } from './text-ids.js'
 *
 * What is used of Prisma's client.
 * @typedef {object} Client
 * @property {{ inlineSchema?: unknown }} [_engineConfig]
 * @property {(extension: object) => object} $extends
 *
 * An operation on a model, and the function that goes on with it.
 * @typedef {object} Operation
 * @property {string} model
 * @property {string} operation
 * @property {unknown} args
 * @property {(args: unknown) => unknown} query
 *
 * @typedef {{ type: string, isList: boolean, isId: boolean }} Field
 * @typedef {Map<string, Map<string, Field>>} Schema the fields of each model, by name
 * @typedef {Map<string, { name: string, type: keyof typeof METHODS }>} Ids the ID field of each model that gets IDs
 *
 * Arguments of a query, or a part of them.
 * @typedef {Record<string, unknown>} Data
 * @typedef {(data: Data) => Data} Change
 *
 * @typedef {Required<PrismaSnowFlakeOptions>['flake'] & { parse?: Parse }} Flake
 */

const { configError, describe, invalidId } = require('../messages/errors.js');
const { optionsOf } = require('../messages/checks.js');
const { NONE } = require('../ids/properties.js');
const { SnowFlake } = require('../snowflake.js');
const { checkTextIds } = require('./text-ids.js');

/** The methods that generate IDs, by the type of the field. */
const METHODS = /** @type {const} */ ({ BigInt: 'nextId', String: 'nextIdString' });

/**
 * @param {string} type
 * @returns {type is keyof typeof METHODS}
 */
const isIdType = (type) => Object.hasOwn(METHODS, type);

/** @param {PrismaSnowFlakeOptions} [options] */
function withSnowFlake(options = NONE) {
  const given = optionsOf(options, 'options of withSnowFlake()', ['flake', 'models']);
  const { flake = SnowFlake, models } = /** @type {PrismaSnowFlakeOptions} */ (given);
  for (const method of Object.values(METHODS)) {
    if (typeof flake?.[method] !== 'function') {
      throw configError(`flake must be a SnowFlake, with ${method}(); it is ${describe(flake)}`);
    }
  }
  return (/** @type {Client} */ client) => {
    const schema = parseModels(client?._engineConfig?.inlineSchema);
    const filler = new IdFiller(schema, selectIds(schema, models), flake);
    return client.$extends({
      name: 'snowdrift',
      query: {
        $allModels: {
          $allOperations: (/** @type {Operation} */ { model, operation, args, query }) =>
            query(filler.fill(model, operation, args)),
        },
      },
    });
  };
}

/**
 * Reads the models of a schema.
 * @param {unknown} schema
 * @returns {Schema}
 */
function parseModels(schema) {
  if (typeof schema !== 'string') {
    throw configError(
      'snowdrift/prisma cannot read the schema of this client: use a client that Prisma 7 generates, as in new PrismaClient({ adapter }).$extends(withSnowFlake())',
    );
  }
  // Removes strings and comments, then arguments, so that each line is a field: name, type, attributes.
  let bare = schema.replace(/"(?:\\.|[^"\\])*"|\/\/.*|\/\*[\s\S]*?\*\//g, '');
  for (let before; before !== bare; ) {
    before = bare;
    bare = bare.replace(/\([^()]*\)/g, '');
  }
  const models = new Map();
  for (const [, model, lines] of bare.matchAll(/^\s*model\s+(\w+)\s*\{([^}]*)\}/gm)) {
    const fields = new Map();
    for (const [, name, type, list, attributes] of lines.matchAll(
      /^\s*(\w+)\s+(\w+)(\[\])?(.*)$/gm,
    )) {
      fields.set(name, { type, isList: list !== undefined, isId: /@id\b/.test(attributes) });
    }
    models.set(model, fields);
  }
  return models;
}

/**
 * Finds the ID field of each model that gets IDs.
 * @param {Schema} schema
 * @param {unknown} chosen
 * @returns {Ids}
 */
function selectIds(schema, chosen) {
  /** @type {Ids} */
  const ids = new Map();
  for (const [model, fields] of schema) {
    for (const [name, { type, isId }] of fields) {
      if (isId && isIdType(type)) ids.set(model, { name, type });
    }
  }
  if (chosen === undefined) {
    const bigints = [...ids].filter(([, { type }]) => type === 'BigInt');
    if (bigints.length > 0) return new Map(bigints);
    throw configError(
      'no model has a BigInt @id. Name the models with a String @id that get IDs: withSnowFlake({ models: [...] })',
    );
  }
  if (!Array.isArray(chosen) || chosen.length === 0) {
    throw configError(`models must be an array of model names; it is ${describe(chosen)}`);
  }
  const without = chosen.find((model) => !ids.has(model));
  if (without !== undefined) {
    throw configError(
      `models names ${describe(without)}, but only models with a BigInt or String @id can get IDs: ${[...ids.keys()].join(', ') || 'there is none'}`,
    );
  }
  return new Map([...ids].filter(([model]) => chosen.includes(model)));
}

/**
 * Applies a change to an object, or to each object of an array. Returns other values unchanged: Prisma refuses them.
 * @param {unknown} value
 * @param {Change} change
 * @returns {unknown}
 */
function mapObjects(value, change) {
  if (Array.isArray(value)) return value.map((item) => mapObjects(item, change));
  return value !== null && typeof value === 'object' ? change(/** @type {Data} */ (value)) : value;
}

/**
 * A copy of an object with changes of the named properties that exist.
 * @param {Data} object
 * @param {Record<string, Change>} changes
 */
function mapProperties(object, changes) {
  const copy = { ...object };
  for (const [name, change] of Object.entries(changes)) {
    if (copy[name] !== undefined) copy[name] = mapObjects(copy[name], change);
  }
  return copy;
}

/** Sets the IDs of the rows that queries create, in copies of their arguments. */
class IdFiller {
  #schema;
  #ids;
  #flake;

  /**
   * @param {Schema} schema
   * @param {Ids} ids
   * @param {Flake} flake
   */
  constructor(schema, ids, flake) {
    this.#schema = schema;
    this.#ids = ids;
    this.#flake = flake;
  }

  /**
   * @param {string} model
   * @param {string} operation
   * @param {unknown} args
   */
  fill(model, operation, args) {
    const { created, updated } = this.#changesOf(model);
    /** @type {Record<string, Record<string, Change>>} */
    const changes = {
      create: { data: created },
      createMany: { data: created },
      createManyAndReturn: { data: created },
      update: { data: updated },
      upsert: { create: created, update: updated },
    };
    return Object.hasOwn(changes, operation)
      ? mapObjects(args, (each) => mapProperties(each, changes[operation]))
      : args;
  }

  /**
   * @param {string} model
   * @returns {{ created: Change, updated: Change }}
   */
  #changesOf(model) {
    return {
      created: (data) => this.#withId(model, this.#withRelations(model, data)),
      updated: (data) => this.#withRelations(model, data),
    };
  }

  /**
   * @param {string} model
   * @param {Data} data
   * @returns {Data}
   */
  #withId(model, data) {
    const field = this.#ids.get(model);
    if (field === undefined || data[field.name] !== undefined) return data;
    const id = this.#flake[METHODS[field.type]]();
    // Without an ID, the database would number the rows by its default.
    if (typeof id !== field.type.toLowerCase()) {
      throw invalidId(
        `flake.${METHODS[field.type]}() must return an ID; it returned ${describe(id)}`,
      );
    }
    if (field.type === 'String') checkTextIds(id, this.#flake.parse?.bind(this.#flake));
    return { ...data, [field.name]: id };
  }

  /**
   * @param {string} model
   * @param {Data} data
   */
  #withRelations(model, data) {
    /** @type {Record<string, Change>} */
    const changes = {};
    for (const [name, { type, isList }] of this.#fieldsOf(model)) {
      if (this.#schema.has(type)) changes[name] = (writes) => this.#nested(type, isList, writes);
    }
    return mapProperties(data, changes);
  }

  /** @param {string} model */
  #fieldsOf(model) {
    return /** @type {Map<string, Field>} */ (this.#schema.get(model));
  }

  /**
   * Fills the nested writes of a relation's field.
   * @param {string} model
   * @param {boolean} isList
   * @param {Data} writes
   */
  #nested(model, isList, writes) {
    const { created, updated } = this.#changesOf(model);
    /** @type {(changes: Record<string, Change>) => Change} */
    const withChanges = (changes) => (write) => mapProperties(write, changes);
    // For a relation to a single row, `write` may be the data itself.
    const hasData = (/** @type {Data} */ write) =>
      isList || ('data' in write && !this.#fieldsOf(model).has('data'));
    return mapProperties(writes, {
      create: created,
      createMany: withChanges({ data: created }),
      connectOrCreate: withChanges({ create: created }),
      upsert: withChanges({ create: created, update: updated }),
      update: (write) =>
        hasData(write) ? mapProperties(write, { data: updated }) : updated(write),
    });
  }
}

/** @satisfies {Record<keyof typeof import('./prisma.js'), unknown>} */
module.exports = { withSnowFlake };
