import type { LeaseStore, SqlStoreOptions } from './store';

/**
 * A store in PostgreSQL, 10 or later. Creates its table on first use. If the user may not do that, run
 * `migration()` of `snowdrift/lease/sql` as a migration. Without the option `schema`, the table is the one that `search_path` finds when the lease opens,
 * else a new one in its first schema. A later `SET search_path` changes nothing.
 *
 * The database must have committed a record durably when it answers. A connection inside a transaction is
 * `ERR_SNOWFLAKE_CONFIG` at each call. A crash with `synchronous_commit = off`, or a failover to a lagging
 * replica, can lose confirmed records: run `npx snowdrift recover` after either.
 *
 * If a query takes longer than `callTimeout`, the lease destroys its connection, and the Pool opens another one. Set its
 * `connectionTimeoutMillis: 5000` and `keepAlive: true`, too. A Client is refused: it never connects again.
 *
 * @param pool a Pool of `pg`
 */
export function postgres(
  pool: { connect: unknown; totalCount: number },
  options?: SqlStoreOptions,
): LeaseStore;
