import type { LeaseStore, StoreOptions } from './store';

export interface MongoStoreOptions extends StoreOptions {
  /**
   * The database of the records, of a client. Default: that of the client's URL, which is `test` if it names none. Stores in
   * different databases are different stores, and may give equal IDs.
   */
  database?: string;
}

/**
 * A store in MongoDB, 4.4 or later, through the driver `mongodb`, 6 or 7. The server is a member of a replica set, and be it
 * the only one: another one refuses linearizable reads (`SNOWFLAKE_STORE`).
 *
 * A record is a document of the collection `snowdrift_records`. Writes wait for a majority of the members, on disk, whatever the
 * client's write concern is. Reads come from the primary, which confirms that it still is one.
 *
 * `now` is the clock of the primary, in ms.
 *
 * The driver gives a call up when its connection breaks, or when its monitor notices that the server is silent:
 * `heartbeatFrequencyMS` and `connectTimeoutMS`, 40 s by default.
 *
 * As a URL of a lease: `mongodb://user:password@h1,h2,h3/orders?replicaSet=rs0&namespace=orders`, or `mongodb+srv:`.
 *
 * @param client a `MongoClient` or a `Db` of the driver; of mongoose `mongoose.connection.getClient()`
 */
export function mongodb(
  client: { db: unknown } | { collection: unknown; command: unknown },
  options?: MongoStoreOptions,
): LeaseStore;
