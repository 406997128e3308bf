import type { WorkerNodeStore } from './store';

/**
 * A store in UidGenerator's table `WORKER_NODE`. Each lease inserts a row, whose auto-increment ID is its worker
 * ID, so no worker ID is used twice. Creates the table on first use. A table of UidGenerator's own DDL works
 * unchanged, and Java and Node can share it.
 *
 * ```js
 * const layout = { ...layouts.uid, epoch: Date.UTC(2026, 0) }
 * const flake = await SnowFlake.lease(workerNode(pool), { layout, clockBack: 'throw', maxWait: 2000 })
 * ```
 *
 * When the 8,192 IDs of a second are exhausted, `maxWait` lets a call wait for the next one, as UidGenerator does.
 *
 * Nobody else ever has such a worker ID, so the instance may borrow future seconds, as UidGenerator does:
 * `maxAhead`.
 *
 * Holds do not expire, so `expires` is null. No holder depends on the limits of another. A connection that does not commit is `ERR_SNOWFLAKE_CONFIG`.
 *
 * **An emptied or restored table assigns worker IDs again.** Set its auto-increment above the highest one before
 * other processes start. Each holder looks for its row when it renews, and without it warns with
 * `SNOWFLAKE_NAMESPACE_LOST`, stops, and continues with another row after `ttl` + 2 x `maxClockSkew` + `maxAhead`.
 * Java processes do not notice. Old rows may be deleted, but not the highest one.
 *
 * The layout must have no `datacenterBits`. A row ID beyond its `workerBits` is `ERR_SNOWFLAKE_NO_SLOT`: with
 * the 22 bits of `uid`, after 4,194,303 starts.
 *
 * @param pool a pool of `mysql2`, `mysql2/promise` or `pg`
 * @param options.type the column TYPE: 'container' is 1, 'actual' (default) is 2
 * @param options.host the column HOST_NAME, up to 64 characters. Default: this host's name
 * @param options.port the column PORT, up to 64 characters. Default: the process's start and pid
 * @param options.schema the schema of the table; on MySQL and MariaDB, the database. Default: that of the connection when the
 *   lease opens
 */
export function workerNode(
  pool: { connect: unknown; totalCount: number } | { getConnection: unknown },
  options?: { type?: 'container' | 'actual'; host?: string; port?: string; schema?: string },
): WorkerNodeStore;
