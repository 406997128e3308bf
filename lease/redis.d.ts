import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in Redis, 5 or later.
 *
 * It is as safe as what Redis keeps: a write that it has confirmed and then loses (a crash between two
 * fsyncs, a failover to a replica that did not have it, FLUSHALL, an eviction) is a floor that is lost,
 * and IDs of up to `ttl` can be issued again. Run it with `appendfsync always` and
 * `maxmemory-policy noeviction`, or lease from a database.
 *
 * @param client a client of `ioredis`, or a connected one of `redis`
 */
export function redis(client: { eval: unknown }, options?: StoreOptions): LeaseStore;
