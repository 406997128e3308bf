'use strict';
// Inserts that may conflict with an existing row: upsert(), orUpdate(), orIgnore(). Such a row keeps its ID, so the ID
// generated for the insert is in no table. After the statement, each entity gets the ID of its row, or none if that is
// unknown.
//
// RETURNING lists the rows in the order of the entities. Without it, or if it lacks a row, a query searches for the
// entities' IDs, and for rows with the same values in the columns of the conflict.

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
      return await new ConflictingInsert(this, metadata, column, runner).run(execute);
    } finally {
      // As execute() does with its own runner.
      if (runner !== this.queryRunner) await runner.release();
    }
  };
}

/** The most rows of one query. SQLite permits 1,000 ORs. */
const ROWS_A_QUERY = 500;

class ConflictingInsert {
  #builder;
  #metadata;
  #column;
  #runner;
  #driver;
  #entities;
  /** Whether the caller set the ID, for each entity. */
  #isGiven;
  /** The ID of the row, for each entity; undefined if it is unknown. */
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
      // Sets the IDs again, since TypeORM may have confused rows that it loaded.
      this.#setIds(true);
      return this.#corrected(result);
    } catch (error) {
      // Removes the generated IDs: another upsert with them would change the ID of the row.
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

  /** The columns of RETURNING, with the ID. */
  #withId(returning) {
    const { propertyPath } = this.#column;
    if (!this.#driver.isReturningSqlSupported('insert')) return returning;
    if (Array.isArray(returning)) return [...new Set([...returning, propertyPath])];
    return returning || [propertyPath];
  }

  /** The builder with a query runner that reads the IDs from the INSERT's result before TypeORM does. */
  #watched() {
    const watched = Object.create(this.#builder);
    let isInsert = false;
    // execute() calls this right before the INSERT.
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
      // TypeORM assigns the rows to the entities by their order.
      const byId = new Map(this.#rows.map((row) => [String(row[key]), row]));
      result.raw = this.#ids.map((id) => (byId.has(id) ? byId.get(id) : {}));
    }
    await this.#lookUp(drawn);
    // Without RETURNING, TypeORM loads defaults by the ID, and throws if there is none.
    this.#setIds(hasRows || this.#metadata.getInsertionReturningColumns().length === 0);
  }

  /** Searches for the rows of entities with unknown IDs. */
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
    /** The values in the columns of the conflict, for each entity. */
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

  /** The columns of an upsert's conflict; empty if they are unknown. */
  #conflictColumns() {
    const { conflict } = this.#builder.expressionMap.onUpdate ?? NONE;
    if (!Array.isArray(conflict)) return [];
    const columns = conflict.map((name) => this.#metadata.findColumnWithDatabaseName(name));
    return columns.includes(undefined) ? [] : columns;
  }

  /** A value as a parameter of a query; undefined if it is SQL. */
  #valueOf(entity, column) {
    const value = column.getEntityValue(entity);
    if (typeof value === 'function') return undefined;
    return this.#driver.preparePersistentValue(value, column);
  }

  /** @param leaveOut whether to remove generated IDs that are in no table */
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

/** The ID of each entity's row among the rows of RETURNING. */
function idsOf(rows, key, drawn) {
  const ids = rows.map((row) => String(row[key]));
  const returned = new Set(ids);
  const isInOrder = drawn.every((id, at) => id === ids[at] || !returned.has(id));
  if (rows.length === drawn.length && isInOrder) return ids;
  return drawn.map((id) => (returned.has(id) ? id : undefined));
}

/** Values of columns as a key. An entity and its row have the same key. */
function keyOf(values) {
  const texts = values.map((value) => (value instanceof Date ? value.toJSON() : String(value)));
  return JSON.stringify(texts);
}

module.exports = { reportingRealIds };
