/** A record of a store. */
export interface LeaseRecord {
  /** 16 hex digits that the caller has chosen at random for this write. */
  token: string;
  /** Lines of Unicode text, with a line feed between two and no other control characters: 1 byte to 16 KiB in UTF-8. */
  text: string;
}

/** Options of each call. */
export interface CallOptions {
  /**
   * When it aborts, the call rejects at once. A write that was sent may still take effect. If it has aborted before the call, the
   * call rejects and does nothing.
   */
  signal: AbortSignal;
}

/**
 * A store for leases. You may pass your own to `SnowFlake.lease()`: any object with these functions. `snowdrift/lease/contract` has
 * the tests that it must pass.
 *
 * It has records under keys, in one namespace, and replaces them by compare-and-set. Stores of other namespaces do not see them.
 *
 * A key is `namespace`, or two numbers such as `0/12`, a datacenter and a bucket: at most 40 characters. Tokens and texts come back
 * byte for byte: case, trailing spaces and the form of an accent count.
 *
 * `read` and what a write has found are linearizable: they show each write that was confirmed before the call. So they
 * ask the primary, in a transaction of their own. A call rejects rather than return less.
 *
 * `now` in a reply is the store's clock during the call, in Unix ms. A reply may leave it out.
 *
 * A lease makes its calls outside of the `AsyncLocalStorage` of your calls, so that no client adds them to a transaction under way.
 */
export interface LeaseStore {
  /** A name for errors and logs: 1 to 500 characters. One with a login or a password is refused. */
  readonly name: string;

  /** Whether the store can lose records by itself (Redis: eviction, a restart without a file). Default false. */
  readonly mayForget?: boolean;

  /**
   * The number of worker IDs that share a record: 32 by default. A host renews its worker ID by writing the whole record, of about
   * 120 bytes for each worker ID that was ever held. 8 is better where the store keeps every version, or where a call takes
   * 100 ms and more: fewer hosts then write the same record. The first lease of a namespace decides.
   */
  readonly bucketSize?: 1 | 8 | 32;

  /**
   * The `ttl` of leases whose options have none, in ms: 30,000 by default. More is better where each write has its price. The slot of
   * a killed host is free that much later.
   */
  readonly ttl?: number;

  /** Reads the record under a key. */
  read(
    key: string,
    options: CallOptions,
  ): Promise<{ record: LeaseRecord | undefined; now?: number }>;

  /**
   * In one atomic step, replaces the record whose token is `before`; if `before` is undefined, creates the record where there is
   * none. Otherwise it changes nothing and returns the record that it found.
   *
   * The token is the condition, and not a version that the store counts: such a counter returns to earlier values after a
   * restore.
   *
   * If the record already is `record`, token and text, an earlier attempt has written it, and its reply was lost: that is
   * `isWritten: true`. It must resolve only when the record is durable.
   */
  write(
    key: string,
    record: LeaseRecord,
    before: string | undefined,
    options: CallOptions,
  ): Promise<
    | { isWritten: true; now?: number }
    | { isWritten: false; found: LeaseRecord | undefined; now?: number }
  >;

  /** The store's clock, in Unix ms. */
  now(options: CallOptions): Promise<number>;

  /**
   * Returns the names of the store's namespaces. A lease that creates its namespace calls it once, and warns if there are
   * others (`SNOWFLAKE_NAMESPACE_NEW`): the name may be misspelt. Leave it out if the store has no namespaces.
   */
  namespaces?(options: CallOptions): Promise<string[]>;

  /**
   * Shows people that a process holds a slot, after it has taken or renewed it, or without `holder` that it no longer does.
   * The lease does not wait for it, and ignores what it throws. What is shown ends with the store's connection.
   */
  show?(
    slot: { datacenterId: number; workerId: number },
    holder: { host: string; address: string | undefined; pid: number; started: string } | undefined,
    options: CallOptions,
  ): Promise<void>;

  /**
   * Ends the store's own connection. Calls in flight settle, also those that wait for a connection. A second call does
   * nothing.
   */
  close?(): Promise<void>;
}

/** The argument of an AssigningStore's `assign`. */
export interface AssignRequest {
  /** The datacenter of the lease. */
  datacenterId: number;
  /** The number of worker IDs of the layout. The returned one must be below it. */
  workerIds: number;
  /** Aborts after `callTimeout`: the worker ID is not used then. */
  signal: AbortSignal;
}

/**
 * Numbers workers by your own function, as UidGenerator's WorkerIdAssigner: pass it to `SnowFlake.lease()`.
 *
 * ```js
 * const store = { name: 'zoo', assign: async ({ signal }) => nextNumber({ signal }) }
 * const flake = await SnowFlake.lease(store, { layout: 'uid', epoch: Date.UTC(2026, 0) })
 * ```
 *
 * **Two equal worker IDs may give equal IDs**, since snowdrift records nothing. `assign` must return a worker ID that no
 * process had before, as a sequence of a database does. One that it returned before in this thread is
 * `ERR_SNOWFLAKE_STORE`, and so is any value but an integer from 0 to `workerIds` - 1.
 *
 * Each lease calls it once, and again after it has lost its page. A rejection, or no result within `callTimeout`, is
 * `ERR_SNOWFLAKE_STORE`. Each lease belongs to one process: the option `scope: 'host'` is refused. Nothing expires, so
 * `lease.expires` is null.
 */
export interface AssigningStore {
  /** A name for errors and logs: 1 to 500 characters. One with a login or a password is refused. */
  readonly name: string;

  /** Returns a worker ID that nobody had before. It must not lease from this store. */
  assign(request: AssignRequest): number | Promise<number>;
}

/** The store of `workerNode()`. */
export interface WorkerNodeStore {
  readonly name: string;
  readonly scope: 'process';
}

export interface StoreOptions {
  /**
   * The records of one layout and epoch, apart from those of other namespaces. 1 to 64 letters, digits, '_', '.'
   * or '-'; default `'default'`.
   */
  namespace?: string;
}

/** Options of a store in a SQL database. */
export interface SqlStoreOptions extends StoreOptions {
  /**
   * The schema of the table; on MySQL and MariaDB, the database. It must exist. 1 to 63 bytes in UTF-8, without `?` and control
   * characters; it is quoted as it is, so case matters. Default: that of the connection when the lease opens.
   *
   * ORMs that drop tables they do not know (TypeORM's `dropSchema: true`, Prisma's `migrate reset`) leave other schemas
   * alone. Stores in different schemas are different stores, and may give equal IDs.
   */
  schema?: string;
}
