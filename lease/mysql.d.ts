import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in MariaDB or MySQL. Its tables are made at need; those who do not allow that find them in
 * {@link sql}.
 *
 * @param client a pool or a connection of `mysql2` or `mysql2/promise`
 */
export function mysql(client: { query: unknown }, options?: StoreOptions): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
