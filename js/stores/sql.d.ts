import type { LeaseStore, SqlStoreOptions } from './store';

/** The dialects of SQL that {@link sql} has. */
export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

/** Any client of a SQL database. */
export interface SqlClient {
  /** `'mysql'` is also MariaDB's and TiDB's, `'postgres'` that of CockroachDB, `'sqlite'` libSQL's and D1's. */
  dialect: SqlDialect;

  /**
   * Runs one statement in a transaction of its own, and returns its rows as an array of objects. What it returns for statements
   * without rows does not matter. `values` are strings, one for each placeholder. It rejects if the statement fails.
   */
  query(text: string, values: string[]): unknown;

  /** How the client writes placeholders: default `'$1'`, `'$2'` for `'postgres'`, and `'?'` for the others. */
  placeholder?: '?' | '$1';
}

/**
 * A store in a SQL database, through any client: `postgres`, PGlite, Drizzle, Knex, Sequelize, MikroORM, Prisma, Kysely,
 * better-sqlite3, libSQL. Creates its table on first use. If the user may not do that, run {@link migration}. For `pg`, `mysql2` and
 * TypeORM take `postgres()`, `mysql()` and `typeorm()`: these make half the calls, and end those that take too long.
 *
 * ```js
 * const store = sql({
 *   dialect: 'postgres',
 *   query: async (text, values) => (await pool.query(text, values)).rows,
 * });
 * const flake = await SnowFlake.lease(store, { datacenterId: 1 });
 * ```
 *
 * `query` must reach the primary, and never be that of a transaction: a rollback would undo what the lease relies on. On PostgreSQL,
 * MariaDB and files of SQLite a transaction is `ERR_SNOWFLAKE_CONFIG`; MySQL tells only of `autocommit = 0`. A lease calls it
 * outside of the `AsyncLocalStorage` of your calls, so no client adds it to a transaction under way, as Sequelize does with CLS.
 *
 * A call that takes longer than `callTimeout` ends, but not its statement: set a limit in the client, too.
 *
 * For `schema` and durability, see `postgres()` and `mysql()`. SQLite has no `schema`.
 */
export function sql(client: SqlClient, options?: SqlStoreOptions): LeaseStore;

/** The SQL that creates the table, for a migration; in `schema`, as a store with that option finds it. */
export function migration(dialect: SqlDialect, options?: Pick<SqlStoreOptions, 'schema'>): string;
