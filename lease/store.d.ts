/**
 * What a lease needs of an engine. An application may bring its own: any object with these functions,
 * passed to `SnowFlake.lease()`.
 *
 * Ticks are whole numbers since the layout's epoch, up to 2^53. A store only compares them. An answer that is
 * not what is described here is `ERR_SNOWFLAKE_STORE`, and nothing is issued by it.
 */
export interface LeaseStore {
  /** For people: in errors and in `flake.lease.store`. */
  readonly name: string;

  /**
   * Takes the free slot with the lowest ceiling: one that nobody holds, or whose hold has expired by
   * the engine's clock. A slot that was never used has the ceiling -1.
   *
   * In one atomic step: that it is free is checked, the owner is recorded, the hold expires in `ttl`
   * ms, and the ceiling is raised to the one asked for, if it is lower.
   *
   * @returns the slot, and as `floor` the ceiling that was recorded before; or who holds them all
   * @throws if the namespace is for another `layout`
   */
  acquire(request: AcquireRequest): Promise<Acquired | { holders: Holder[] }>;

  /**
   * In one atomic step: if the slot is still the owner's, its ceiling is raised, never lowered, and
   * its hold expires in `ttl` ms from now. When it answers, that must be safe: what is confirmed here
   * and lost later can be issued twice.
   */
  renew(request: RenewRequest): Promise<{ isHeld: boolean; expires?: number }>;

  /**
   * If the slot is still the owner's, frees it and sets its ceiling to `last`, which may be lower:
   * nothing above it was issued. Else does nothing.
   */
  release(request: ReleaseRequest): Promise<void>;

  /** The engine's clock, Unix ms. `ttl` is that of the lease that is to follow. */
  now(request?: { ttl: number; signal: AbortSignal }): Promise<number>;

  /** For `npx snowdrift slots` and other operators: all slots that were ever used. Not for leases. */
  slots?(): Promise<{ layout?: string; slots: Slot[] }>;

  /** Ends a connection that is the lease's own. */
  close?(): Promise<void> | void;
}

export interface SlotRequest {
  /** Which cut of bits and which epoch, as a text to be compared. */
  layout: string;
  datacenterId: number;
  /** How many worker IDs there are: 0 to workerIds - 1. */
  workerIds: number;
  /** Tells one holding from every other: 32 hexadecimal digits. */
  owner: string;
  /** ms. */
  ttl: number;
  /** Aborted when the call has taken too long. */
  signal: AbortSignal;
}

export interface AcquireRequest extends SlotRequest {
  /** Who asks, for whoever finds the slot held. */
  holder: { pid: number; host: string; startedAt: Date };
  /** Tick. */
  ceiling: number;
  /**
   * Tick: what any other holder can have been confirmed of by now at most, if its `ttl` and
   * `maxClockSkew` are no larger than here. The floor of a slot of which an engine cannot tell whether
   * it ever knew more.
   */
  horizon: number;
}

export interface RenewRequest extends SlotRequest {
  workerId: number;
  /** Tick. */
  ceiling: number;
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
  /** When the hold expires, Unix ms. */
  expires: number;
}

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
  /** When the hold expires or expired, Unix ms, where the engine tells. */
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
