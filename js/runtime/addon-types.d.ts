// The addon's functions and classes. Made by scripts/native-types.mjs of src/binding, for the compiler only: no package has
// this file. Their values are in ../types.d.ts.

import type {
  BucketKeys,
  Callback,
  ChannelStats,
  DirectoryLeaseState,
  Fault,
  FoundRecord,
  GivenLayout,
  HostPages,
  Ids,
  LeaseStep,
  News,
  Opened,
  PageLease,
  RecordValues,
  Refusal,
  Requested,
} from '../types.js';

/**
 * The JavaScript object of a connection, which keeps it alive. napi tags objects of this class, so no other object is
 * accepted as one.
 */
export declare class Channel {
  private constructor();
  /** Takes back IDs that were not handed out. */
  takeBack(ids: Ids): void;
  /** The last refusal. */
  refusal(): Refusal;
  /** The events since the last call, if any. */
  takeNews(): News | null;
  /** Counts waits in JavaScript. */
  noteWaits(waits: number, ms: number): void;
  /** The counters, even after a close. */
  stats(): ChannelStats | null;
  /** Calls a function for each rejected put of its rings. */
  onRejectedPut(callback: Callback): void;
  /** Closes the connection. */
  close(): void;
  /** The lease from a directory, if there is one. */
  lease(): DirectoryLeaseState | null;
  /** Calls a function after each change of that lease, and after each renewal. */
  onRenewed(callback: Callback): void;
  /** The end of the window, Unix ms. */
  ceiling(): number | null;
  /**
   * Ends the lease, since this machine was restored from a snapshot. Returns false if the slot is not leased from a
   * store.
   */
  restored(): boolean;
  /**
   * Changes to another source: that of a request, or the present slot of its lease from a directory. If that cannot be
   * opened, keeps the previous one, whose page has ended, and returns the fault.
   */
  moveTo(request: Requested): Fault | null;
}

/** A lease from a store. */
export declare class LeaseDriver {
  private constructor();
  /** Claims this worker ID from now on. */
  claim(worker: number): void;
  /**
   * Takes an input. Returns `reports`, and what is `next`: a call, a wait, or the end. `mono`: ms of the host's monotonic
   * clock; `wall`: Unix ms.
   */
  step(input: LeaseInput, mono: number, wall: number): LeaseStep;
  /** The state of the slot; null while there is none. Times in Unix ms: a tick is shown as its last ms. */
  state(): PageLease | null;
  /** How far this host's clock is ahead of the store's at least, or behind it, ms. */
  skew(): number;
  /** How far ahead of the store's clock the namespace's floor may be after a loss of data, ms. */
  reach(): number;
}

/** What happened to a lease. */
export interface LeaseInput {
  /**
   * 'time', 'wanted', 'restored' or 'close'; or the outcome of the call: 'failed', 'written', or 'found' with the record
   * that was read, or that a write found in place of its predecessor.
   */
  kind: 'time' | 'wanted' | 'restored' | 'close' | 'failed' | 'written' | 'found';
  /** The record's token and text; none if there is none. */
  token?: string;
  text?: string;
  /** The store's clock, Unix ms, if the reply has it. */
  now?: number;
}

/** The settings of a lease. Times in ms. */
export interface LeaseSettings {
  /** The store's name in errors. */
  store: string;
  ttl: number;
  maxClockSkew: number;
  maxAhead: number;
  /** How long to wait for a slot, through failed calls, too. */
  wait: number;
  callTimeout: number;
  /** The name of this host, for people. */
  host: string;
  /** The start of this process, Unix ms. */
  started: number;
  /** The worker ID to claim. */
  claim?: number;
  /** The host and port at which this process serves. */
  address?: string;
  mayForget: boolean;
  /** The worker IDs of a record: 32, 8 or 1. */
  size: number;
}

/** The keys of the buckets that a directory has files of. */
export declare function bucketFiles(directory: string): Promise<string[] | Fault>;

/**
 * The keys of a namespace's buckets, and whether these are all: those that it counts, and with `is_all` the others, too, where
 * its layout has few. With a datacenter, of that one only. Null where the text cannot be read.
 */
export declare function bucketKeys(
  text: string,
  isAll: boolean,
  datacenter?: number | undefined | null,
): BucketKeys | null;

/** The text of a namespace once an operator has confirmed that it is new; null where it has a floor, or cannot be read. */
export declare function confirmedNamespaceText(text: string): string | null;

/** The pages that this user's processes share on this host; `None` if the system has no directory for them. */
export declare function hostPages(shared?: string | undefined | null): HostPages | Fault | null;

/**
 * A record of a directory: `{ token, text }`; `{ unusable }`, with the reason, of a file that nobody can use; null where there is
 * none. Changes nothing.
 */
export declare function lookAtRecord(directory: string, key: string): Promise<FoundRecord | Fault>;

/** The text of a new namespace with this ID, without a floor; null if a value is invalid. `size`: the worker IDs of a bucket. */
export declare function newNamespaceText(
  id: string,
  layout: GivenLayout,
  ttl: number,
  maxClockSkew: number,
  maxAhead: number,
  size: number,
): string | null;

/** A new token, for a record that JavaScript writes, or the ID of a namespace. */
export declare function newToken(): string;

/**
 * Opens a channel. For a slot of a directory, blocks the thread for the disk, and until the slot is free if the request
 * allows a wait.
 */
export declare function open(request: Requested): Opened;

/** Like `open`, but without blocking the thread. */
export declare function openLater(request: Requested): Promise<Opened>;

/** A lease from a store, still without a slot. `mono`: ms of the host's monotonic clock; `wall`: Unix ms. */
export declare function openLease(
  request: Requested,
  settings: LeaseSettings,
  mono: number,
  wall: number,
): LeaseDriver | Fault;

/**
 * The values of a record, by its key and text: of the kind 'namespace', 'bucket' or 'unreadable'; null for another key.
 * With the store's clock in Unix ms, the lines of a bucket have their states in a search for a slot; without the
 * namespace's text, any limits are assumed. Ceilings and floors are ticks.
 */
export declare function readRecord(
  key: string,
  text: string,
  now?: number | undefined | null,
  namespace?: string | undefined | null,
): RecordValues | null;

/**
 * The text of a bucket after a loss, for the recovered namespace; null where there is nothing to write, or the text is of another
 * version.
 */
export declare function recoveredBucketText(
  text: string,
  namespace: string,
  now: number,
): string | null;

/**
 * The text of a namespace after a loss: with another ID, the higher of each limit, and these buckets counted. `now`: the store's
 * clock, Unix ms. Null where the text cannot be read.
 */
export declare function recoveredNamespaceText(
  text: string,
  id: string,
  limits: Array<number>,
  counted: Array<string>,
  now: number,
): string | null;

/** Writes a record in the place of the one with the token `before`; without it, where there must be none. Returns whether it did. */
export declare function replaceRecord(
  directory: string,
  key: string,
  token: string,
  text: string,
  before?: string | undefined | null,
): Promise<boolean | Fault>;

/** Blocks the calling thread. `js/` bounds the time by `maxWait`. */
export declare function sleep(ms: number): void;

/** The tick of a Unix time in ms, within the layout; -1 before its epoch. */
export declare function tickAt(layout: GivenLayout, unixMs: number): number | Fault;

/** The last Unix ms of a tick. */
export declare function tickEnd(layout: GivenLayout, tick: number): number | Fault;
