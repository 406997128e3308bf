/**
 * A store for leases. You may pass your own to `SnowFlake.lease()`: any object with these functions.
 *
 * Ticks count from the layout's epoch: whole numbers up to 2^53. A store only compares them. An answer that does
 * not fit these types is `ERR_SNOWFLAKE_STORE`, and issues no ID.
 */
export interface LeaseStore {
  /** A name for errors and `flake.lease.store`. It must not contain a password. */
  readonly name: string;

  /**
   * Whether the store can lose a namespace by itself (Redis: eviction, a restart without a file). If so, a
   * missing namespace counts as lost: its first holder waits until all ticks of earlier holders have passed.
   * Default false.
   */
  readonly mayForget?: boolean;

  /**
   * `'process'`: each lease has a slot of its own, whatever its option `scope`. For a store that never gives a
   * worker ID twice. By default, the processes of a host that read the same namespace `id` share one slot.
   */
  readonly scope?: 'process';

  /**
   * Reads the namespace's record, or creates it from the request, in one atomic step. It does not compare the
   * record with the request: the caller does.
   *
   * @throws there are records of another format
   */
  open(request: OpenRequest): Promise<Namespace>;

  /**
   * In one atomic step, raises the namespace's `floor`, `ttl`, `maxClockSkew` and `maxAhead` to those of the
   * request, and replaces its ID if the request has one. Keeps higher values, and those that the request leaves
   * out.
   *
   * @returns the new record
   * @throws the namespace's ID is not `namespace`
   */
  raise(request: RaiseRequest): Promise<Namespace>;

  /**
   * Takes the free slot with the lowest ceiling. A slot is free if it has no holder, or if its hold has expired
   * by the store's clock. A slot that was never used has the ceiling -1.
   *
   * In one atomic step, it checks that the namespace's ID is `namespace` and that the slot is free, records the
   * owner, lets the hold expire in `ttl` ms, and raises the ceiling to the requested one if it is lower.
   *
   * @returns the slot, and as `floor` the higher of the ceiling recorded before and the namespace's
   *   floor; or `holders`, if all slots are held; or `isMissing`, if the namespace has another ID or none
   */
  acquire(request: AcquireRequest): Promise<Acquired | { holders: Holder[] } | { isMissing: true }>;

  /**
   * In one atomic step, checks that the namespace's ID is `namespace`, that the slot is still the owner's, and
   * that the recorded ceiling is at least `confirmed`. Then it raises the ceiling to the requested one if it is
   * lower, and lets the hold expire `ttl` ms from now. It must resolve only when the record is durable: a
   * record that is lost later causes duplicates.
   */
  renew(request: RenewRequest): Promise<Renewed>;

  /**
   * If the namespace's ID is `namespace` and the slot is still the owner's, frees it and sets its ceiling to
   * `last`, which may be lower. Otherwise does nothing.
   */
  release(request: ReleaseRequest): Promise<void>;

  /** The store's clock, in Unix ms. `ttl` is the lease's. */
  now(request?: { ttl: number; signal: AbortSignal }): Promise<number>;

  /** All slots that were ever used, for `npx snowdrift slots`. Leases do not call it. */
  slots?(): Promise<{ namespace?: Namespace; slots: Slot[] }>;

  /** Closes a connection that belongs to the lease. A pending call fails. */
  close?(): Promise<void> | void;
}

/** The record of a namespace. */
export interface Namespace {
  /** 32 random hexadecimal digits, chosen at its creation. */
  id: string;
  /**
   * The layout as a key: bit widths, ms a tick and epoch, such as `41/3/5/2/12@1+1580486400000`. Epochs before
   * 1970 have `-` instead of `+`.
   */
  layout: string;
  /** The largest `ttl` of a holder, in ms. */
  ttl: number;
  /** The largest `maxClockSkew` of a holder, in ms. */
  maxClockSkew: number;
  /** The largest `maxAhead` of a holder, in ms. */
  maxAhead: number;
  /** A tick: no slot starts at or below it. -1 for none. */
  floor: number;
}

/** The record to create if there is none, with an ID that the caller chose. */
export interface OpenRequest extends Namespace {
  /** Aborts when the call takes too long. */
  signal: AbortSignal;
}

export interface RaiseRequest {
  /** The namespace's ID. */
  namespace: string;
  /** A new ID for the namespace: its holders lose their slots at their next renewal. */
  id?: string;
  /** A tick. */
  floor?: number;
  /** In ms. */
  ttl?: number;
  /** In ms. */
  maxClockSkew?: number;
  /** In ms. */
  maxAhead?: number;
  /** Aborts when the call takes too long. */
  signal: AbortSignal;
}

export interface SlotRequest {
  /** The namespace's ID, as `open()` returned it. */
  namespace: string;
  datacenterId: number;
  /** The number of worker IDs, which are 0 to workerIds - 1. */
  workerIds: number;
  /** The ID of this hold: 32 hexadecimal digits. */
  owner: string;
  /** In ms. */
  ttl: number;
  /** Aborts when the call takes too long. Start no further step then. */
  signal: AbortSignal;
}

export interface AcquireRequest extends SlotRequest {
  /** The calling process. Errors of others name it as the holder. */
  holder: { pid: number; host: string; startedAt: Date };
  /** A tick. */
  ceiling: number;
}

export interface RenewRequest extends SlotRequest {
  workerId: number;
  /** A tick. */
  ceiling: number;
  /** A tick: the ceiling confirmed to this owner before. A lower one in the record means a restored backup. */
  confirmed: number;
}

export interface ReleaseRequest extends SlotRequest {
  workerId: number;
  /** A tick: the last one with an ID. -1 if nothing was ever issued. */
  last: number;
}

export interface Acquired {
  workerId: number;
  /** A tick; -1 for a slot that was never used. */
  floor: number;
  /** When the hold expires, in Unix ms; null if holds do not expire. */
  expires: number | null;
  /** The store's clock, in Unix ms. If left out, the lease calls `now()` before the next renewal. */
  now?: number;
}

export type Renewed =
  | {
      isHeld: true;
      /** When the hold expires, in Unix ms; null if holds do not expire. */
      expires: number | null;
      /** The store's clock, in Unix ms. If left out, the lease calls `now()` before the next renewal. */
      now?: number;
    }
  | {
      isHeld: false;
      /**
       * - `'taken'`: the hold had expired, and another holder took the slot
       * - `'missing'`: the namespace or the slot is gone, or the namespace was created again
       * - `'reverted'`: the record is older than the one confirmed, such as a restored backup
       */
      lost: 'taken' | 'missing' | 'reverted';
    };

export interface Holder {
  workerId: number;
  pid: number;
  host: string;
  startedAt: Date;
}

/** The record of a slot. */
export interface Slot {
  datacenterId: number;
  workerId: number;
  /** Whether it has a holder now. */
  isHeld: boolean;
  /** A tick: nothing above it was issued. */
  ceiling: number;
  /** When the hold expires or expired, in Unix ms, if the store records it. */
  expires?: number;
  /** The holder or last holder, if the store records it. */
  host?: string;
  pid?: number;
  startedAt?: Date;
}

export interface StoreOptions {
  /**
   * The slots of one layout and epoch, apart from those of other namespaces. 1 to 64 letters, digits, '_', '.'
   * or '-'; default `'default'`.
   */
  namespace?: string;
}
