import type { LeaseStore, StoreOptions } from './store';

export interface S3Options extends StoreOptions {
  /** The bucket. It must exist. */
  bucket: string;
  /** What the keys of all objects begin with, without a slash at its end. Default `'snowdrift'`. */
  prefix?: string;
}

/**
 * A store in S3, or in one of its protocol with conditional writes: R2, MinIO. Before its first write, it tries whether the store
 * keeps the conditions of `PutObject`, and refuses one that does not with `ERR_SNOWFLAKE_CONFIG`. The object `probe` of the
 * namespace is for that.
 *
 * A record is an object, `PREFIX/NAMESPACE/...`. No lifecycle rule may delete one. In a bucket with versions, let a rule delete those
 * that are not current.
 *
 * Its role needs `s3:GetObject` and `s3:PutObject` on `PREFIX/*`, and `s3:ListBucket` on the bucket: without that, S3 denies to
 * read what is not there.
 *
 * Each write has its price, so that the `ttl` of a lease is three minutes by default. A killed host's slot is free that much later.
 *
 * Holds expire by the store's clock: the header `Date` of its replies, in whole seconds. snowdrift compares clocks to half a
 * second, so choose `maxClockSkew` of at least 1 s.
 *
 * As a URL of a lease: `s3://BUCKET/PREFIX?region=eu-central-1&namespace=orders`, with `endpoint=https://...` for another
 * service. The client finds its credentials as always: no URL has any.
 *
 * @param client an S3Client of `@aws-sdk/client-s3`, version 3.703 or later; the package is loaded at the first call
 */
export function s3(client: { send: unknown }, options: S3Options): LeaseStore;
