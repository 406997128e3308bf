import type { LeaseStore, StoreOptions } from './store';

export interface GcsOptions extends StoreOptions {
  /** What the names of all objects begin with, without a slash at its end. Default `'snowdrift'`. */
  prefix?: string;
}

/**
 * A store in Google Cloud Storage. A record is an object, `PREFIX/NAMESPACE/...`, and each write has the condition
 * `ifGenerationMatch`. Before its first write, a lease tries that on the object `probe` of the namespace, and refuses an emulator that
 * ignores it with `ERR_SNOWFLAKE_CONFIG`. No lifecycle rule may delete current objects.
 *
 * Its account needs the role `roles/storage.objectUser` on the bucket: the rights `storage.objects.get`, `create`, `delete`, which an
 * overwrite needs, and `list`.
 *
 * Each write has its price, so that the `ttl` of a lease is three minutes by default. A killed host's slot is free that much later.
 *
 * Holds expire by the store's clock: the header `Date` of its replies, in whole seconds. snowdrift compares clocks to half a
 * second, so choose `maxClockSkew` of at least 1 s.
 *
 * As a URL of a lease: `gs://BUCKET/PREFIX?namespace=orders`, with the credentials that the client finds by itself.
 *
 * @param bucket a Bucket of `@google-cloud/storage`, version 7: `new Storage().bucket('ids')`. It must exist
 */
export function gcs(
  bucket: { name: string; file: unknown; getFiles: unknown },
  options?: GcsOptions,
): LeaseStore;
