import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in the database of an initialized TypeORM DataSource: PostgreSQL, MySQL, MariaDB or SQLite.
 * Its tables are created on first use; where that is not allowed, {@link sql} has them.
 *
 * What is said of connections on the pages of PostgreSQL and MySQL holds here, too. On SQLite a transaction
 * of the DataSource is refused, since all of its queries share one connection.
 */
export function typeorm(
  dataSource: {
    options: { type: string };
    query(text: string, values?: unknown[]): Promise<unknown>;
    createQueryRunner(): { readonly isTransactionActive: boolean };
  },
  options?: StoreOptions,
): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
