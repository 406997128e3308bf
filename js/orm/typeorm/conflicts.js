'use strict';
// Inserts that may conflict with an existing row: upsert(), orUpdate(), orIgnore(). Such a row keeps its ID, so the ID
// generated for the insert is in no table. After the statement, each entity gets the ID of its row, or none if that is
// unknown.
//
// RETURNING lists the rows in the order of the entities. Without it, or if it lacks a row, a query searches for the
// entities' IDs, and for rows with the same values in the columns of the conflict.

/**
 * @import { DataSource, EntityMetadata, InsertResult, ObjectLiteral, QueryRunner } from 'typeorm'
 * @import { InsertQueryBuilder } from 'typeorm'
 * @import { ColumnMetadata } from './columns.js'
 *
 * What is used of an InsertQueryBuilder, some of which is not public.
 * @typedef {object} Builder
 * @property {InsertQueryBuilder<ObjectLiteral>['expressionMap'] & { onConflict?: unknown }} expressionMap
 * @property {DataSource} [dataSource] absent in TypeORM 0.3
 * @property {DataSource} connection
 * @property {QueryRunner} [queryRunner]
 * @property {() => QueryRunner} obtainQueryRunner
 * @property {() => ObjectLiteral[]} getValueSets
 * @property {() => [string, ObjectLiteral]} getQueryAndParameters
 *
 * @typedef {(this: Builder) => Promise<InsertResult>} Execute
 * @typedef {Record<string, unknown>} Row
 */

const { isSnowFlakeColumn } = require('./columns.js');
const { NONE } = require('../../ids/properties.js');

/**
 * Wraps InsertQueryBuilder's execute().
 * @param {Execute} execute
 * @returns {Execute}
 */
function reportingRealIds(execute) {
  return async function executeAndReport() {
    const { mainAlias, onIgnore, onUpdate, onConflict, insertFromSelect } = this.expressionMap;
    const meetsRows = (onIgnore || onUpdate || onConflict) && !insertFromSelect;
    const metadata = meetsRows && mainAlias?.hasMetadata ? mainAlias.metadata : undefined;
    const column = metadata?.primaryColumns.find(isSnowFlakeColumn);
    if (metadata === undefined || column === undefined) return execute.call(this);
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
  /**
   * The ID of the row, for each entity; undefined if it is unknown.
   * @type {(string | undefined)[]}
   */
  #ids = [];
  /**
   * The rows of RETURNING.
   * @type {Row[] | undefined}
   */
  #rows;

  /**
   * @param {Builder} builder
   * @param {EntityMetadata} metadata
   * @param {ColumnMetadata} column
   * @param {QueryRunner} runner
   */
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

  /** @param {Execute} execute */
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

  /** @returns {(string | undefined)[]} */
  #current() {
    return this.#entities.map((entity) => this.#column.getEntityValue(entity) ?? undefined);
  }

  /**
   * The columns of RETURNING, with the ID.
   * @param {string | string[]} returning
   */
  #withId(returning) {
    const { propertyPath } = this.#column;
    if (!this.#driver.isReturningSqlSupported('insert')) return returning;
    if (Array.isArray(returning)) return [...new Set([...returning, propertyPath])];
    return returning || [propertyPath];
  }

  /** The builder with a query runner that reads the IDs from the INSERT's result before TypeORM does. */
  #watched() {
    /** @type {Builder} */
    const watched = Object.create(this.#builder);
    let isInsert = false;
    // execute() calls this right before the INSERT.
    watched.getQueryAndParameters = () => {
      isInsert = true;
      return this.#builder.getQueryAndParameters.call(watched);
    };
    /** @param {Parameters<QueryRunner['query']>} args */
    const query = async (...args) => {
      const learns = isInsert;
      isInsert = false;
      const result = await this.#runner.query(...args);
      if (learns) await this.#learn(result);
      return result;
    };
    watched.queryRunner = new Proxy(this.#runner, {
      get: (runner, key) => (key === 'query' ? query : Reflect.get(runner, key)),
    });
    return watched;
  }

  /** @param {{ raw: unknown }} result */
  async #learn(result) {
    const drawn = this.#current();
    const key = this.#column.databaseName;
    const { raw } = result;
    // The caller's own RETURNING may lack the ID.
    const hasRows =
      this.#driver.isReturningSqlSupported('insert') &&
      Array.isArray(raw) &&
      raw.every((row) => Object.hasOwn(row, key));
    if (hasRows) {
      this.#rows = /** @type {Row[]} */ (raw);
      this.#ids = idsOf(this.#rows, key, drawn);
      // TypeORM assigns the rows to the entities by their order.
      /** @type {Map<string | undefined, Row>} */
      const byId = new Map(this.#rows.map((row) => [String(row[key]), row]));
      result.raw = this.#ids.map((id) => (byId.has(id) ? byId.get(id) : {}));
    }
    await this.#lookUp(drawn);
    // Without RETURNING, TypeORM loads defaults by the ID, and throws if there is none.
    this.#setIds(hasRows || this.#metadata.getInsertionReturningColumns().length === 0);
  }

  /**
   * Searches for the rows of entities with unknown IDs.
   * @param {(string | undefined)[]} drawn
   */
  async #lookUp(drawn) {
    const unknown = drawn.map((_, at) => at).filter((at) => this.#ids[at] === undefined);
    for (let from = 0; from < unknown.length; from += ROWS_A_QUERY) {
      await this.#lookUpSome(unknown.slice(from, from + ROWS_A_QUERY), drawn);
    }
  }

  /**
   * @param {number[]} unknown
   * @param {(string | undefined)[]} drawn
   */
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
    const columns = conflict.flatMap(
      (name) => this.#metadata.findColumnWithDatabaseName(name) ?? [],
    );
    return columns.length === conflict.length ? columns : [];
  }

  /**
   * A value as a parameter of a query; undefined if it is SQL.
   * @param {ObjectLiteral} entity
   * @param {ColumnMetadata} column
   * @returns {unknown}
   */
  #valueOf(entity, column) {
    const value = column.getEntityValue(entity);
    if (typeof value === 'function') return undefined;
    return this.#driver.preparePersistentValue(value, column);
  }

  /** @param {boolean} leaveOut whether to remove generated IDs that are in no table */
  #setIds(leaveOut) {
    for (const [at, entity] of this.#entities.entries()) {
      const id = this.#ids[at];
      const loses = id === undefined && leaveOut && !this.#isGiven[at];
      if (id !== undefined || loses) this.#column.setEntityValue(entity, id);
    }
  }

  /**
   * The result, with the IDs that are known.
   * @param {InsertResult} result
   */
  #corrected(result) {
    if (this.#rows !== undefined) result.raw = this.#rows;
    const known = (/** @type {number} */ at) => this.#ids[at] !== undefined;
    const identifiers = result.identifiers.map((_, at) =>
      known(at) ? this.#metadata.getEntityIdMap(this.#entities[at]) : undefined,
    );
    // TypeORM declares none that is undefined.
    result.identifiers = /** @type {ObjectLiteral[]} */ (identifiers);
    for (const [at, map] of result.generatedMaps.entries()) {
      if (this.#column.getEntityValue(map) !== undefined) {
        this.#column.setEntityValue(map, this.#ids[at]);
      }
    }
    return result;
  }
}

/**
 * The ID of each entity's row among the rows of RETURNING.
 * @param {Row[]} rows
 * @param {string} key
 * @param {(string | undefined)[]} drawn
 */
function idsOf(rows, key, drawn) {
  const ids = rows.map((row) => String(row[key]));
  /** @type {Set<string | undefined>} */
  const returned = new Set(ids);
  const isInOrder = drawn.every((id, at) => id === ids[at] || !returned.has(id));
  if (rows.length === drawn.length && isInOrder) return ids;
  return drawn.map((id) => (returned.has(id) ? id : undefined));
}

/**
 * Values of columns as a key. An entity and its row have the same key.
 * @param {unknown[]} values
 */
function keyOf(values) {
  const texts = values.map((value) => (value instanceof Date ? value.toJSON() : String(value)));
  return JSON.stringify(texts);
}

module.exports = { reportingRealIds };
