'use strict';
// Inserts that may meet an existing row: upsert(), orUpdate(), orIgnore(). Such a row keeps its ID, so the ID
// drawn for the insert is in no table. After the statement, each entity gets the ID of its row, or none if that
// is unknown.
//
// RETURNING names the rows in the order of the entities. Without it, or if a row was left out, a query looks for
// the entities' IDs, and for rows with the values of the conflict's columns.

const { isSnowFlakeColumn } = require('./columns.js');
const { NONE } = require('../../ids/properties.js');

/** Wraps InsertQueryBuilder's execute(). */
function reportingRealIds(execute) {
  return async function executeAndReport() {
    const { mainAlias, onIgnore, onUpdate, onConflict, insertFromSelect } = this.expressionMap;
    const meetsRows = (onIgnore || onUpdate || onConflict) && !insertFromSelect;
    const metadata = meetsRows && mainAlias?.hasMetadata ? mainAlias.metadata : undefined;
    const column = metadata?.primaryColumns.find(isSnowFlakeColumn);
    if (column === undefined) return execute.call(this);
    const runner = this.obtainQueryRunner();
    try {
      return await new MeetingInsert(this, metadata, column, runner).run(execute);
    } finally {
      // As execute() does with its own.
      if (runner !== this.queryRunner) await runner.release();
    }
  };
}

/** SQLite permits 1,000 ORs. */
const ROWS_A_QUERY = 500;

class MeetingInsert {
  #builder;
  #metadata;
  #column;
  #runner;
  #driver;
  #entities;
  /** By entity: whether the caller has set its ID. */
  #isGiven;
  /** By entity: the ID of its row; undefined if it is unknown. */
  #ids = [];
  /** The rows of RETURNING. */
  #rows;

  constructor(builder, metadata, column, runner) {
    this.#builder = builder;
    this.#metadata = metadata;
    this.#column = column;
    this.#runner = runner;
    // TypeORM 0.3 has no `dataSource`.
    this.#driver = (builder.dataSource ?? builder.connection).driver;
    this.#entities = builder.getValueSets();
    this.#isGiven = this.#current().map((id) => id !== undefined);
  }

  async run(execute) {
    const { expressionMap } = this.#builder;
    const { returning } = expressionMap;
    expressionMap.returning = this.#withId(returning);
    try {
      const result = await execute.call(this.#watched());
      // Once more: TypeORM may have mixed up rows that it loaded.
      this.#setIds(true);
      return this.#corrected(result);
    } catch (error) {
      // Upserted again with an ID that was drawn, the entity would change the ID of the row.
      this.#ids = [];
      this.#setIds(true);
      throw error;
    } finally {
      expressionMap.returning = returning;
    }
  }

  #current() {
    return this.#entities.map((entity) => this.#column.getEntityValue(entity) ?? undefined);
  }

  /** What RETURNING names, and the ID. */
  #withId(returning) {
    const { propertyPath } = this.#column;
    if (!this.#driver.isReturningSqlSupported('insert')) return returning;
    if (Array.isArray(returning)) return [...new Set([...returning, propertyPath])];
    return returning || [propertyPath];
  }

  /** The builder, with a query runner that learns the IDs from the INSERT, before TypeORM reads its result. */
  #watched() {
    const watched = Object.create(this.#builder);
    let isInsert = false;
    // execute() calls it right before the INSERT.
    watched.getQueryAndParameters = () => {
      isInsert = true;
      return this.#builder.getQueryAndParameters.call(watched);
    };
    const query = async (...args) => {
      const learns = isInsert;
      isInsert = false;
      const result = await this.#runner.query(...args);
      if (learns) await this.#learn(result);
      return result;
    };
    watched.queryRunner = new Proxy(this.#runner, {
      get: (runner, key) => (key === 'query' ? query : runner[key]),
    });
    return watched;
  }

  async #learn(result) {
    const drawn = this.#current();
    const key = this.#column.databaseName;
    // The caller's own RETURNING may lack the ID.
    const hasRows =
      this.#driver.isReturningSqlSupported('insert') &&
      Array.isArray(result.raw) &&
      result.raw.every((row) => Object.hasOwn(row, key));
    if (hasRows) {
      this.#rows = result.raw;
      this.#ids = idsOf(this.#rows, key, drawn);
      // TypeORM takes the first rows for those of the first entities.
      const byId = new Map(this.#rows.map((row) => [String(row[key]), row]));
      result.raw = this.#ids.map((id) => (byId.has(id) ? byId.get(id) : {}));
    }
    await this.#lookUp(drawn);
    // Without RETURNING, TypeORM loads defaults by the ID, and throws if there is none.
    this.#setIds(hasRows || this.#metadata.getInsertionReturningColumns().length === 0);
  }

  /** Looks for the rows of the entities whose IDs are unknown. */
  async #lookUp(drawn) {
    const unknown = drawn.map((_, at) => at).filter((at) => this.#ids[at] === undefined);
    for (let from = 0; from < unknown.length; from += ROWS_A_QUERY) {
      await this.#lookUpSome(unknown.slice(from, from + ROWS_A_QUERY), drawn);
    }
  }

  async #lookUpSome(unknown, drawn) {
    const columns = this.#conflictColumns();
    const builder = this.#runner.manager
      .createQueryBuilder(this.#metadata.target, 'met', this.#runner)
      .withDeleted()
      .select(`met.${this.#column.propertyPath}`, 'id');
    for (const [n, { propertyPath }] of columns.entries()) {
      builder.addSelect(`met.${propertyPath}`, `value_${n}`);
    }
    const ids = unknown.map((at) => drawn[at]).filter((id) => id !== undefined);
    if (ids.length > 0) builder.where(`met.${this.#column.propertyPath} IN (:...ids)`, { ids });
    /** By entity: its values in the columns of the conflict. */
    const keys = new Map();
    for (const at of unknown) {
      const values = columns.map((column) => this.#valueOf(this.#entities[at], column));
      if (columns.length === 0 || values.some((value) => value === undefined || value === null)) {
        continue;
      }
      keys.set(at, keyOf(values));
      const equal = columns.map(({ propertyPath }, n) => `met.${propertyPath} = :value_${at}_${n}`);
      const parameters = values.map((value, n) => [`value_${at}_${n}`, value]);
      builder.orWhere(`(${equal.join(' AND ')})`, Object.fromEntries(parameters));
    }
    if (ids.length === 0 && keys.size === 0) return;
    const found = new Set();
    const byKey = new Map();
    for (const { id, ...values } of await builder.getRawMany()) {
      found.add(String(id));
      byKey.set(keyOf(columns.map((_, n) => values[`value_${n}`])), String(id));
    }
    for (const at of unknown) {
      this.#ids[at] = found.has(drawn[at]) ? drawn[at] : byKey.get(keys.get(at));
    }
  }

  /** The columns whose values make an upsert meet a row. None if they are unknown. */
  #conflictColumns() {
    const { conflict } = this.#builder.expressionMap.onUpdate ?? NONE;
    if (!Array.isArray(conflict)) return [];
    const columns = conflict.map((name) => this.#metadata.findColumnWithDatabaseName(name));
    return columns.includes(undefined) ? [] : columns;
  }

  /** A value as a parameter; undefined if it is SQL. */
  #valueOf(entity, column) {
    const value = column.getEntityValue(entity);
    if (typeof value === 'function') return undefined;
    return this.#driver.preparePersistentValue(value, column);
  }

  /** @param leaveOut whether entities whose ID was drawn and is in no table lose it */
  #setIds(leaveOut) {
    for (const [at, entity] of this.#entities.entries()) {
      const id = this.#ids[at];
      const loses = id === undefined && leaveOut && !this.#isGiven[at];
      if (id !== undefined || loses) this.#column.setEntityValue(entity, id);
    }
  }

  /** The result, with the IDs that are known. */
  #corrected(result) {
    if (this.#rows !== undefined) result.raw = this.#rows;
    const known = (at) => this.#ids[at] !== undefined;
    result.identifiers = result.identifiers.map((_, at) =>
      known(at) ? this.#metadata.getEntityIdMap(this.#entities[at]) : undefined,
    );
    for (const [at, map] of result.generatedMaps.entries()) {
      if (this.#column.getEntityValue(map) !== undefined) {
        this.#column.setEntityValue(map, this.#ids[at]);
      }
    }
    return result;
  }
}

/** By entity: the ID of its row among those of RETURNING. */
function idsOf(rows, key, drawn) {
  const ids = rows.map((row) => String(row[key]));
  const returned = new Set(ids);
  const isInOrder = drawn.every((id, at) => id === ids[at] || !returned.has(id));
  if (rows.length === drawn.length && isInOrder) return ids;
  return drawn.map((id) => (returned.has(id) ? id : undefined));
}

/** Values of columns as a key: those of an entity and of its row give the same. */
function keyOf(values) {
  const texts = values.map((value) => (value instanceof Date ? value.toJSON() : String(value)));
  return JSON.stringify(texts);
}

module.exports = { reportingRealIds };
