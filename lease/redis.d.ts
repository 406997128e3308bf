import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in Redis, 5 or later.
 *
 * A namespace is one key, `snowdrift:<namespace>`, a hash. Where there is none it cannot be told whether
 * there ever was one that was flushed, evicted or deleted while processes hold its slots. So what those
 * may issue is waited for: **the first leases of a namespace take `ttl` + `maxClockSkew` to come, 40 s by
 * default** (a warning `SNOWFLAKE_FLOOR` says so), and after a loss the living processes, which notice it
 * at their next renewal, refuse with `ERR_SNOWFLAKE_WINDOW` for as long. That rests on two things: one
 * `ttl` for all processes, and clocks not further apart than `maxClockSkew`. For tests on a fresh Redis
 * choose both small.
 *
 * It is as safe as what Redis keeps else: a write that it has confirmed and then loses alone (a crash
 * between two fsyncs, a failover to a replica that did not have it) is a floor that is lost, and IDs of
 * up to `ttl` can be issued again. Run it with `appendfsync always` and, with replicas,
 * `min-replicas-to-write 1`, and with `maxmemory-policy noeviction`, or lease from a database.
 *
 * A lease from a URL replaces a half-open connection (packets vanish, without a reset). A client of
 * `ioredis` does so with `connectTimeout` and `socketTimeout`. A client of `redis` does not while calls go
 * on: its socket timeout restarts with each.
 *
 * @param client a client of `ioredis`, or a connected one of `redis`
 */
export function redis(client: { eval: unknown }, options?: StoreOptions): LeaseStore;
