import type { LeaseStore } from './store';

/**
 * UidGenerator's worker IDs: each lease inserts a row into its `WORKER_NODE` table, whose
 * auto-increment ID is the worker ID, never to be given out again. The table is made at need; one
 * that was made by UidGenerator's own DDL works as it is, and Java and Node can share it.
 *
 * ```js
 * const layout = { ...layouts.uid, epoch: Date.UTC(2026, 0) }
 * const flake = await SnowFlake.lease(workerNode(pool), { layout, clockBack: 'throw' })
 * ```
 *
 * `open()` and `raise()` record nothing, as the table is UidGenerator's own and no holder counts on the
 * limits of another; holds do not expire, so `expires` is null. That a table was emptied is not noticed:
 * choose a later epoch then. A connection that does not commit is refused (`ERR_SNOWFLAKE_CONFIG`).
 *
 * The layout must have no datacenterBits. An ID past its workerBits is `ERR_SNOWFLAKE_NO_SLOT`: with
 * the 22 bits of `uid`, after 4,194,303 starts.
 *
 * @param client a pool of `mysql2`, `mysql2/promise` or `pg`
 * @param options.type UidGenerator's TYPE: 'container' is 1, 'actual' (default) is 2
 * @param options.host HOST_NAME; default: this host's name. Up to 64 characters
 * @param options.port PORT; default: the process's start and pid. Up to 64 characters
 */
export function workerNode(
  client: { query: unknown },
  options?: { type?: 'container' | 'actual'; host?: string; port?: string },
): LeaseStore;
