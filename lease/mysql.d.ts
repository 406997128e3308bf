import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in MariaDB or MySQL. Its tables are created on first use; where that is not allowed, {@link sql}
 * has them.
 *
 * What a lease records must be committed and durable when the database answers. A connection with
 * `autocommit = 0`, or inside a transaction, is refused (`ERR_SNOWFLAKE_CONFIG`), at each call.
 * `innodb_flush_log_at_trx_commit` other than 1, and a failover to a replica that lags, can lose what was
 * confirmed: after one, run `npx snowdrift recover`.
 *
 * A pool is better than a connection: one whose query was given up after `callTimeout` is destroyed, and
 * the next query gets another. Set its `connectTimeout`, too.
 *
 * @param client a pool or a connection of `mysql2` or `mysql2/promise`
 */
export function mysql(client: { query: unknown }, options?: StoreOptions): LeaseStore;

/** The tables, as a migration. */
export function sql(dialect: 'postgres' | 'mysql' | 'sqlite'): string;
