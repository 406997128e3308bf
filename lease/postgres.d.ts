import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in PostgreSQL, 10 or later. Its tables are created on first use; where that is not allowed,
 * {@link sql} has them.
 *
 * What a lease records must be committed and durable when the database answers. A connection inside a
 * transaction is refused (`ERR_SNOWFLAKE_CONFIG`), at each call. `synchronous_commit = off`, and a failover
 * to a replica that lags, can lose what was confirmed: after one, run `npx snowdrift recover`.
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
