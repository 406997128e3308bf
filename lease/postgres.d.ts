import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in PostgreSQL, 10 or later. Its tables are created on first use; where that is not allowed,
 * {@link sql} has them.
 *
 * What a lease records must be committed and durable when the database answers. A connection inside a
 * transaction is refused (`ERR_SNOWFLAKE_CONFIG`), at each call. A crash with `synchronous_commit =
 * off`, and a failover to a replica that lags, can lose what was confirmed: after either, run `npx snowdrift
 * recover`.
 *
 * Prefer a Pool to a Client: a lease destroys a pool's connection whose query took longer than
 * `callTimeout`, and the next query gets another. Set its `connectionTimeoutMillis` and `keepAlive`, too. A
 * Client with a half-open connection (packets vanish, without a reset) is not replaced.
 *
 * @param client a Pool or a Client of `pg`, outside of transactions
 */
export function postgres(client: { query: unknown }, options?: StoreOptions): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
