import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in MariaDB or MySQL. Its tables are made at need; those who do not allow that find them in
 * {@link sql}.
 *
 * A pool is better than a connection: one whose query was given up after `callTimeout` is destroyed, and
 * the next query gets another. Set its `connectTimeout`, too.
 *
 * @param client a pool or a connection of `mysql2` or `mysql2/promise`
 */
export function mysql(client: { query: unknown }, options?: StoreOptions): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
