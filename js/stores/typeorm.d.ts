import type { LeaseStore, SqlStoreOptions } from './store';

/**
 * A store in the database of an initialized TypeORM DataSource: PostgreSQL, MySQL or MariaDB. Creates
 * its table on first use. If the user may not do that, run {@link sql} as a migration.
 *
 * For `schema`, durability and connections, see `postgres()` and `mysql()`. On SQLite, lease from a directory instead.
 */
export function typeorm(
  dataSource: {
    options: { type: string };
    driver: unknown;
    createQueryRunner(): {
      readonly isTransactionActive: boolean;
      connect(): Promise<unknown>;
      query(text: string, values?: unknown[]): Promise<unknown>;
      release(): Promise<void>;
    };
  },
  options?: SqlStoreOptions,
): LeaseStore;

/** The SQL that creates the table, for a migration; in `schema`, as a store with that option finds it. */
export function sql(
  dialect: 'postgres' | 'mysql',
  options?: Pick<SqlStoreOptions, 'schema'>,
): string;
