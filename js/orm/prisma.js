'use strict';
// `snowdrift/prisma`: a client extension that gives an ID to every row that a query creates, nested ones
// included.
//
// What a query creates can only be told by the models that its relations lead to. A generated client
// keeps the schema that it was generated from; what it knows besides leaves out which field is the ID.

const { configError, shown } = require('../errors.js');
const { propertiesOf } = require('../options.js');
const { SnowFlake } = require('../snowflake.js');

/** How an ID is drawn, by the type of its field. */
const DRAW = { BigInt: 'nextId', String: 'nextIdString' };

function withSnowFlake(options = {}) {
  const { flake = SnowFlake, models } = propertiesOf(
    options,
    'options of withSnowFlake()',
    ['flake', 'models'],
    configError,
  );
  for (const method of Object.values(DRAW)) {
    if (typeof flake?.[method] !== 'function') {
      throw configError(`flake must be a SnowFlake, with ${method}(); it is ${shown(flake)}`);
    }
  }
  return (client) => {
    const schema = modelsOf(client?._engineConfig?.inlineSchema);
    const writes = new Writes(schema, idsToFill(schema, models), flake);
    return client.$extends({
      name: 'snowdrift',
      query: {
        $allModels: {
          $allOperations: ({ model, operation, args, query }) =>
            query(writes.filled(model, operation, args)),
        },
      },
    });
  };
}

/** Each model's fields: their type, whether they are lists, and whether they are its ID. */
function modelsOf(schema) {
  if (typeof schema !== 'string') {
    throw configError(
      'snowdrift/prisma does not know this client: it works with those that Prisma 7 generates, as in new PrismaClient({ adapter }).$extends(withSnowFlake())',
    );
  }
  // Texts, comments and then arguments are left out, so a line is a field: name, type, attributes.
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

/** For each model that gets IDs: the name and type of the field. */
function idsToFill(schema, chosen) {
  const ids = new Map();
  for (const [model, fields] of schema) {
    for (const [name, { type, isId }] of fields) {
      if (isId && Object.hasOwn(DRAW, type)) ids.set(model, { name, type });
    }
  }
  if (chosen === undefined) {
    const ours = [...ids].filter(([, { type }]) => type === 'BigInt');
    if (ours.length > 0) return new Map(ours);
    throw configError(
      'no model has a BigInt @id. For those with a String @id, name them: withSnowFlake({ models: [...] })',
    );
  }
  if (!Array.isArray(chosen) || chosen.length === 0) {
    throw configError(`models must be a list of models' names; it is ${shown(chosen)}`);
  }
  const without = chosen.find((model) => !ids.has(model));
  if (without !== undefined) {
    throw configError(
      `models names ${shown(without)}, but only models with a BigInt or String @id can have IDs from here: ${[...ids.keys()].join(', ') || 'there is none'}`,
    );
  }
  return new Map(chosen.map((model) => [model, ids.get(model)]));
}

/** A value, or each of a list, changed. What is no object is left for Prisma to refuse. */
function each(value, change) {
  if (Array.isArray(value)) return value.map((item) => each(item, change));
  return value !== null && typeof value === 'object' ? change(value) : value;
}

/** A copy in which these properties are changed, those that are there. */
function changed(object, changes) {
  const copy = { ...object };
  for (const [name, change] of Object.entries(changes)) {
    if (copy[name] !== undefined) copy[name] = each(copy[name], change);
  }
  return copy;
}

/** Finds what queries create, and gives it IDs, in copies of their arguments. */
class Writes {
  #schema;
  #ids;
  #flake;

  constructor(schema, ids, flake) {
    this.#schema = schema;
    this.#ids = ids;
    this.#flake = flake;
  }

  /** A query's arguments, with IDs. */
  filled(model, operation, args) {
    const { created, updated } = this.#changesOf(model);
    const changes = {
      create: { data: created },
      createMany: { data: created },
      createManyAndReturn: { data: created },
      update: { data: updated },
      upsert: { create: created, update: updated },
    };
    return Object.hasOwn(changes, operation)
      ? each(args, (it) => changed(it, changes[operation]))
      : args;
  }

  #changesOf(model) {
    return {
      created: (data) => this.#withId(model, this.#withRelations(model, data)),
      updated: (data) => this.#withRelations(model, data),
    };
  }

  #withId(model, data) {
    const id = this.#ids.get(model);
    if (id === undefined || data[id.name] !== undefined) return data;
    return { ...data, [id.name]: this.#flake[DRAW[id.type]]() };
  }

  #withRelations(model, data) {
    const changes = {};
    for (const [name, { type, isList }] of this.#schema.get(model)) {
      if (this.#schema.has(type)) changes[name] = (writes) => this.#nested(type, isList, writes);
    }
    return changed(data, changes);
  }

  /** What a relation's field says to do with the model that it leads to. */
  #nested(model, isList, writes) {
    const { created, updated } = this.#changesOf(model);
    const withChanges = (changes) => (write) => changed(write, changes);
    // To a single row, the data itself may stand here.
    const hasData = (write) => isList || ('data' in write && !this.#schema.get(model).has('data'));
    return changed(writes, {
      create: created,
      createMany: withChanges({ data: created }),
      connectOrCreate: withChanges({ create: created }),
      upsert: withChanges({ create: created, update: updated }),
      update: (write) => (hasData(write) ? changed(write, { data: updated }) : updated(write)),
    });
  }
}

module.exports = { withSnowFlake };
