import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in the database of an initialized TypeORM DataSource: PostgreSQL, MySQL, MariaDB or SQLite.
 * Its tables are made at need; those who do not allow that find them in {@link sql}.
 */
export function typeorm(
  dataSource: {
    options: { type: string };
    query(text: string, values?: unknown[]): Promise<unknown>;
  },
  options?: StoreOptions,
): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
