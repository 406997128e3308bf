/**
 * What a lease needs of a store. An application may bring its own: any object with these functions,
 * passed to `SnowFlake.lease()`.
 *
 * Ticks are whole numbers since the layout's epoch, up to 2^53. A store only compares them. An answer
 * that is not what this page describes is `ERR_SNOWFLAKE_STORE`, and no ID is issued by it.
 */
export interface LeaseStore {
  /** For people: in errors and in `flake.lease.store`. Holds no password. */
  readonly name: string;

  /**
   * Whether the store can lose a namespace without anybody's doing (Redis: eviction, a restart without
   * a file). A lease then treats a namespace that is missing as lost: its first holder waits until all
   * ticks that an earlier holder can have been confirmed have passed. Default false.
   */
  readonly mayForget?: boolean;

  /**
   * Reads the namespace's record, or creates it from the request in one atomic step. The record is not
   * compared with the request here: the caller does that.
   *
   * @throws if there are records of another format
   */
  open(request: OpenRequest): Promise<Namespace>;

  /**
   * Raises the namespace's `floor`, `ttl`, `maxClockSkew` and `maxAhead` to those of the request where
   * they are lower, and gives it the ID of the request if there is one, in one atomic step. Leaves what is
   * higher, and what the request does not have.
   *
   * @returns the record after that
   * @throws if the namespace's ID is not `namespace`
   */
  raise(request: RaiseRequest): Promise<Namespace>;

  /**
   * Takes the free slot with the lowest ceiling: one that nobody holds, or whose hold has expired by
   * the store's clock. A slot that was never used has the ceiling -1.
   *
   * In one atomic step, this checks that the namespace's ID is `namespace` and that the slot is free,
   * records the owner, lets the hold expire in `ttl` ms, and raises the ceiling to the one requested if
   * it is lower.
   *
   * @returns the slot, and as `floor` the higher of the ceiling recorded before and the namespace's
   *   floor; or `holders`, if all slots are held; or `isMissing`, if the namespace has another ID or none
   */
  acquire(request: AcquireRequest): Promise<Acquired | { holders: Holder[] } | { isMissing: true }>;

  /**
   * In one atomic step: if the namespace's ID is `namespace`, the slot is still the owner's, and the
   * recorded ceiling is at least `confirmed`, raises the ceiling to the one requested if it is lower and
   * lets the hold expire `ttl` ms from now. When this answers, the record must be durable: what is
   * confirmed here and lost later can be issued twice.
   */
  renew(request: RenewRequest): Promise<Renewed>;

  /**
   * If the namespace's ID is `namespace` and the slot is still the owner's, frees it and sets its ceiling
   * to `last`, which may be lower: nothing above it was issued. Otherwise does nothing.
   */
  release(request: ReleaseRequest): Promise<void>;

  /** The store's clock, Unix ms. `ttl` is that of the lease that is to follow. */
  now(request?: { ttl: number; signal: AbortSignal }): Promise<number>;

  /** For `npx snowdrift slots` and other operators: all slots that were ever used. Not for leases. */
  slots?(): Promise<{ namespace?: Namespace; slots: Slot[] }>;

  /** Ends a connection that belongs to the lease. A call that is under way fails. */
  close?(): Promise<void> | void;
}

/** What is recorded of a namespace. */
export interface Namespace {
  /** 32 random hexadecimal digits, chosen when it was created: tells two namespaces apart. */
  id: string;
  /**
   * The layout's key: bit widths, ms a tick and epoch, such as `41/3/5/2/12@1+1580486400000`. An epoch
   * before 1970 has `-` in place of `+`.
   */
  layout: string;
  /** The largest that a holder may have, ms. */
  ttl: number;
  /** The largest that a holder may have, ms. */
  maxClockSkew: number;
  /** The largest that a holder may have, ms. */
  maxAhead: number;
  /** Tick: no slot starts at or below it. -1 for none. */
  floor: number;
}

/** The record to create if there is none. The caller has chosen the ID. */
export interface OpenRequest extends Namespace {
  /** Aborted when the call has taken too long. */
  signal: AbortSignal;
}

export interface RaiseRequest {
  /** The namespace's ID. */
  namespace: string;
  /** A new ID: whoever holds a slot by the one before loses it at the next renewal. */
  id?: string;
  /** Tick. */
  floor?: number;
  /** ms. */
  ttl?: number;
  /** ms. */
  maxClockSkew?: number;
  /** ms. */
  maxAhead?: number;
  /** Aborted when the call has taken too long. */
  signal: AbortSignal;
}

export interface SlotRequest {
  /** The namespace's ID, as `open()` returned it. */
  namespace: string;
  datacenterId: number;
  /** How many worker IDs there are: 0 to workerIds - 1. */
  workerIds: number;
  /** Tells one holding from every other: 32 hexadecimal digits. */
  owner: string;
  /** ms. */
  ttl: number;
  /** Aborted when the call has taken too long. Start no further step then. */
  signal: AbortSignal;
}

export interface AcquireRequest extends SlotRequest {
  /** Who asks, for others that find the slot held. */
  holder: { pid: number; host: string; startedAt: Date };
  /** Tick. */
  ceiling: number;
}

export interface RenewRequest extends SlotRequest {
  workerId: number;
  /** Tick. */
  ceiling: number;
  /** Tick: the ceiling that this owner was confirmed before. A lower one in the record is from the past. */
  confirmed: number;
}

export interface ReleaseRequest extends SlotRequest {
  workerId: number;
  /** Tick; -1 if nothing was ever issued. */
  last: number;
}

export interface Acquired {
  workerId: number;
  /** Tick; -1 for a slot that was never used. */
  floor: number;
  /** When the hold expires, Unix ms; null where holds do not expire. */
  expires: number | null;
  /** The store's clock, Unix ms. Left out, `now()` is called before the next renewal. */
  now?: number;
}

export type Renewed =
  | {
      isHeld: true;
      /** When the hold expires, Unix ms; null where holds do not expire. */
      expires: number | null;
      /** The store's clock, Unix ms. Left out, `now()` is called before the next renewal. */
      now?: number;
    }
  | {
      isHeld: false;
      /**
       * `'taken'`: the hold had expired, and another holder came. `'missing'`: the namespace or the slot
       * is gone, or the namespace was created anew. `'reverted'`: the record is older than what was
       * confirmed, as after a restore from a backup.
       */
      lost: 'taken' | 'missing' | 'reverted';
    };

export interface Holder {
  workerId: number;
  pid: number;
  host: string;
  startedAt: Date;
}

/** What is recorded of a slot. */
export interface Slot {
  datacenterId: number;
  workerId: number;
  /** Whether somebody holds it now. */
  isHeld: boolean;
  /** Tick: nothing above it was issued. */
  ceiling: number;
  /** When the hold expires or expired, Unix ms, where the store says so. */
  expires?: number;
  /** Who holds it, or held it last, where that is kept. */
  host?: string;
  pid?: number;
  startedAt?: Date;
}

export interface StoreOptions {
  /**
   * Slots of different namespaces have nothing in common. 1 to 64 letters, digits, '_', '.' or '-';
   * default `'default'`. One namespace is for one layout and epoch.
   */
  namespace?: string;
}
