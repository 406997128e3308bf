/**
 * 64-bit Snowflake IDs. Within one container, or for one user of a machine, two IDs are never equal, by
 * default on Linux. Across hosts, give each its own workerId, or lease one. On macOS and Windows, see
 * {@link SnowFlakeOptions.scope}.
 *
 * ```js
 * // datacenterId and workerId are in the environment:
 * //   datacenterId=1 workerId=3 node server.js
 * const { SnowFlake } = require('snowdrift')
 * SnowFlake.nextId()        // 501276370534961152n
 * SnowFlake.nextIdString()  // '501276370534961153'
 * ```
 *
 * Everything thrown is a {@link SnowFlakeError} with a `code`. What should be known but stops nothing
 * is a `SnowFlakeWarning` of the process: `SNOWFLAKE_CLOCK_BACK`, `SNOWFLAKE_SLOT_UNUSABLE`,
 * `SNOWFLAKE_SLOT_LOST`, `SNOWFLAKE_NAMESPACE_LOST`, `SNOWFLAKE_FLOOR`, `SNOWFLAKE_TIME_ENDING`,
 * `SNOWFLAKE_SECOND_USER`, `SNOWFLAKE_WORKER_DIED`. For metrics and logs there are {@link DiagnosticsEvents} besides.
 */

import type { LeaseStore } from './lease/store';

export type { LeaseStore } from './lease/store';

/**
 * A layout that has a name.
 *
 * | name | bits: timestamp/datacenter/worker/clock-back/sequence | tick | epoch | origin |
 * |---|---|---|---|---|
 * | `node` | 41/3/5/2/12 | 1 ms | 1580486400000 (2020-01-31T16:00Z) | the Node SnowFlake class |
 * | `twitter` | 41/5/5/0/12 | 1 ms | 1288834974657 (2010-11-04T01:42:54.657Z) | Twitter Snowflake |
 * | `uid` | 28/0/22/0/13 | 1 s | 1463673600000 (2016-05-19T16:00Z) | Baidu UidGenerator. This epoch ran out on 2024-11-20: decode with it. Generate with a later `epoch`, which repeats old IDs: so only with worker IDs that never issued any |
 * | `discord` | 41/5/5/0/12 | 1 ms | 1420070400000 (2015-01-01T00:00Z) | Discord |
 */
export type LayoutName = 'node' | 'twitter' | 'uid' | 'discord';

/**
 * How the 63 bits of an ID are cut, from high to low in the order given here. The widths may add up
 * to less than 63, never to more; bit 63, the sign, stays 0.
 */
export interface Layout {
  /** 1 to 62. With ticks of 1 ms, 41 bits last 69.7 years. */
  readonly timestampBits: number;
  /** 0 to 53. A `datacenterId` is then 0 to 2^bits - 1. */
  readonly datacenterBits: number;
  /** 0 to 53. A `workerId` is then 0 to 2^bits - 1. */
  readonly workerBits: number;
  /** 0 to 4. With n bits, 2^n - 1 steps of the clock back are tolerated at one time. */
  readonly clockBackBits: number;
  /** 1 to 53. A node issues at most 2^bits IDs a tick. */
  readonly sequenceBits: number;
  /** Length of a tick in ms: 1 to 86,400,000. */
  readonly tickMs: number;
  /** Unix ms at which tick 0 starts; any time that a `Date` can hold. */
  readonly epoch: number;
}

/** The layouts that have a name. Frozen. */
export const layouts: Readonly<Record<LayoutName, Layout>>;

export interface SnowFlakeOptions {
  /**
   * 0 to 2^datacenterBits - 1. Default: the environment variable `datacenterId` of the calling
   * thread. It is never guessed: neither given is `ERR_SNOWFLAKE_CONFIG`, unless the layout has no
   * bits for it.
   */
  datacenterId?: number;
  /** 0 to 2^workerBits - 1. Default: the environment variable `workerId`. As `datacenterId`. */
  workerId?: number;
  /** Default `'node'`. */
  layout?: LayoutName | (Omit<Layout, 'epoch'> & { readonly epoch: number | Date });
  /** Takes the place of the layout's own epoch. A `Date`, or Unix ms. */
  epoch?: number | Date;
  /**
   * What to do when the clock stands below the last tick.
   *
   * - `'counter'`: go on at once under another value of the clock-back counter, with one warning a
   *   step. When every value is taken, as `'wait'`. Default where the layout has `clockBackBits`.
   * - `'wait'`: sleep until the clock has caught up if that is within `maxWait`, else throw
   *   `ERR_SNOWFLAKE_CLOCK_BACK` with `retryAfterMs`. Default elsewhere.
   * - `'throw'`: throw at once, as Twitter Snowflake does.
   */
  clockBack?: 'counter' | 'wait' | 'throw';
  /**
   * The longest that one reservation may hold the thread while it waits for the clock, in ms: 0 to
   * 60,000, default 10. A batch that spans ticks waits for each of them anew.
   */
  maxWait?: number;
  /**
   * How far ahead of the clock IDs may be taken instead of waiting for the next tick, in ms: 0 to
   * 3,600,000, default 0. Rounded down to whole ticks. All processes that share a node at one time need
   * the same value: another one is `ERR_SNOWFLAKE_CONFLICT`, which names theirs.
   */
  maxAhead?: number;
  /**
   * Where the sequence of a tick starts: at 0 (default), or at random in the lower half of its range,
   * so that `id % n` spreads evenly even at one ID a tick. `'random'` costs a quarter of the IDs a
   * tick has, on average.
   */
  sequenceStart?: 'zero' | 'random';
  /**
   * Which processes draw from one sequence if they name one node (layout, epoch, `datacenterId`,
   * `workerId`).
   *
   * - `'auto'` (default): on Linux as `'host'`, or as `'process'` where `/dev/shm` is not in memory (AWS
   *   Lambda). On macOS and Windows as `'process'`.
   * - `'host'`: all processes of this user that see one shared-memory directory: replicas, pm2 reloads,
   *   test runners, worker_threads, several copies of this package. Without such a directory it is
   *   `ERR_SNOWFLAKE_CONFIG`. On macOS and Windows it shares only if you set it.
   * - `'process'`: this process, with its worker_threads. Two processes with one node then issue
   *   duplicates.
   *
   * The directory is `/dev/shm/snowdrift-<uid>` on Linux; it is in the user's cache directory on macOS, and
   * in the local application data on Windows. The environment variable `SNOWDRIFT_SHARED` names another
   * place for it, for containers that share one: in memory (tmpfs or ramfs) on Linux, on a local disk
   * elsewhere. All processes of a node need the same. A directory or page that is foreign, a symbolic link,
   * damaged or overwritten is `ERR_SNOWFLAKE_STORE`, and a page of another format is
   * `ERR_SNOWFLAKE_IN_USE`. Neither is ever a reason to share less.
   *
   * All instances of a node in a process need one scope. {@link SnowFlake.lease} takes a slot for this
   * process alone in any scope; `stats().scope` can be `'host'` then, since a directory's slot has a page,
   * too. Cannot be `'host'` with a `clock`.
   */
  scope?: 'auto' | 'host' | 'process';
  /**
   * Tells the time in Unix ms; for tests with fake timers (`clock: () => Date.now()`). Such an
   * instance has a state of its own: it is NOT kept apart from other instances of the same node. It
   * reads its clock for every ID, and throws `ERR_SNOWFLAKE_CLOCK` if that throws or returns anything
   * but a time. While it waits for such a clock it holds the thread for `maxWait` at most. It cannot
   * be combined with `state` or `lease`.
   */
  clock?: () => number;
  /**
   * A directory in which the slot of this datacenterId and workerId is recorded: the path of one, or
   * a `file:` URL. Default: the environment variable `SNOWDRIFT_STATE`. Its last part is made if need
   * be. It must be on a disk of this machine, since network file systems differ in what their locks
   * promise.
   *
   * It adds to the page in memory what a page cannot keep: after a reboot or a power cut IDs start above
   * the recorded ceiling, and are refused with `ERR_SNOWFLAKE_WINDOW` until the clock has passed it. After
   * a clean close or, within one boot, a kill, IDs continue at the next number. (With scope `'process'` a
   * kill is like a power cut.) A disk that is full, frozen
   * or truncated stops no caller before the ceiling. If the clock was years ahead once, `npx snowdrift
   * reset` makes the slot usable again.
   *
   * The processes of a host that share the node share its record, too. Another host or container that uses
   * the same record gets `ERR_SNOWFLAKE_IN_USE`. With scope `'process'` the slot belongs to one process.
   * A node is used with `state` or without, never both at one time: the second is `ERR_SNOWFLAKE_CONFLICT`.
   */
  state?: string | URL;
  /**
   * As `state`, but takes any free slot of the datacenter, so there is no `workerId` to give: a
   * `file:` URL. Default: the environment variable `SNOWDRIFT_LEASE`. In an application,
   * {@link SnowFlake.lease} does not hold the thread meanwhile.
   *
   * A slot whose file cannot be used (another user's, damaged, no file at all) is passed over, with a
   * `SnowFlakeWarning`, `SNOWFLAKE_SLOT_UNUSABLE`.
   *
   * The slot belongs to this process. Each instance takes a slot of its own, but the default instances of
   * all threads share one.
   */
  lease?: string | URL;
  /**
   * How far ahead of the clock the time is recorded up to which IDs may be issued, in ms: 1,000 to
   * 3,600,000, default 10,000. A native thread renews it each third of that. It is how long IDs go on
   * when the disk fails. After a power cut IDs are refused for `ttl` + `maxAhead` at the most, if the
   * clock is right.
   */
  ttl?: number;
  /**
   * How long to wait for a slot that is in use and cannot be shared, in ms: 0 to 3,600,000, default 0. The
   * constructor holds the thread meanwhile, {@link SnowFlake.lease} does not. For containers that use one
   * `state` record one after the other, if the new one starts before the old one has ended.
   */
  waitForSlot?: number;
}

/** Options of {@link SnowFlake.lease}. `ttl` is 30,000 by default, but 10,000 for a directory. */
export interface LeaseOptions
  extends Omit<SnowFlakeOptions, 'workerId' | 'state' | 'lease' | 'clock'> {
  /**
   * Not for directories: how far this machine's clock and the store's may be apart at the start, in ms: 0 to
   * 86,400,000, default 10,000, which was Twitter Snowflake's bound. Later, an ID further ahead of the
   * store's clock than `ttl` + `maxClockSkew` + `maxAhead` is refused with `ERR_SNOWFLAKE_CLOCK_SKEW`. On
   * Redis, that sum is also how long the first lease of a namespace takes, see `snowdrift/lease/redis`.
   *
   * The first holder of a namespace records its `ttl`, `maxClockSkew` and `maxAhead`. A holder with
   * a larger one is refused with `ERR_SNOWFLAKE_CONFIG`; `npx snowdrift raise` raises the recorded ones.
   */
  maxClockSkew?: number;
  /**
   * For URLs of servers only: whether a worker thread with a connection of its own keeps the lease. Then a
   * main loop that is busy for longer than `ttl`, drawing IDs all the while, neither loses its slot nor
   * stops. Default false.
   */
  thread?: boolean;
  /**
   * Not for directories: how long one call may take, in ms: 1 to 60,000, default 5,000. A lease from a URL
   * closes the connection of a call that takes longer; the next call opens another.
   */
  callTimeout?: number;
}

/** A slot that is held: see {@link SnowFlakeOptions.state}. Times in Unix ms. */
export interface LeaseInfo {
  /** Where it is recorded. */
  store: string;
  slot: { datacenterId: number; workerId: number };
  /** Tells this holding from every other: 32 hexadecimal digits. */
  owner: string;
  /** No ID of this time or before is issued: they may have been issued before the machine went down. */
  floor: number | null;
  /** No ID after this time is issued, until it is renewed. */
  ceiling: number;
  /**
   * When another may take the slot unless it is renewed, by the store's clock. Null for files and
   * `WORKER_NODE` tables: never while this process lives.
   */
  expires: number | null;
  /** How often the ceiling was raised. */
  renewals: number;
  /**
   * - `'held'`
   * - `'failing'`: the last renewal failed, see `failure`. IDs go on to the ceiling, and renewals are
   *   tried again
   * - `'expired'`: the ceiling has passed. IDs have stopped until a renewal succeeds
   * - `'lost'`: IDs have stopped. Of a store, `lost` says why, and this process waits for another slot. Of
   *   a directory, the slot's file was removed or replaced: restart this process
   * - `'released'`: the instance is closed
   */
  state: 'held' | 'failing' | 'expired' | 'lost' | 'released';
  /**
   * How a slot of a store was lost. `'taken'`: another process has taken it over. `'missing'`: it is no
   * longer recorded. `'reverted'`: the store returned to an older state, as after a restore from a backup.
   */
  lost?: 'taken' | 'missing' | 'reverted';
  /**
   * How far this machine's clock was ahead of the store's at the last renewal, ms; negative if it was
   * behind. Left out while it is within `maxClockSkew`.
   */
  clockSkew?: number;
  /** Why the last renewal failed, if it did. */
  failure?: string;
}

/** A process that holds a slot. */
export interface SlotHolder {
  pid: number;
  host: string;
  /** When the process started. */
  startedAt: Date;
  /** Its slot, where all are held. */
  workerId?: number;
}

/** What an ID is made of. */
export interface ParsedFields {
  /** Unix ms of the start of the ID's tick. */
  timestamp: number;
  datacenterId: number;
  workerId: number;
  /** The clock-back counter: 0 unless the clock had stepped back. */
  clockBack: number;
  /** The ID's place within its tick. */
  sequence: number;
}

export interface ParsedId extends ParsedFields {
  id: bigint;
  /** `timestamp` as a Date. */
  date: Date;
  /** For JSON, which has no bigint: the same with `id` as a string. */
  toJSON(): Omit<ParsedId, 'id' | 'toJSON'> & { id: string };
}

/**
 * What a node's generator has done so far. `issued`, `waits`, `waitedMs` and `clockStepsBack` are this
 * process's, all instances and threads together. With scope `'host'`, `clockBack` and `highMarks` are the
 * host's.
 */
export interface Stats {
  /** IDs handed out by this process. */
  issued: number;
  /**
   * How often calls waited for the clock, the disk or the store, and how long in all, in ms. This includes
   * calls of `nextIdAsync()`, and waits for the option `clock`. The messages of `snowdrift:wait` add up to
   * it.
   */
  waits: number;
  waitedMs: number;
  /** Clock rollbacks that this process met. */
  clockStepsBack: number;
  /** The clock-back counter in use. */
  clockBack: number;
  /** For each value of the counter, Unix ms of the highest tick issued under it; null if none. */
  highMarks: (number | null)[];
  /**
   * When the layout's timestamp runs out. An invalid Date if that is beyond what a Date can hold. A year
   * before, whoever opens it gets one `SnowFlakeWarning` (`SNOWFLAKE_TIME_ENDING`).
   */
  endOfTime: Date;
  /** Which processes draw from the sequence: see {@link SnowFlakeOptions.scope}. */
  scope: 'host' | 'process';
  /** The file of the page that the host's processes share. Left out with scope `'process'`. */
  page?: string;
  /** Whether the time comes from the machine or from the `clock` option. */
  clock: 'system' | 'custom';
}

/** Of what a {@link DiagnosticsEvents} message tells. */
export interface SlotMessage {
  datacenterId: number;
  workerId: number;
}

export interface ClockStepMessage extends SlotMessage {
  /** How far below the last tick the clock stood, in ms. */
  backMs: number;
  /** The clock-back counter in use since. */
  clockBack: number;
  /** Earlier steps that were not told of: at first 10 are, then one each 10 s. */
  unreported: number;
}

export interface WaitMessage extends SlotMessage {
  /**
   * For what it waited the last time: `'used-up'` the next tick, `'clock-back'` a clock that stepped back,
   * `'floor'` a time that may have been issued before, `'ceiling'` the disk or store, `'before-epoch'`.
   */
  reason: 'used-up' | 'clock-back' | 'floor' | 'ceiling' | 'before-epoch';
  /** How often this one call waited, and how long in all, in ms. */
  waits: number;
  waitedMs: number;
  /** Whether the thread was held. `nextIdAsync()` does not hold it. */
  blocking: boolean;
}

/**
 * The channels of `node:diagnostics_channel`, by name, and what each message is. Messages are published in
 * the thread of the instance. Channels without subscribers cost nothing. A subscriber may draw from the
 * instance that published; events of that draw are published at a later draw.
 *
 * ```js
 * const { subscribe } = require('node:diagnostics_channel');
 * subscribe('snowdrift:lease-lost', ({ slot, failure }) => alert(slot.workerId, failure));
 * ```
 *
 * Each instance with `state` or a lease tells of its slot itself, so two of one slot tell twice.
 */
export interface DiagnosticsEvents {
  /** The clock stepped back. */
  'snowdrift:clock-step': ClockStepMessage;
  /** A call waited for the clock, the disk or the store; whether it then got an ID or not. */
  'snowdrift:wait': WaitMessage;
  /** A slot was taken, the first one or another after a loss. */
  'snowdrift:lease-taken': LeaseInfo;
  /** Its ceiling was raised. */
  'snowdrift:lease-renewed': LeaseInfo;
  /** A renewal failed; told at each try. `failure` says why. */
  'snowdrift:lease-failing': LeaseInfo;
  /** The slot was taken over, or is no longer recorded, or its file was removed. IDs have stopped. */
  'snowdrift:lease-lost': LeaseInfo;
  /** It was given up. */
  'snowdrift:lease-released': LeaseInfo;
}

/** What every instance can do, whether its IDs come from the generator or by a ring. */
declare abstract class Instance {
  /**
   * The next ID, above the one before unless the clock stepped back. Works detached:
   * `const { nextId } = flake`.
   *
   * It may hold the thread until the next tick if the sequence is exhausted, for `maxWait` at most.
   * Callers that wait are served in turn, across threads and processes.
   *
   * @throws `ERR_SNOWFLAKE_EXHAUSTED` the IDs of a tick are used up and waiting was not allowed;
   *   with `retryAfterMs`
   * @throws `ERR_SNOWFLAKE_CLOCK_BACK` the clock stepped back; with `retryAfterMs`
   * @throws `ERR_SNOWFLAKE_BEFORE_EPOCH` the clock stands before the epoch; with `retryAfterMs`
   * @throws `ERR_SNOWFLAKE_TIME_ENDED` the layout's timestamp bits have run out
   * @throws `ERR_SNOWFLAKE_WINDOW` the clock is below what may have been issued before, after a power cut,
   *   from a page that was deleted, by an earlier holder of the slot or before a namespace was lost; or it has jumped ahead (the process
   *   was suspended) and the disk was not done within `maxWait`; with `retryAfterMs`
   * @throws `ERR_SNOWFLAKE_STORE` the slot could not be renewed, and its ceiling has passed; with
   *   `retryAfterMs`, unless the slot is lost. Or the host's page cannot be used
   * @throws `ERR_SNOWFLAKE_LEASE_EXPIRED` the store has not renewed the lease in time, or the slot was
   *   lost and no other is free
   * @throws `ERR_SNOWFLAKE_CLOCK_SKEW` the clock is further ahead of the store's than `ttl`,
   *   `maxClockSkew` and `maxAhead` allow
   * @throws `ERR_SNOWFLAKE_CLOCK` the `clock` option threw, or returned no time
   * @throws `ERR_SNOWFLAKE_CLOSED` after `close()`
   */
  readonly nextId: () => bigint;

  /** As {@link nextId}, as a decimal string: for ORMs, JSON, and whoever cannot handle a bigint. */
  readonly nextIdString: () => string;

  /**
   * A batch of IDs, at a few ns each.
   *
   * Where a batch needs more than one tick, it holds the thread until they have passed: on the
   * default layout 1,000,000 IDs take 244 ms, and longer while others draw from the same node. While others
   * wait, a batch takes a tick in parts. If it is refused, nothing is drawn: no ID of the batch is
   * handed out, and `stats().issued` does not count it.
   *
   * @param count a whole number from 0 to 1,000,000
   * @throws `ERR_SNOWFLAKE_ARGUMENT` for another count; else as {@link nextId}
   */
  nextIds(count: number): BigUint64Array;

  /** As {@link nextIds}, as decimal strings. */
  nextIdStrings(count: number): string[];

  /**
   * The next ID. It waits without holding the event loop: for the next tick as long as it takes if the
   * sequence is exhausted, and up to `maxWait` for a clock that rolled back, a disk, or the renewal of a
   * lease.
   *
   * Calls that wait are served in the order in which they came. `close()` rejects them at once with
   * `ERR_SNOWFLAKE_CLOSED`.
   *
   * @returns the ID; rejects as {@link nextId} throws
   */
  nextIdAsync(): Promise<bigint>;

  /**
   * Takes an ID apart by this instance's layout.
   *
   * @param id a bigint, or a string of decimal digits, from 0 to 2^63 - 1. A `number` is refused: it
   *   holds 53 bits, so what it shows may be another ID.
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  parse(id: bigint | string): ParsedId;

  /**
   * An ID as UidGenerator's `parseUID` prints it, as JSON:
   * `{"UID":"...","timestamp":"yyyy-MM-dd HH:mm:ss","workerId":"...","sequence":"..."}`. Its worker ID is
   * what lies between timestamp and sequence: of a layout with datacenters `datacenterId` and `workerId`
   * as one number.
   *
   * @param options `timeZone`: the IANA name of one, such as `'Asia/Shanghai'`; default `'UTC'`.
   *   (UidGenerator prints its machine's local time.)
   * @throws `ERR_SNOWFLAKE_INVALID_ID`, and `ERR_SNOWFLAKE_ARGUMENT` for an unknown time zone
   */
  toUidString(id: bigint | string, options?: { timeZone?: string }): string;

  /**
   * Puts an ID together, for tests and migrations. It promises nothing about uniqueness.
   *
   * @param fields What is left out: the instance's own `datacenterId` and `workerId`, the epoch for
   *   `timestamp`, 0 for the others. A `timestamp` (or Date) may lie anywhere in its tick. What
   *   `parse` returns may be passed back.
   * @throws `ERR_SNOWFLAKE_ARGUMENT` a field that does not fit its bits
   */
  compose(fields: Partial<Omit<ParsedFields, 'timestamp'> & { timestamp: number | Date }>): bigint;

  /**
   * The smallest ID of a moment, for `WHERE id >= ?`.
   *
   * @param time a Date or Unix ms, from the epoch to the end of the layout's time
   * @throws `ERR_SNOWFLAKE_ARGUMENT` for another time
   */
  floorId(time: Date | number): bigint;

  readonly datacenterId: number;
  /** With a lease from a store, it changes if the slot is lost; from a directory, never. */
  readonly workerId: number;
  /** Frozen; with the epoch in use. */
  readonly layout: Readonly<Layout>;

  stats(): Stats;

  /** How the slot stands, at this moment. Null without `state` or `lease`. */
  readonly lease: LeaseInfo | null;

  /**
   * Gives up this instance; drawing from it throws `ERR_SNOWFLAKE_CLOSED` from now on. What the node
   * issued stays remembered for as long as the process lives, and in the `state` if there is one. The
   * last instance of a slot frees it at once for other processes, as the end of the process does.
   * Calling it again does nothing.
   *
   * ```js
   * await flake.close()
   * ```
   *
   * @returns settles when the store has released the slot, and within 4 s if the store does not answer:
   *   then the lease expires. It never rejects. Await it before `process.exit()`, which leaves no time to
   *   call a server. Without a lease from a server it settles at once
   */
  close(): Promise<void>;
  /** Whether `close()` was called. */
  readonly isClosed: boolean;
  /** `close()`, for `using`. Where the runtime lacks Symbol.dispose: `Symbol.for('Symbol.dispose')`. */
  [Symbol.dispose](): void;
  /** `close()`, for `await using`. Else: `Symbol.for('Symbol.asyncDispose')`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Draws IDs of one node: one (layout, epoch, datacenterId, workerId).
 *
 * All instances, worker_threads and, on Linux, processes of a host that name one node draw from one
 * sequence, so they never draw an ID twice, not even after `close()`: see {@link SnowFlakeOptions.scope}.
 * Other hosts must have another `datacenterId` or `workerId`, or lease one.
 *
 * No ID is older than the start of the turn of the event loop that draws it: a lone `nextId()` reads
 * the clock; a loop of them reads it anew for every block of up to 256 IDs.
 */
export class SnowFlake extends Instance {
  /**
   * @throws `ERR_SNOWFLAKE_CONFIG` an option, or the environment in its place, is missing or wrong
   * @throws `ERR_SNOWFLAKE_CONFLICT` the node is in use on this host with another `maxAhead` or `state`, or
   *   in this process with another `scope` or `ttl`. (`clockBack`, `maxWait` and `sequenceStart` are each
   *   instance's own.)
   * @throws `ERR_SNOWFLAKE_IN_USE` the slot is in use and cannot be shared: by another host or container,
   *   by a process with scope `'process'` or a lease, or in another format; with `holders` where known
   * @throws `ERR_SNOWFLAKE_NO_SLOT` all slots are held; with `holders`
   * @throws `ERR_SNOWFLAKE_STORE` the shared-memory directory or page, the directory of `state` or the
   *   slot's file cannot be used. Each is left as it is. With `state` or `lease`, the constructor holds the thread for some ms while the disk
   *   writes, for 10 s at most
   */
  constructor(options?: SnowFlakeOptions);

  /**
   * Takes any free slot of a datacenter, without holding the thread. There is no `workerId` to give;
   * the environment's is not read.
   *
   * ```js
   * await using flake = await SnowFlake.lease('file:///var/lib/app/ids', { datacenterId: 1 })
   * const fleetwide = await SnowFlake.lease(postgres(pool, { namespace: 'orders' }), { datacenterId: 1 })
   * ```
   *
   * From a directory: of the slots that were used before and can start at once the longest unused,
   * else one that was never used. See {@link SnowFlakeOptions.state}.
   *
   * From any other store, for a fleet of hosts: the free slot with the lowest ceiling. It is renewed each
   * third of `ttl` by a timer that does not keep the process alive, and given up when the process ends
   * by itself, or by SIGTERM or SIGINT that it does not listen to. `process.exit()` gives it up only with
   * `thread: true`; else the lease expires, so await {@link Instance.close} first. It resolves when IDs can
   * be drawn: it waits for a slot's floor that is still ahead (up to `ttl` + `maxClockSkew` + `maxAhead` in
   * a new namespace on Redis). While the store is away, IDs go on until the ceiling; then they stop with
   * `ERR_SNOWFLAKE_LEASE_EXPIRED`, and go on by themselves when it is back. If the slot was
   * taken over meanwhile, they go on under another workerId, with one `SnowFlakeWarning`
   * (`SNOWFLAKE_SLOT_LOST`). Whatever clocks, pauses and networks do, two holders
   * never share a tick: a holder issues above what was recorded before it came, and up to what the
   * store has confirmed to it.
   *
   * If a store loses what it has confirmed (tables are dropped, a backup is restored), IDs can repeat until
   * the living holders notice, at their next renewal. They stop, warn (`SNOWFLAKE_NAMESPACE_LOST`), and
   * continue after `ttl` + `maxClockSkew` + `maxAhead`. A namespace that is missing on Redis repeats nothing:
   * its first holder waits for as long.
   *
   * @param store a `file:` URL of a directory; a `postgres:`, `mysql:`, `mariadb:`, `redis:`,
   *   `etcd:` or `zookeeper:` URL, whose client the application has installed (`pg`, `mysql2`,
   *   `ioredis`, none, `snowdrift-zookeeper`);
   *   `?namespace=orders` may be part of it; or a `LeaseStore`, such as those of
   *   `snowdrift/lease/postgres`. Default: the environment variable `SNOWDRIFT_LEASE`
   * @returns rejects as the constructor throws, and with `ERR_SNOWFLAKE_CLOCK_SKEW`
   */
  static lease(
    this: void,
    store?: string | URL | LeaseStore,
    options?: LeaseOptions,
  ): Promise<SnowFlake>;

  /**
   * The default instance of this thread, made from `datacenterId` and `workerId` in its environment
   * at the first use.
   */
  static readonly default: SnowFlake;

  /**
   * Makes the default instance with options, before its first use.
   *
   * @throws `ERR_SNOWFLAKE_CONFLICT` it is in use already
   */
  static configure(options: SnowFlakeOptions): SnowFlake;

  /** {@link nextId} of the default instance. Works detached. */
  static nextId(this: void): bigint;
  /** {@link nextIdString} of the default instance. Works detached. */
  static nextIdString(this: void): string;
  /** {@link nextIds} of the default instance. */
  static nextIds(this: void, count: number): BigUint64Array;
  /** {@link nextIdStrings} of the default instance. */
  static nextIdStrings(this: void, count: number): string[];

  /**
   * Takes an ID apart, without a default instance.
   *
   * @param layout Default: the default instance's if there is one, else `'node'`.
   */
  static parse(this: void, id: bigint | string, layout?: LayoutName | Layout): ParsedId;
}

/** Options of a {@link CachedSnowFlake}: those of its ring, and those of SnowFlake but `clock`. */
export interface RingOptions {
  /**
   * The ring has room for the IDs of 2^boostPower ticks: (largest sequence number + 1) << boostPower. 0
   * to 24, default 3, as in UidGenerator. 32,768 IDs on the default layout; 16,777,216 (128 MiB) at most.
   */
  boostPower?: number;
  /**
   * Padding starts when no more than this is left in the ring, in percent: 0 to 100, default 50, as in
   * UidGenerator (which documents it, but cannot set it).
   */
  paddingFactor?: number;
  /**
   * The ring is padded this often besides, in ms: 1 to 86,400,000; default 0, not at all. IDs that have
   * grown too old make room then, so that an idle application finds fresh ones.
   */
  scheduleInterval?: number;
  /**
   * IDs that are older when they are taken are dropped, in ms: 0 to 31,536,000,000; rounded up to whole
   * ticks. Default 1000, or what the ring has room for if that is longer (8 s with ticks of 1 s). It is
   * also how far ticks may lag behind the clock, so how many IDs a burst finds at once.
   */
  maxAge?: number;
  /**
   * When the ring is to be padded by `scheduleInterval` and is full: `'discard'` (default) counts it in
   * `stats().ring.rejectedPuts`; a function is called besides, with the stats, in a turn of its own. No
   * ID is lost either way: none is made before there is room for it.
   */
  onRejectedPut?: 'discard' | ((stats: CachedStats) => void);
  /**
   * When the ring is empty and none can be made, since the clock allows no more: `'wait'` (default) holds
   * the thread for `maxWait` at most, and then throws; `'throw'` does so at once; a function is called
   * with that error, and the ID that it returns is what the caller gets (one a call of `nextIds` too).
   * Its IDs are not looked at, but for their range: that they are unique is up to the function.
   */
  onRejectedTake?: 'wait' | 'throw' | ((refusal: SnowFlakeError) => bigint | string);
}

export type CachedSnowFlakeOptions = Omit<SnowFlakeOptions, 'clock'> & RingOptions;

export interface CachedStats extends Stats {
  /** What the node's ring has done, for all instances and threads together. `issued` is what they took. */
  ring: {
    /** How many IDs it has room for. */
    size: number;
    /** How many it holds. */
    left: number;
    /** How many had grown too old, or lay above a clock that stepped back, and were dropped. */
    dropped: number;
    /** How often it was to be padded by `scheduleInterval` and was full. */
    rejectedPuts: number;
    /** How often an ID was wanted and there was none. */
    rejectedTakes: number;
  };
}

/**
 * UidGenerator's CachedUidGenerator: IDs by a ring that a native thread fills ahead and all instances and
 * worker_threads of the node drain, without a lock. For bursts: 32,768 IDs at once on the default layout,
 * where a {@link SnowFlake} would wait for 8 ticks.
 *
 * Its ticks are counted on from the last one, not read from the clock, so an ID's timestamp may lie up to
 * `maxAge` behind the moment in which it is drawn, and up to `maxAhead` (default 0) before it. In return
 * a step of the clock within `maxAge` is not seen. Draw from a SnowFlake where the timestamp must tell
 * the order of what happens in different threads or processes.
 *
 * What is in the ring was issued by the node's sequence: no other instance or process of the host draws
 * it, the `state` or lease covers it, and what was taken ahead is not repeated after a restart. Without
 * `state` or a lease, choose no `maxAhead` that is longer than a reboot takes. With scope `'process'`,
 * choose none that is longer than a restart takes.
 */
export class CachedSnowFlake extends Instance {
  /**
   * Fills the ring as far as the clock allows.
   *
   * @throws as {@link SnowFlake}; `ERR_SNOWFLAKE_CONFLICT` also where the node's ring is open in this
   *   process with another `boostPower`, `paddingFactor`, `scheduleInterval`, `maxAge`, `clockBack`,
   *   `maxWait` or `sequenceStart`
   */
  constructor(options?: CachedSnowFlakeOptions);

  stats(): CachedStats;

  /** As {@link SnowFlake.lease}. */
  static lease(
    this: void,
    store?: string | URL | LeaseStore,
    options?: Omit<LeaseOptions, 'clock'> & RingOptions,
  ): Promise<CachedSnowFlake>;

  /** As {@link SnowFlake.parse}; the default layout is `'node'`. */
  static parse(this: void, id: bigint | string, layout?: LayoutName | Layout): ParsedId;
}

/** The `code` of a {@link SnowFlakeError}. */
export type SnowFlakeErrorCode =
  /** An option, a layout or the environment is missing or wrong. The message says which and how. */
  | 'ERR_SNOWFLAKE_CONFIG'
  /** The node, or the default instance, is in use with other options. The message names the other value. */
  | 'ERR_SNOWFLAKE_CONFLICT'
  /** An argument of a method is wrong. */
  | 'ERR_SNOWFLAKE_ARGUMENT'
  /** Not an ID, or not one of this layout. */
  | 'ERR_SNOWFLAKE_INVALID_ID'
  /** The IDs of the tick are used up. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_EXHAUSTED'
  /** The clock stepped back. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_CLOCK_BACK'
  /** The clock stands before the epoch. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_BEFORE_EPOCH'
  /** The layout's timestamp bits have run out. */
  | 'ERR_SNOWFLAKE_TIME_ENDED'
  /** The `clock` option threw, or returned no time. */
  | 'ERR_SNOWFLAKE_CLOCK'
  /** The instance is closed. */
  | 'ERR_SNOWFLAKE_CLOSED'
  /** The slot is in use and cannot be shared. With `holders` where known. */
  | 'ERR_SNOWFLAKE_IN_USE'
  /** The store has not renewed the lease, and its ceiling has passed; or the slot was lost. */
  | 'ERR_SNOWFLAKE_LEASE_EXPIRED'
  /** This machine's clock and the store's are too far apart. */
  | 'ERR_SNOWFLAKE_CLOCK_SKEW'
  /** All slots of the datacenter are held. With `holders`. */
  | 'ERR_SNOWFLAKE_NO_SLOT'
  /**
   * A server cannot be reached, refuses the login, does not answer within `callTimeout`, or a call to it
   * fails; or a namespace is for another layout; or a slot's file cannot be used or written. The message
   * names the server's host and port, or the file, and what to do; `cause` is the client's own error.
   */
  | 'ERR_SNOWFLAKE_STORE'
  /** The clock stands outside the time for which the slot may issue IDs. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_WINDOW'
  /** There is no addon for this platform. */
  | 'ERR_SNOWFLAKE_ADDON';

/** Everything that snowdrift throws. `message` says what happened, to what value, and what to do. */
export class SnowFlakeError extends Error {
  private constructor();
  readonly name: 'SnowFlakeError';
  readonly code: SnowFlakeErrorCode;
  /** When the same call can succeed, in whole ms from now, by an evenly running clock. */
  readonly retryAfterMs?: number;
  /** Who holds the slot, or all of them; as far as that could be read. */
  readonly holders?: SlotHolder[];
  /** What the application's own code or a store's client threw, if that is the reason. It holds no password of a URL. */
  readonly cause?: unknown;
}
