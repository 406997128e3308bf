// The types that files of js/ share, for the compiler only: no package has this file. Times and lengths of time are in ms, unless a
// comment says otherwise.

import type { CachedStats, LeaseInfo, SlotHolder, SnowFlakeErrorCode } from '../index.js';
import type { Layout, LayoutName, ParsedId } from './id.js';
import type { Channel, LeaseDriver } from './runtime/addon-types.js';

export type {
  Channel,
  Layout,
  LayoutName,
  LeaseDriver,
  LeaseInfo,
  ParsedId,
  SlotHolder,
  SnowFlakeErrorCode,
};

// Values of applications, and errors.

/** The properties of an object by these names; those that its type does not have may be anything. */
export type Properties<T, K extends string> = Bare & {
  [key in K]?: key extends keyof T ? T[key] : unknown;
};

/** A copy of an object, which has none of its properties where there may be none. */
export type Own<T> = [T] extends [object] ? T : Partial<NonNullable<T>>;

/** What was thrown: an error of Node, of a client, or anything else. */
export type Failure = Bare & { [name in 'code' | 'message' | 'name' | 'stack']?: string };

/** Timers, as Node has them. */
export interface Timers {
  setTimeout(this: void, callback: () => void, ms: number): NodeJS.Timeout;
  clearTimeout(this: void, timer: NodeJS.Timeout | undefined): void;
}

/** The clocks and timers of js/runtime/time.js. */
export interface Clocks extends Timers {
  unixNow(): number;
  monotonic(): number;
  hostMonotonic(): number;
}

/** Shows a value in a message. */
export type Show = (value: unknown) => string;

/** Makes the error of a message. */
export type ToError = (message: string, options?: ErrorDetails) => Error;

export interface ErrorDetails extends Bare {
  cause?: unknown;
  retryAfterMs?: number | undefined;
  holders?: SlotHolder[] | undefined;
}

/** An object without a prototype, as a literal: the compiler takes `__proto__` for a property. */
export interface Bare {
  __proto__?: null;
}

// Settings: options that were checked.

/** The choices of the options `clockBack`, `scope` and `sequenceStart`. */
export type ClockBack = 'counter' | 'wait' | 'throw';
export type Scope = 'auto' | 'host' | 'process';
export type SequenceStart = 'zero' | 'random';

/** The node that a generator issues for. */
export interface NodeIds {
  datacenterId: number;
  workerId: number;
}

/** The times of a slot, and the process that asks for it. */
export interface SlotTimes extends Bare {
  ttl: number;
  /** How long to wait for a slot. */
  wait: number;
  /** The name of this host, for people. */
  host: string;
  /** The start of this process, Unix ms. */
  started: number;
}

/** A lease from a directory. */
export interface DirectoryLeasing extends SlotTimes {
  /** Whether it takes any free worker ID. */
  anyWorker: boolean;
  /** An absolute path. */
  directory: string;
}

/** A lease from a register. */
export interface StoreLeasing extends SlotTimes {
  address: string | undefined;
  maxClockSkew: number;
  callTimeout: number;
}

/** The ring of a CachedSnowFlake. */
export interface RingSettings {
  boostPower: number;
  paddingFactor: number;
  /** 0 for none. */
  scheduleInterval: number;
  maxAge: number;
}

/** The settings of a generator, which js/generator/options.js reads. */
export interface Settings extends Bare {
  layout: Layout;
  datacenterId: number;
  /** Undefined where a lease finds one. */
  workerId: number | undefined;
  clockBack: ClockBack;
  maxWait: number;
  maxAhead: number;
  sequenceStart: SequenceStart;
  scope: Scope;
  /** The directory that SNOWDRIFT_SHARED names. */
  shared: string | undefined;
  clock: (() => unknown) | undefined;
  leasing: SlotTimes | undefined;
  ring?: RingSettings;
}

/** Those of a generator that leases from a directory, or has no lease. */
export interface OwnSettings extends Settings {
  leasing: DirectoryLeasing | undefined;
}

/** Those of a lease from a register. */
export interface StoreSettings extends Settings {
  leasing: StoreLeasing;
}

/** Those of an open generator. */
export interface OpenSettings extends Settings {
  workerId: number;
}

/** The lease of an open generator. */
export interface Lease {
  readonly workerId: number;
  report(): LeaseInfo;
  release(): Promise<void> | void;
  /** Renews early. Leases from directories do it by themselves. */
  wantRenewal?: (() => void) | undefined;
  /** Of a lease from a register: ends its slot, since this machine was restored from a snapshot. */
  afterRestore?: () => void;
  /** Of a lease from a directory: publishes a report now, and after each change. */
  publish?: (() => void) | undefined;
}

// Rust's arguments: src/binding/request.rs, src/binding/memory.rs, src/binding/channel.rs.

/** The authority by which a process issues IDs; none for nobody's. */
export interface Authority extends Bare {
  /** By the application's clock. */
  ownClock?: boolean;
  isLeased?: boolean;
  /** The lease from a register that has the slot. */
  lease?: LeaseDriver;
  /** The settings of a lease from a directory. `isCommon`: whether all callers that ask for any worker ID share one. */
  leasing?: DirectoryLeasing & { isCommon: boolean };
}

/** A wanted generator. */
export interface Requested extends Omit<Settings, 'clock' | 'leasing'>, Authority {}

export type GivenLayout = Layout;
export type Ids = BigUint64Array;
export type Callback = () => void;

// Rust's values.

/**
 * A failure of a native call, or a part of one: js/messages/faults.js has a text for each kind. A detail has one meaning in the
 * texts of all kinds that have it.
 */
export interface Fault extends Partial<FaultDetails> {
  kind: string;
}

export interface FaultDetails {
  // A file or directory, and what is wrong with it.
  place: string;
  doing: string;
  cause: string;
  reason: string;
  isLink: boolean;
  mode: string;
  length: number;
  wanted: number;
  format: number;
  known: number;
  times: number;
  /** In s. */
  waited: number;
  purpose: string;
  // Users, by their IDs.
  owner: number;
  user: number;
  uid: number;
  from: number;
  to: number;
  // A process.
  pid: number;
  host: string;
  /** Unix ms. */
  started: number;
  // A node, and its slots.
  datacenter: number;
  worker: number;
  holders: Fault[];
  unusable: Fault[];
  // A store.
  store: string;
  skew: number;
  most: number;
  layouts: Fault[];
  evidence: string;
  // Options: of a page or a generator that is open, or what is wrong with them.
  theirs: number | string;
  ours: number | string;
  scope: 'host' | 'process';
  ttl: number;
  maxAhead: number;
  maxWait: number;
  clockBack: string;
  sequenceStart: string;
  boostPower: number;
  paddingFactor: number;
  scheduleInterval: number;
  /** In ticks. */
  maxAge: number;
  slots: number;
  name: string;
  option: string;
  value: number | string;
  min: number;
  max: number;
  bits: number;
  // A layout.
  timestampBits: number;
  datacenterBits: number;
  workerBits: number;
  clockBackBits: number;
  sequenceBits: number;
  tickMs: number;
  epoch: number;
}

/** The texts of errors, by code and kind; `none` has parts of other texts, and warnings. */
export type TextsByCode<Values> = {
  [code in SnowFlakeErrorCode | 'none']?: { [kind: string]: (values: Values) => string };
};

/** Why a call got no ID: js/messages/refusals.js has a text for each kind. */
export interface Refusal {
  kind:
    | 'exhausted'
    | 'clock-back'
    | 'before-epoch'
    | 'floor'
    | 'ceiling'
    | 'time-ended'
    | 'page'
    | 'closed';
  /** The clock reading, Unix ms. */
  now: number;
  /** Whole ms, at least 1; left out if waiting does not help. */
  retryAfterMs?: number;
  /** The failure of the host's page, if that is the reason. */
  why?: Fault;
  /** The path of the host's page, if IDs come from one. */
  page?: string;
  /** Of an exhausted tick: whether the clock does not reach the next one. Noted by js/generator/waiting.js. */
  isStanding?: boolean;
}

/** A clock rollback. */
export interface Rollback {
  backMs: number;
  counter: number;
  /** Whether IDs are refused until the clock has caught up. */
  isRefused: boolean;
  unreported: number;
}

/** Waits of one call. */
export interface Waits {
  reason: Refusal['kind'];
  waits: number;
  waitedMs: number;
}

/** The events of an instance since the last look. */
export interface News {
  rollback?: Rollback;
  waits?: Waits;
}

/** The counters of a generator: the public ones, but for what js/generator/generator.js adds; `ring` only where there is one. */
export type ChannelStats = Omit<CachedStats, 'endOfTime' | 'clock'> & { endOfTime: number };

/** A channel, or a fault; undefined if the host has no directory for pages. */
export type Opened = Channel | Fault | undefined;

/** What Rust adds to a channel without napi's macros: src/binding/channel.rs and src/binding/calls.rs. */
declare module './runtime/addon-types.js' {
  interface Channel {
    readonly workerId: number;
    readonly memory: ArrayBuffer;
    /** Of unusable slots that were skipped, and of second users. */
    readonly warnings: Fault[] | undefined;
    /** Reserves a block. Returns its length, negative if there are events to report; 0 if refused. May block the thread. */
    refill(this: void, memory: ArrayBuffer): number;
    /** Like `refill`, but without waiting. */
    tryRefill(memory: ArrayBuffer): number;
    /** Fills an array. Returns as `refill`. */
    fill(memory: ArrayBuffer, ids: BigUint64Array, mayWait: boolean): number;
    /** Ends the block, of which so many IDs are unused. */
    giveBack(memory: ArrayBuffer, unused: number): void;
  }
}

// Leases.

export type Loss = NonNullable<LeaseInfo['lost']>;

/** The slot of a lease, as its page has it. Times in Unix ms. */
export interface PageLease
  extends Pick<
    LeaseInfo,
    'scope' | 'slot' | 'owner' | 'floor' | 'ceiling' | 'expires' | 'renewals' | 'renewer'
  > {
  /** Why the page has ended, if it has. */
  ended?: Loss;
}

/** The state of a lease from a directory. */
export interface DirectoryLeaseState {
  store: string;
  /** How far ahead of the clock the namespace's floor may be after a loss of data. */
  reach: number;
  lost?: Loss;
  failure?: Fault;
  /** Whether the lease has another slot than this instance by now. */
  hasMoved: boolean;
  page: PageLease;
}

/** What a lease's driver wants next. */
export type Command = CallCommand | { kind: 'wait'; ms: number } | { kind: 'end' };

/** A call to the register, which may take `within` ms. */
export type CallCommand = { kind: 'call'; within: number } & (
  | { call: 'now' }
  | { call: 'read'; key: string }
  | {
      call: 'write';
      key: string;
      token: string;
      text: string;
      /** The token of the record that it replaces; undefined where there must be none. */
      before?: string;
    }
);

/** What a lease's driver reports. */
export type LeaseReport =
  | { kind: 'open' | 'renewed' | 'unlocked' }
  | { kind: 'lost'; lost: Loss }
  | { kind: 'failed'; fault?: Fault }
  | { kind: 'refused' | 'unsettled'; fault: Fault };

/** The result of a step of a lease's driver. */
export interface LeaseStep {
  reports: LeaseReport[];
  next: Command;
}

// Records, for the commands `slots` and `recover`.

/** The values of a record. Ceilings and floors are ticks. */
export type RecordValues = NamespaceValues | BucketValues | UnreadableValues;

export interface NamespaceValues {
  kind: 'namespace';
  id: string;
  layout: Layout;
  ttl: number;
  maxClockSkew: number;
  maxAhead: number;
  reach: number;
  floor: number;
  /** The worker IDs of a bucket. */
  size: number;
}

export interface BucketValues {
  kind: 'bucket';
  id: string;
  floor: number;
  lines: LineValues[];
  /** The worker IDs of lines that no holder of this version writes. */
  damaged: number[];
}

export interface LineValues {
  workerId: number;
  isHeld: boolean;
  /** Only where the store's clock was given. */
  state?: 'held' | 'free' | 'impossible';
  ceiling: number;
  expires: number;
  pid: number;
  started: number;
  address?: string;
  host: string;
}

/** Of a record that nobody can read: of another program or version, or damaged. */
export interface UnreadableValues {
  kind: 'unreadable';
  isOther?: boolean;
  line?: number;
  bytes?: number;
}

/** The keys of a namespace's buckets, and whether these are all. */
export interface BucketKeys {
  keys: string[];
  isWhole: boolean;
}

/** A record of a directory; `unusable`, of a file that nobody can use. */
export type FoundRecord = { token: string; text: string } | { unusable: Fault } | null;

/** This host's pages. Times in Unix ms. */
export interface HostPages {
  directory: string;
  pages: HostPage[];
}

/** A page, or the reason that it is unusable. */
export type HostPage =
  | { path: string; fault: Fault }
  | {
      path: string;
      fault?: undefined;
      layout: Layout;
      datacenterId: number;
      workerId: number;
      maxAhead: number;
      created: number;
      kind: 'plain' | 'lease';
      /** Of a lease: the process that renewed it last, and since when. */
      renewer?: number;
      since?: number;
      expires?: number;
      processes: { pid: number; users: number; opened: number; isAlive: boolean }[];
    };
