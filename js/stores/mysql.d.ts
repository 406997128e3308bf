import type { LeaseStore, SqlStoreOptions } from './store';

/**
 * A store in MariaDB or MySQL. Creates its table on first use. If the user may not do that, run `migration()` of `snowdrift/lease/sql`
 * as a migration. Without the option `schema`, the table is in the connection's database when the lease opens. A later `USE`
 * changes nothing.
 *
 * The database must have committed a record durably when it answers. A connection with `autocommit = 0`, or
 * inside a transaction, is `ERR_SNOWFLAKE_CONFIG` at each call. A crash with
 * `innodb_flush_log_at_trx_commit` other than 1, or a failover to a lagging replica, can lose confirmed
 * records: run `npx snowdrift recover` after either.
 *
 * If a query takes longer than `callTimeout`, the lease destroys its connection, and the pool opens another one. Set the
 * pool's `connectTimeout: 5000`, too. A single connection is refused: it never connects again.
 *
 * @param pool a pool of `mysql2` or `mysql2/promise`
 */
export function mysql(pool: { getConnection: unknown }, options?: SqlStoreOptions): LeaseStore;
