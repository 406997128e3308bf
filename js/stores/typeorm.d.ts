import type { LeaseStore, SqlStoreOptions } from './store';

/**
 * A store in the database of an initialized TypeORM DataSource: PostgreSQL, MySQL or MariaDB. Creates
 * its table on first use. If the user may not do that, run `migration()` of `snowdrift/lease/sql` as a migration.
 *
 * For `schema`, durability and connections, see `postgres()` and `mysql()`. Pass the driver's settings in `extra`, on PostgreSQL also
 * `query_timeout: 5000`. On SQLite, lease from a directory instead.
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
