import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in Redis, 5 or later.
 *
 * A namespace is one key, `snowdrift:<namespace>`, a hash: its record and all its slots are kept or lost
 * together. Redis can lose it (flushed, evicted, deleted, a restart without a file), so a namespace that
 * is missing counts as lost. Its first holders wait until the clock has passed all that earlier holders can
 * have issued: **the first leases of a namespace take `ttl` + `maxClockSkew` + `maxAhead`, 40 s
 * by default** (a warning `SNOWFLAKE_FLOOR` says so). Living holders notice a loss at their next
 * renewal (a warning `SNOWFLAKE_NAMESPACE_LOST`), and stop for as long. No ID repeats. `npx snowdrift create
 * URL --new` creates a new namespace ahead, so that nobody waits.
 *
 * Redis can also return to an older state of a namespace: after a crash between two fsyncs, or a failover to
 * a replica that lags. New holders cannot see that, and can repeat IDs of living holders until these renew.
 * After a failover, run `npx snowdrift recover`. Run Redis with `appendfsync always`, with
 * `maxmemory-policy noeviction` and, with replicas, `min-replicas-to-write 1`, or lease from a database.
 *
 * A lease from a URL replaces a half-open connection (packets vanish, without a reset). A client of
 * `ioredis` does so with `connectTimeout` and `socketTimeout`. A client of `redis` does not: each
 * call restarts its socket timeout.
 *
 * @param client a client of `ioredis`, or a connected one of `redis`
 */
export function redis(client: { eval: unknown }, options?: StoreOptions): LeaseStore;
