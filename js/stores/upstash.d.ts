import type { LeaseStore, StoreOptions } from './store';

/**
 * A store in Upstash's Redis by HTTP, through `@upstash/redis`, 1.34 or later: for functions and hosts that reach no other port.
 *
 * What is said of `redis()` is true of it. Upstash replicates what it has confirmed afterwards, so a new leader may lack the last
 * writes. Turn eviction off.
 *
 * A namespace is the hash `snowdrift:<namespace>:records`, as that of `redis()` is.
 *
 * As a URL of a lease: `upstash:///?namespace=orders` takes `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN` from the
 * environment, and `upstash://:TOKEN@host` has both.
 *
 * @param client a `Redis` of `@upstash/redis`
 */
export function upstash(
  client: { eval: unknown; time: unknown },
  options?: StoreOptions,
): LeaseStore;
