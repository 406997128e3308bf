import type { LeaseStore, StoreOptions } from './store';

/**
 * A store in Redis, 5 or later.
 *
 * A namespace is one hash, `snowdrift:<namespace>:records`, so its records are kept or lost together. Redis can
 * lose it (a flush, an eviction, a restart without a file), so a missing namespace counts as lost: **the first
 * lease of each 32 worker IDs waits for `ttl` + 2 x `maxClockSkew` + `maxAhead`, 50 s by default** (warning
 * `SNOWFLAKE_FLOOR`). By then the clock has passed all ticks of earlier holders. Holders notice a loss at their
 * next renewal (warning `SNOWFLAKE_NAMESPACE_LOST`), and stop for that long. There are no duplicates.
 * `npx snowdrift recover URL --new` creates a new namespace ahead, without the wait.
 *
 * Redis can also return to an older state: after a crash between two fsyncs, or a failover to a lagging replica.
 * New holders cannot notice that, and can issue duplicates of other holders' IDs until these renew. After a failover,
 * run `npx snowdrift recover`. Run Redis with `appendfsync always`, `maxmemory-policy noeviction` and, with
 * replicas, `min-replicas-to-write 1`. Or lease from a database.
 *
 * A lease stays in the database that the client has selected when it opens, whatever the client selects later. The
 * server says which one that is (`CLIENT INFO`, since Redis 6.2). A user without that right, or an older Redis: the one that
 * `ioredis` has selected, or that the options of `redis` name.
 *
 * A lease from a URL replaces a half-open connection (packets vanish without a reset). A client of `ioredis`
 * does so with `connectTimeout: 5000`, `socketTimeout: 5000` and `keepAlive: 10_000`. A client of `redis` does not, since each
 * call restarts its socket timeout.
 *
 * On Redis Cluster all records of a namespace are on one master. After a failover calls fail until its replica has taken its place and
 * the client has found it: a few seconds longer than `cluster-node-timeout`.
 *
 * As a URL of a lease: `redis://user:password@host:6379/0?namespace=orders`, `rediss:` with TLS, and
 * `redis://user:password@h1:6379,h2:6379?cluster=true` for a cluster.
 *
 * @param client a client or a `Cluster` of `ioredis`, or a connected client or `createCluster()` of `redis`
 */
export function redis(client: { eval: unknown }, options?: StoreOptions): LeaseStore;
