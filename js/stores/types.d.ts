// The types that the stores share, for the compiler only: no package has this file.

import type { SnowFlakeError } from '../../index.js';
import type { CallOptions, LeaseRecord, LeaseStore } from './store.js';

export type { CallOptions, LeaseRecord, LeaseStore };

type Show = Parameters<NonNullable<LeaseStore['show']>>;
export type Slot = Show[0];
export type Holder = Show[1];

/** A reply of a read. */
export interface ReadReply<Found = LeaseRecord> {
  record: Found | undefined;
  now?: number | undefined;
}

/** A reply of a write. */
export type WriteReply<Found = LeaseRecord> =
  | { isWritten: true; now?: number | undefined }
  | { isWritten: false; found: Found | undefined; now?: number | undefined };

/** A record of a directory, or the reason that nobody can use its file. */
export type FileRecord =
  | LeaseRecord
  | { failure: SnowFlakeError; token?: undefined; text?: undefined };

/** What registers of this package have, besides the calls. */
interface Traits {
  readonly name: string;
  readonly mayForget?: boolean;
  readonly bucketSize?: 1 | 8 | 32;
  /** Its name in errors. */
  readonly server?: string;
  readonly isDirectory?: boolean;
  /** Where the record under a key is. */
  placeOf?(key: string): string;
  close?(): Promise<void>;
}

/** The calls of a register. The last argument of each has the signal: an adapter gets that itself. */
interface Calls<Found, Last> {
  now(last: Last): Promise<number>;
  read(key: string, last: Last): Promise<ReadReply<Found>>;
  write(
    key: string,
    record: LeaseRecord,
    before: string | undefined,
    last: Last,
  ): Promise<WriteReply<Found>>;
  show?(slot: Slot, holder: Holder, last: Last): Promise<void>;
  namespaces?(last: Last): Promise<string[]>;
  /** The other schemas of its database that have records. */
  schemas?(last: Last): Promise<string[]>;
  /** The keys of the buckets that a directory has. */
  buckets?(last: Last): Promise<string[]>;
}

/** A store of this package, as its leases and the commands use it. */
export interface Register<Found = LeaseRecord> extends Traits, Calls<Found, CallOptions> {}

/** The functions of a store, from which createRegister() makes a register. */
export interface Adapter<Found = LeaseRecord> extends Traits, Calls<Found, AbortSignal> {
  /** Whether what they throw is the application's, but for the errors that they note as a client's. */
  notesErrors?: boolean;
}
