import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in Redis, 5 or later.
 *
 * A namespace is one key, `snowdrift:<namespace>`, a hash: its record and all its slots are kept or lost
 * together. Redis can lose it (flushed, evicted, deleted, a restart without a file), so a namespace that
 * is missing counts as lost, and its first holders wait until all that earlier holders can have been
 * confirmed has passed: **the first leases of a namespace take `ttl` + `maxClockSkew` + `maxAhead`, 40 s
 * by default** (a warning `SNOWFLAKE_FLOOR` says so). After a loss, living holders notice it at their
 * next renewal (a warning `SNOWFLAKE_NAMESPACE_LOST`), and refuse for as long. No ID repeats meanwhile.
 *
 * A write that Redis confirmed and then lost alone (a crash between two fsyncs, a failover to a replica
 * that did not have it) leaves a namespace that is older than it was. New holders cannot see that, and
 * can repeat IDs until a living holder renews. Run Redis with `appendfsync always`, with
 * `maxmemory-policy noeviction` and, with replicas, `min-replicas-to-write 1`, or lease from a database.
 *
 * A lease from a URL replaces a half-open connection (packets vanish, without a reset). A client of
 * `ioredis` does so with `connectTimeout` and `socketTimeout`. A client of `redis` does not while calls go
 * on: its socket timeout restarts with each.
 *
 * @param client a client of `ioredis`, or a connected one of `redis`
 */
export function redis(client: { eval: unknown }, options?: StoreOptions): LeaseStore;
