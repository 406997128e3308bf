import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in PostgreSQL, 9.5 or later. Its tables are made at need; those who do not allow that find
 * them in {@link sql}.
 *
 * A Pool is better than a Client: a connection whose query was given up after `callTimeout` is destroyed,
 * and the next query gets another. Set its `connectionTimeoutMillis` and `keepAlive`, too: a Client whose
 * connection is half-open (packets vanish, without a reset) stays so.
 *
 * @param client a Pool or a Client of `pg`, outside of transactions
 */
export function postgres(client: { query: unknown }, options?: StoreOptions): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
