/**
 * 64-bit Snowflake IDs without duplicates: by default within one container, or for one user of a machine. Give
 * every other host its own `workerId`, or lease one.
 *
 * ```js
 * // datacenterId=1 workerId=3 node server.js
 * const { SnowFlake } = require('snowdrift')
 * SnowFlake.nextId()        // 900710334548459520n
 * SnowFlake.nextIdString()  // '900710334548459521'
 * ```
 *
 * Each error thrown is a {@link SnowFlakeError} with a {@link SnowFlakeErrorCode}. Problems that do not stop IDs
 * are process warnings of type `SnowFlakeWarning`:
 *
 * | code | meaning |
 * |---|---|
 * | `SNOWFLAKE_CLOCK_BACK` | the clock rolled back |
 * | `SNOWFLAKE_TIME_ENDING` | the layout's timestamp overflows within a year |
 * | `SNOWFLAKE_TEXT_IDS` | a column of TypeORM or Prisma stores IDs as text. IDs get a digit longer within a year: then it sorts wrongly |
 * | `SNOWFLAKE_VARIABLE` | an environment variable is not read: its name is probably misspelt |
 * | `SNOWFLAKE_SECOND_USER` | a process of another user of this machine has the same node, and may issue the same IDs |
 * | `SNOWFLAKE_PROCESS_SCOPE` | the system has no place for pages, so other processes of the node issue duplicates: see {@link SnowFlakeOptions.scope} |
 * | `SNOWFLAKE_SLOT_UNUSABLE` | a lease skipped a slot of a directory: its file or worker ID cannot be used |
 * | `SNOWFLAKE_LEASE_FAILING` | a lease is not renewed; at most once a minute for each lease |
 * | `SNOWFLAKE_LEASE_RENEWED` | a lease is renewed again, after `SNOWFLAKE_LEASE_FAILING` |
 * | `SNOWFLAKE_SLOT_LOST` | a lease lost its slot, and continues under another worker ID |
 * | `SNOWFLAKE_NAMESPACE_NEW` | a lease created its namespace in a store that has others: the name may be misspelt |
 * | `SNOWFLAKE_NAMESPACE_LOST` | the store lost the lease's namespace, or restored an older state of it |
 * | `SNOWFLAKE_FLOOR` | a lease waits for its first ID, until the clock has passed the slot's floor |
 *
 * For metrics and logs, see {@link DiagnosticsEvents} and {@link Stats}.
 */

import type { Layout, LayoutName, ParsedFields, ParsedId } from './js/id';
import type { AssigningStore, LeaseStore, WorkerNodeStore } from './js/stores/store';

export type { BigIntId, Id, Layout, LayoutName, NumberId, ParsedFields, ParsedId } from './js/id';
export type {
  AssigningStore,
  AssignRequest,
  CallOptions,
  LeaseRecord,
  LeaseStore,
  WorkerNodeStore,
} from './js/stores/store';

declare global {
  // As @types/node declares them, for compilers that read neither it nor the library esnext.disposable.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
}

/** The named layouts. Frozen. */
export const layouts: Readonly<Record<LayoutName, Layout>>;

/**
 * Options of `new SnowFlake()` and `SnowFlake.configure()`. Each has a default, some from the environment.
 *
 * `lease`, `state`, `scope`, `layout` and `epoch` determine the IDs, or protect them. Passing one of them as undefined,
 * null or empty is `ERR_SNOWFLAKE_CONFIG`: a variable that is not set must not turn a lease off. For the others,
 * undefined means the default.
 */
export interface SnowFlakeOptions {
  /**
   * 0 to 2^datacenterBits - 1. Default: the environment variable `datacenterId` of the calling thread. If
   * both are missing, it is `ERR_SNOWFLAKE_CONFIG`. If the layout has no bits for it, the variable may be 0 or
   * unset. Another value is `ERR_SNOWFLAKE_CONFIG`, since nodes that differ only in it would issue duplicates. That
   * value is ignored if the options name the `workerId`, or if a server leases it.
   */
  datacenterId?: number | undefined;
  /** 0 to 2^workerBits - 1. Default: the environment variable `workerId`. Otherwise as `datacenterId`. */
  workerId?: number | undefined;
  /** Default `'node'`. */
  layout?: LayoutName | (Omit<Layout, 'epoch'> & { readonly epoch: number | Date });
  /**
   * Replaces the layout's epoch. A `Date` or Unix ms, not seconds: see {@link Layout}. Write a constant: an epoch that
   * changes with a restart causes duplicates. So without the option `clock`, an epoch that is less than an hour ago, in
   * the future or before 1970 is `ERR_SNOWFLAKE_CONFIG`. Decoding accepts any.
   */
  epoch?: number | Date;
  /**
   * What to do after a clock rollback.
   *
   * - `'counter'`: continue at once under another value of the clock-back counter, with a warning. If no
   *   value is free, as `'wait'`. Default if the layout has `clockBackBits`.
   * - `'wait'`: wait until the clock has caught up, for at most `maxWait`. If that is too short, throw
   *   `ERR_SNOWFLAKE_CLOCK_BACK` with `retryAfterMs`. Default if it has none.
   * - `'throw'`: throw `ERR_SNOWFLAKE_CLOCK_BACK` at once, as Twitter Snowflake does.
   */
  clockBack?: 'counter' | 'wait' | 'throw';
  /**
   * The longest time that one reservation may block the thread while it waits for the clock, in ms: 0 to
   * 60,000, default 10. A batch that spans several ticks may wait that long for each of them.
   */
  maxWait?: number;
  /**
   * How far ahead of the clock IDs may be issued instead of waiting for the next tick, in ms: 0 to 3,600,000,
   * default 0. Rounded down to whole ticks.
   *
   * Above 0 it needs `state` or a lease, whatever the `scope`: their ceiling outlives the process and its page.
   * Without them a restart would issue the IDs taken ahead again, so it is `ERR_SNOWFLAKE_CONFIG`. An instance with
   * a `clock` needs neither.
   *
   * All processes that share a node at one time need the same value. Another one is `ERR_SNOWFLAKE_CONFLICT`, which
   * names the value in use.
   *
   * A node whose page is new on this host begins `maxAhead` ahead of the clock: a removed page may have been that far
   * ahead. So the first burst beyond the clock is possible when `maxAhead` has passed.
   */
  maxAhead?: number;
  /**
   * The first sequence number of a tick: 0 (default), or a random one in the lower half of the range, so that
   * `id % n` spreads evenly even at one ID a tick. `'random'` costs on average a quarter of a tick's IDs.
   */
  sequenceStart?: 'zero' | 'random';
  /**
   * Which processes share one sequence, if they name the same node (layout, epoch, `datacenterId`,
   * `workerId`).
   *
   * - `'auto'` (default): `'host'`. Where Linux has no `/dev/shm` in memory (AWS Lambda), a node without `state`
   *   or a lease belongs to this process alone. A worker of a cluster or of pm2 then gets
   *   `ERR_SNOWFLAKE_CONFIG`. Any other process gets the warning `SNOWFLAKE_PROCESS_SCOPE`.
   * - `'host'`: all processes of this user that see one shared directory: replicas, pm2 reloads, test runners,
   *   worker_threads, several copies of this package. Without such a directory it is `ERR_SNOWFLAKE_CONFIG`.
   * - `'process'`: this process with its worker_threads. Two processes with one node then issue duplicates.
   *
   * The directory is `/dev/shm/snowdrift-<uid>` on Linux, in the user's cache directory on macOS, and in the
   * local application data on Windows. The environment variable `SNOWDRIFT_SHARED` replaces its parent, for
   * containers that share one: in memory (tmpfs or ramfs) on Linux, on a local disk elsewhere. All processes
   * of a node need the same. A directory or page that is foreign, a symbolic link, damaged or overwritten is
   * `ERR_SNOWFLAKE_STORE`; so is a directory whose file system the process cannot check. A page of another
   * format is `ERR_SNOWFLAKE_IN_USE`. None of these falls back to `'process'`. A lease from a store takes another worker ID
   * than that of such a page.
   *
   * A process that changes its user (`process.setuid()`, `process.seteuid()`) continues in the new user's
   * directory, as the processes that it starts do. While others use the old user's page, it is refused with
   * `ERR_SNOWFLAKE_STORE`. With `state` or a lease it stays where it is.
   *
   * All instances of a node in one process need one scope. With {@link SnowFlake.lease}, the scope decides
   * whether the host's processes share one slot. `'host'` cannot be combined with `clock`.
   */
  scope?: 'auto' | 'host' | 'process';
  /**
   * Returns the time in Unix ms. For tests with fake timers: `clock: () => Date.now()`. Such an instance has
   * a sequence of its own, so it may issue duplicates of other instances' IDs. It reads its clock for every ID. A
   * clock that throws, or returns anything but a time, is `ERR_SNOWFLAKE_CLOCK`. Cannot be combined with `state` or
   * `lease`.
   */
  clock?: () => number;
  /**
   * A directory in which this `datacenterId` and `workerId` are claimed, so that IDs stay unique across reboots and
   * power cuts: an absolute path or a `file:` URL. Default: the environment variable `SNOWDRIFT_STATE`. snowdrift
   * creates the directory, but not its parents. A directory is for one layout and epoch. The clocks of hosts that
   * share one should agree within 10 s.
   *
   * After a clean close, IDs continue in the next tick; after a kill, at the next number; after a reboot, above the
   * recorded ceiling. So does another host after a kill, and scope `'process'`. The constructor waits up to a second
   * for the clock to pass it, {@link SnowFlake.lease} up to a minute. Beyond that, IDs are refused with
   * `ERR_SNOWFLAKE_WINDOW` and `retryAfterMs`. A full or frozen disk stops no caller before the ceiling.
   *
   * The processes of a host share the slot. Another host or container gets `ERR_SNOWFLAKE_IN_USE`, or waits with
   * `waitForSlot`; so does another process with scope `'process'`. All processes that share a node at one time set
   * `state` or lease, or none does: otherwise it is `ERR_SNOWFLAKE_CONFLICT`.
   */
  state?: string | URL;
  /**
   * As `state`, but for any free slot of the datacenter, so you give no `workerId`: a `file:` URL. Default:
   * the environment variable `SNOWDRIFT_LEASE`. {@link SnowFlake.lease} does the same without blocking the
   * thread.
   *
   * With scope `'host'`, all processes of this host that lease from one directory share one slot of the datacenter, also
   * one claimed by `state`. With scope `'process'`, each instance takes a slot of its own, and the default instances of
   * all threads share one.
   *
   * A slot whose file cannot be used (another user's, damaged, not a file) is skipped with the warning
   * `SNOWFLAKE_SLOT_UNUSABLE`.
   */
  lease?: string | URL;
  /**
   * For how long a renewal holds the slot, in ms: 1,000 to 3,600,000, default 10,000. A native thread renews it after
   * 0.4 of that. If the disk fails, IDs continue up to the ceiling: `ttl` after the last renewal. After a power
   * cut, IDs are refused for at most `ttl` + `maxAhead`, if the clock is right. Another host may take the slot of a
   * killed holder at once, that of a stopped one when its hold has expired for half of the longest `ttl` that the
   * directory had.
   */
  ttl?: number;
  /**
   * How long to wait for a slot that is in use and cannot be shared, in ms: 0 to 3,600,000, default 0. The
   * constructor blocks the thread meanwhile; {@link SnowFlake.lease} does not. If the hold of its holder has expired, it
   * takes half a `ttl` more, to see that nobody renews it. For containers that use one directory one after another, if
   * the next one starts before the previous one has ended.
   */
  waitForSlot?: number;
}

/** Options of {@link SnowFlake.lease}. */
export interface LeaseOptions
  extends Omit<SnowFlakeOptions, 'workerId' | 'state' | 'lease' | 'clock'> {
  /**
   * Not for directories. Claims this worker ID, and no other: 0 to the largest of the layout. All processes of this host share
   * it. While another host holds it, the claim waits for `waitForSlot`, then rejects with `ERR_SNOWFLAKE_IN_USE` and the holder.
   * By default that is `ttl` + `callTimeout`, since a restarted container waits for its own dead self.
   *
   * A lease without a claim takes any free worker ID, also a claimed one whose holder has closed or expired. Let all processes of
   * a datacenter claim, or none.
   */
  workerId?: number;
  /**
   * For how long a renewal holds the slot, in ms: 1,000 to 3,600,000; from a server 30,000 by default, from S3 and `gs:` 180,000, from a directory
   * {@link SnowFlakeOptions.ttl}. A server's lease is renewed after each third, and a call of that may take a sixth: where the store
   * is slower, or all event loops of a host may be busy for longer than two thirds, give more. A slot that nobody released is free
   * `ttl` + `maxClockSkew` after its last renewal.
   */
  ttl?: number;
  /**
   * How long to wait for a slot, in ms: 0 to 3,600,000, default 0, of a claim `ttl` + `callTimeout`. From a server, failed calls are
   * tried again meanwhile, unless the login is refused. If all slots are held and the hold of one has expired, the lease also waits for half a `ttl`, to see that
   * nobody renews it.
   */
  waitForSlot?: number;
  /**
   * Not for directories. How far this machine's clock and the store's may differ at the start, in ms: 0 to
   * 86,400,000, default 10,000 (Twitter Snowflake's bound). Later, an ID further ahead of the store's clock
   * than `ttl` + `maxClockSkew` + `maxAhead` is refused with `ERR_SNOWFLAKE_CLOCK_SKEW`.
   *
   * A namespace records the highest `ttl`, `maxClockSkew` and `maxAhead` that a lease had: after a loss of data, all wait for
   * `ttl` + 2 x `maxClockSkew` + `maxAhead`. They never fall.
   */
  maxClockSkew?: number;
  /**
   * Not for directories. The host and port at which this process serves, such as `'10.0.0.7:8080'`: recorded with the slot, for
   * people and for the peers of `npx snowdrift serve`.
   */
  address?: string;
  /**
   * Not for directories. How long one call may take, in ms: 1 to 60,000, default 5,000; of a renewal a sixth of `ttl` at most. A
   * lease from a URL then closes the call's connection, and the next call opens another. A time in which the process was stopped,
   * or its event loop busy, counts for at most a tenth of the limit.
   */
  callTimeout?: number;
}

/** The state of a slot. Times in Unix ms. */
export interface LeaseInfo {
  /** The store that records it. */
  store: string;
  /** Whether this host's processes share the slot, or one instance or process has it alone. */
  scope: 'host' | 'process';
  slot: { datacenterId: number; workerId: number };
  /** The ID of this hold: 16 hexadecimal digits. */
  owner: string;
  /** No ID of this time or before is issued: an earlier holder may have issued it. Null for none. */
  floor: number | null;
  /** No ID after this time is issued before the next renewal. */
  ceiling: number;
  /**
   * When the hold expires unless it is renewed. Others take the slot `maxClockSkew` later; in a directory, after another half of a
   * `ttl`. Null for `WORKER_NODE` tables, whose holds do not expire.
   */
  expires: number | null;
  /** How often the ceiling was raised, by all processes that share the slot. */
  renewals: number;
  /**
   * Of a slot that the host's processes share: the process that renews it, and since when. If it ends or its
   * event loop is blocked, another process takes over before half of the `ttl` has passed.
   */
  renewer?: { pid: number; since: number };
  /**
   * - `'held'`
   * - `'failing'`: the last renewal failed, see `failure`. IDs continue up to the ceiling, and renewals are
   *   retried
   * - `'expired'`: the ceiling has passed. IDs have stopped until a renewal succeeds
   * - `'lost'`: IDs have stopped. `lost` has the reason, and this process waits for a slot: with `state` or a claim, the same one
   * - `'released'`: the instance is closed
   */
  state: 'held' | 'failing' | 'expired' | 'lost' | 'released';
  /**
   * Why the slot was lost.
   *
   * - `'taken'`: another host or process took it over
   * - `'reverted'`: the store no longer records it, or returned to an older state; or `npx snowdrift recover` was run
   * - `'page'`: the page by which this host's processes share it was deleted, or another process of this host took the worker ID
   *   over
   * - `'restored'`: this machine was restored from a snapshot, see {@link Generator.afterRestore}
   */
  lost?: 'taken' | 'reverted' | 'page' | 'restored';
  /**
   * How far this machine's clock was ahead of the store's at the last call, in ms; negative if it was
   * behind. Left out within `maxClockSkew`.
   */
  clockSkew?: number;
  /** Why the last renewal failed. Left out if it succeeded. */
  failure?: string;
}

/** A process that holds a slot. */
export interface SlotHolder {
  pid: number;
  host: string;
  /** When the process started. */
  startedAt: Date;
  /** Its slot, if a lease names it. */
  workerId?: number;
}

/**
 * Figures of a node's generator. `issued`, `waits`, `waitedMs` and `clockRollbacks` count this process, all
 * instances and threads together, since it opened the node or began its lease. With scope `'host'`, `clockBack` and
 * `highMarks` are the host's.
 */
export interface Stats {
  /** IDs handed out. */
  issued: number;
  /**
   * How often calls waited for the clock, the disk or the store. Includes calls of `nextIdAsync()`, and waits
   * for the option `clock`. The messages of `snowdrift:wait` add up to it.
   */
  waits: number;
  /** How long these waits took in all, in ms. */
  waitedMs: number;
  /** Clock rollbacks. */
  clockRollbacks: number;
  /** The clock-back counter in use. */
  clockBack: number;
  /** For each value of the counter: Unix ms of the highest tick issued under it; null for none. */
  highMarks: (number | null)[];
  /**
   * When the layout's timestamp overflows. An invalid Date if a Date cannot hold it. In the year before, the
   * process gets one warning a layout, `SNOWFLAKE_TIME_ENDING`.
   */
  endOfTime: Date;
  /** Which processes share the sequence: see {@link SnowFlakeOptions.scope}. */
  scope: 'host' | 'process';
  /** The file of the page that the host's processes share. Left out with scope `'process'`. */
  page?: string;
  /** Whether the time comes from the machine or from the option `clock`. */
  clock: 'system' | 'custom';
}

/** The slot or node of a message in {@link DiagnosticsEvents}. */
export interface SlotMessage {
  datacenterId: number;
  workerId: number;
}

export interface ClockRollbackMessage extends SlotMessage {
  /** How far below the last tick the clock was, in ms. */
  backMs: number;
  /** The clock-back counter in use since. */
  clockBack: number;
  /** Earlier rollbacks without a message: the first 10 have one each, then at most one in 10 s has. */
  unreported: number;
}

export interface WaitMessage extends SlotMessage {
  /**
   * The reason for the last of these waits.
   *
   * - `'exhausted'`: the next tick, since the sequence was exhausted
   * - `'clock-back'`: a clock that had rolled back
   * - `'floor'`: the end of a time in which others may have issued IDs
   * - `'ceiling'`: the disk or the store
   * - `'before-epoch'`: the layout's epoch
   */
  reason: 'exhausted' | 'clock-back' | 'floor' | 'ceiling' | 'before-epoch';
  /** How often this call waited. */
  waits: number;
  /** How long it waited in all, in ms. */
  waitedMs: number;
  /** Whether the wait blocked the thread. `nextIdAsync()` does not. */
  blocking: boolean;
}

/**
 * The channels of `node:diagnostics_channel` and their messages, published in the instance's thread. Channels
 * without subscribers cost nothing.
 *
 * ```js
 * const { subscribe } = require('node:diagnostics_channel');
 * subscribe('snowdrift:lease-lost', ({ slot, failure }) => alert(slot.workerId, failure));
 * ```
 *
 * Each instance publishes its own events, so two instances of one slot publish twice. A subscriber may call
 * `nextId` of the instance that published. The events of that call are published by a later call.
 */
export interface DiagnosticsEvents {
  /** The clock rolled back. */
  'snowdrift:clock-rollback': ClockRollbackMessage;
  /** A call waited for the clock, the disk or the store, and got an ID or an error. */
  'snowdrift:wait': WaitMessage;
  /** The instance has a slot: its first one, or another one after a loss. */
  'snowdrift:lease-taken': LeaseInfo;
  /** The ceiling was raised. */
  'snowdrift:lease-renewed': LeaseInfo;
  /** A renewal failed; `failure` has the reason. One message a try. */
  'snowdrift:lease-failing': LeaseInfo;
  /** The slot is lost, and IDs have stopped; `lost` has the reason. */
  'snowdrift:lease-lost': LeaseInfo;
  /** The instance gave up its slot. */
  'snowdrift:lease-released': LeaseInfo;
}

/**
 * The methods of every instance, a {@link SnowFlake} or a {@link CachedSnowFlake}. Without their instance, or on a Proxy
 * of it such as Vue's `reactive()` makes, methods and getters throw `ERR_SNOWFLAKE_ARGUMENT`.
 *
 * A subclass may add methods. One that overrides a method that generates IDs is refused with `ERR_SNOWFLAKE_CONFIG`: the
 * other methods and static calls would not use it. So is `lease()` of a subclass: it would not return its instance.
 */
declare abstract class Generator {
  /**
   * Generates an ID. It is higher than the one before, unless the clock rolled back. `nextId` can be passed as a
   * callback, and taken from its instance: `const { nextId } = flake`. (UidGenerator: `getUID`.)
   *
   * If the sequence is exhausted, it may block the thread until the next tick, for at most `maxWait`. Waiting
   * callers are served in turn, across threads and processes.
   *
   * @throws `ERR_SNOWFLAKE_EXHAUSTED` the sequence is exhausted for longer than `maxWait`
   * @throws `ERR_SNOWFLAKE_CLOCK_BACK` the clock rolled back, and `clockBack` does not let IDs continue
   * @throws `ERR_SNOWFLAKE_BEFORE_EPOCH` the clock is before the epoch
   * @throws `ERR_SNOWFLAKE_TIME_ENDED` the layout's timestamp has overflowed
   * @throws `ERR_SNOWFLAKE_WINDOW` IDs of the clock's present time may already exist: from before a power cut, of a
   *   deleted page, of an earlier holder of the slot, of a lost namespace, or by a clock that was ahead. Or the
   *   clock jumped forwards (a suspended process), and the disk did not record it within `maxWait`
   * @throws `ERR_SNOWFLAKE_STORE` the directory could not be written, and the ceiling has passed; or the host's page
   *   cannot be used
   * @throws `ERR_SNOWFLAKE_LEASE_EXPIRED` the store did not renew the lease in time; or the slot was lost and
   *   no other one is free
   * @throws `ERR_SNOWFLAKE_CLOCK_SKEW` the clock is further ahead of the store's than `ttl` + `maxClockSkew` +
   *   `maxAhead`
   * @throws `ERR_SNOWFLAKE_CLOCK` the option `clock` threw, or returned no time
   * @throws `ERR_SNOWFLAKE_CLOSED` the instance is closed
   */
  readonly nextId: () => bigint;

  /** As {@link nextId}, but a decimal string: for JSON, and for ORMs that cannot handle a bigint. */
  readonly nextIdString: () => string;

  /**
   * As {@link nextId}, but 13 characters of Crockford's base32, such as `'0RZZQ8VR4HG00'`: text whose order by
   * character code is the order of the IDs, for ever. Decimal strings sort wrong once IDs get a digit more
   * (`npx snowdrift layout` prints when). For keys of object stores and caches, file names, cursors, text columns.
   *
   * The characters are `0` to `9` and `A` to `Z` without I, L, O and U; the first one is `0` to `7`. `fromBase32()`
   * of `snowdrift/id` reads it.
   */
  readonly nextIdBase32: () => string;

  /**
   * As {@link nextId}, but a number, exact up to `Number.MAX_SAFE_INTEGER`. Only with a layout of at most 53 bits,
   * such as `'safe'`.
   *
   * @throws `ERR_SNOWFLAKE_CONFIG` the layout has more than 53 bits
   * @throws `ERR_SNOWFLAKE_INVALID_ID` a number does not hold the ID that `onRejectedTake` returned; else as
   *   {@link nextId}
   */
  readonly nextIdNumber: () => number;

  /**
   * Generates a batch of IDs, at a few ns each.
   *
   * A batch that needs several ticks blocks the thread until they have passed: on the default layout 1,000,000
   * IDs take 244 ms, and longer if others use the node. It takes each tick in parts, so that others get IDs, too. A
   * batch that is refused returns no IDs, and `stats().issued` does not count it.
   *
   * @param count a whole number from 0 to 1,000,000
   * @throws `ERR_SNOWFLAKE_ARGUMENT` for another count; else as {@link nextId}
   */
  nextIds(count: number): BigUint64Array;

  /**
   * Fills your array, or a `subarray()` of it, and returns it, as `crypto.getRandomValues` does. 1,000 IDs
   * take about 1 ns each. If it is refused, the array holds zeros or its earlier values.
   *
   * @param array up to 1,000,000 long, on an ArrayBuffer that is not shared, and neither transferred nor
   *   shrunk
   * @throws `ERR_SNOWFLAKE_ARGUMENT` for another array; else as {@link nextId}
   */
  nextIds<T extends BigUint64Array>(array: T): T;

  /** As {@link nextIds}, but decimal strings. */
  nextIdStrings(count: number): string[];

  /**
   * Generates an ID without blocking the event loop. If the sequence is exhausted, it waits for the next tick, of
   * any length, while the clock runs. For a clock that rolled back or stands still, a disk or a lease, it waits for
   * at most `maxWait` (in the middle of a tick of seconds, up to a second longer).
   *
   * Waiting calls are served in order. `close()` rejects them at once with `ERR_SNOWFLAKE_CLOSED`.
   *
   * @returns the ID; rejects as {@link nextId} throws
   */
  nextIdAsync(): Promise<bigint>;

  /**
   * Decodes an ID by this instance's layout.
   *
   * @param id a bigint or a string of decimal digits without leading zeros, 0 to 2^63 - 1. `ids.map(flake.parse)` works. A
   *   number is refused: it holds only 53 bits, so it may already be another ID. With a layout of at most 53 bits, it is
   *   accepted, too: in TypeScript, `SnowFlake.parse(id, 'safe')`
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  parse(this: void, id: bigint | string): ParsedId;

  /**
   * Formats an ID as UidGenerator's `parseUID` does, as JSON:
   * `{"UID":"...","timestamp":"yyyy-MM-dd HH:mm:ss","workerId":"...","sequence":"..."}`. Its `workerId` has
   * all bits between timestamp and sequence as one number.
   *
   * @param options `timeZone`: an IANA name such as `'Asia/Shanghai'`; default `'UTC'`. (UidGenerator uses
   *   its machine's local time.)
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   * @throws `ERR_SNOWFLAKE_ARGUMENT` the time zone is unknown
   */
  toUidString(id: bigint | string, options?: { timeZone?: string }): string;

  /**
   * Encodes an ID, for tests and migrations. Such an ID is not unique.
   *
   * @param fields as `parse()` returns them. Defaults: the instance's `datacenterId` and `workerId`, the epoch
   *   as `timestamp`, 0 for the others. A `timestamp` is a Date or Unix ms, anywhere in its tick
   * @throws `ERR_SNOWFLAKE_ARGUMENT` a field does not fit its bits
   */
  compose(fields: Partial<Omit<ParsedFields, 'timestamp'> & { timestamp: number | Date }>): bigint;

  /**
   * The smallest ID of a time, for `WHERE id >= ?`.
   *
   * @param time a Date or Unix ms, from the epoch to the end of the layout's time
   * @throws `ERR_SNOWFLAKE_ARGUMENT` for another time
   */
  floorId(time: Date | number): bigint;

  readonly datacenterId: number;
  /** Changes if a lease loses its slot and takes another one. */
  readonly workerId: number;
  /** With the epoch in use. Frozen. */
  readonly layout: Readonly<Layout>;

  /** Figures of this moment. After `close()`, those of the close. */
  stats(): Stats;

  /** The slot at this moment. Null without `state` or a lease. */
  readonly lease: LeaseInfo | null;

  /**
   * Says that this machine, container or process was restored from a snapshot (AWS Lambda SnapStart, CRIU, a microVM), so that
   * another one with the same memory may exist. Call it in the hook that runs after each restore, before the first ID, in
   * each process that has a lease: a slot that none of its processes gives up goes on beside the original's.
   *
   * The slot ends at once, for all processes of this host, and the lease takes another one: `nextIdAsync()` waits for it.
   * The original, if it runs on, keeps its slot. A claim takes its worker ID again when the original's hold has expired.
   *
   * @throws `ERR_SNOWFLAKE_CONFIG` the instance has no lease from a store
   */
  afterRestore(): void;

  /**
   * Closes this instance: `nextId()` throws `ERR_SNOWFLAKE_CLOSED` from now on. The process remembers what the
   * node issued; with `state` or a lease, the store does, too. The last instance of a slot releases it, as the end of the
   * process does. Further calls do nothing.
   *
   * ```js
   * await flake.close()
   * ```
   *
   * @returns settles when the server has released the slot, or after at most 4 s: then the lease expires.
   *   Without a lease from a server, at once; the disk of a directory may block the thread for up to a second. It never
   *   rejects. Await it before `process.exit()`, which leaves no time for a call to a server
   */
  close(): Promise<void>;
  /** Whether `close()` was called. */
  readonly isClosed: boolean;
  /** `close()`, for `using`. Without Symbol.dispose in the runtime: `Symbol.for('Symbol.dispose')`. */
  [Symbol.dispose](): void;
  /** `close()`, for `await using`. Otherwise `Symbol.for('Symbol.asyncDispose')`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Generates IDs of one node: one (layout, epoch, datacenterId, workerId).
 *
 * All instances, worker_threads and, with scope `'host'`, processes of a host that name one node share one
 * sequence: there are no duplicates among their IDs, not even after `close()`. Give every other host another
 * `datacenterId` or `workerId`, or lease one.
 *
 * An ID's timestamp is never earlier than the event loop's callback that generated it. Each of a callback's first 16 IDs has the
 * time of its call. A loop reads the clock for every block of up to 256 IDs; the block's size follows the loop's
 * rate.
 */
export class SnowFlake extends Generator {
  /**
   * With `state` or `lease`, it blocks the thread for some ms while the disk writes, and up to a second for the slot's
   * floor: for at most 11 s besides `waitForSlot`.
   *
   * @throws `ERR_SNOWFLAKE_CONFIG` an option, or its environment variable, is missing or wrong; or a subclass overrides a
   *   method that generates IDs
   * @throws `ERR_SNOWFLAKE_CONFLICT` the node is in use on this host with another `maxAhead`, or with `state` or a lease
   *   by one of the two only, or in this process with another `scope` or `ttl`. (`clockBack`, `maxWait` and
   *   `sequenceStart` may differ.)
   * @throws `ERR_SNOWFLAKE_IN_USE` the slot is in use and cannot be shared: by another host or container, by a process
   *   with scope `'process'`, or on this host by another `state` directory. Or its page has another format
   * @throws `ERR_SNOWFLAKE_NO_SLOT` all slots are held
   * @throws `ERR_SNOWFLAKE_STORE` the shared-memory directory, the page, the directory of `state` or the
   *   slot's file cannot be used. snowdrift leaves it unchanged
   * @throws `ERR_SNOWFLAKE_ADDON` by `require()` and `import`: this platform has no addon
   */
  constructor(options?: SnowFlakeOptions);

  /**
   * Leases any free worker ID of a datacenter, or claims the one that you name, without blocking the thread.
   *
   * ```js
   * const flake = await SnowFlake.lease('file:///var/lib/app/ids', { datacenterId: 1 })
   * const fleetwide = await SnowFlake.lease(postgres(pool, { namespace: 'orders' }), { datacenterId: 1 })
   * const claimed = await SnowFlake.lease(postgres(pool), { datacenterId: 1, workerId: 3 })
   * ```
   *
   * With a server in the environment variable `SNOWDRIFT_LEASE`, the variable `workerId` is a claim, too. With a `store` as
   * argument it is not read.
   *
   * **Which slot.** All processes and threads of this host that lease from one store, namespace, layout, epoch
   * and datacenter share one slot. A host whose processes were all killed continues with its slot. A host
   * without a slot takes one that is free and can start at once: from a directory the lowest, from a server one at
   * random. Then it takes one that expired.
   * With `scope: 'process'`, or on a host without pages (see {@link SnowFlakeOptions.scope}), each lease takes a slot of its own.
   *
   * **Renewal.** One of the processes renews the slot after each third of `ttl`, by a timer that does not keep the process
   * alive, or in a directory after 0.4 `ttl`, by a native thread. If that process ends or is busy, another one takes over. The last
   * one to close releases the slot. A lease closes when the process ends by itself; one from a directory also by `process.exit()`
   * (not on Windows), one from a server by a SIGTERM or SIGINT without a listener (those of the package `signal-exit` do not count). Otherwise await
   * {@link Generator.close} first, or the slot stays unused until it expires; a directory's is free at once, but other hosts wait for its ceiling.
   *
   * **Failure.** While the server is away, IDs continue up to the ceiling, then stop with
   * `ERR_SNOWFLAKE_LEASE_EXPIRED`, and continue when it is back. If another host took the slot over meanwhile,
   * all processes of this host continue under one new `workerId`, each with the warning
   * `SNOWFLAKE_SLOT_LOST`. Two holders never share a tick, whatever their clocks, pauses and networks do: a
   * holder issues IDs above the ceiling recorded before it came, and up to the one that the store confirmed.
   *
   * **Data loss.** If a store loses confirmed records (dropped tables, a restored backup), there can be duplicates
   * until the next renewal. Then holders stop with the warning `SNOWFLAKE_NAMESPACE_LOST`, and continue after
   * `ttl` + 2 x `maxClockSkew` + `maxAhead`. On Redis a missing namespace causes no duplicates: its first holders
   * wait for that long.
   *
   * @param store a `file:` URL of a directory; a `postgres:`, `mysql:`, `mariadb:`, `redis:`, `upstash:`, `mongodb:`, `etcd:`,
   *   `zookeeper:`, `dynamodb:`, `s3:`, `gs:` or `kubernetes:` URL, with `?namespace=orders` if you like; or a `LeaseStore`, such as
   *   `postgres(pool)` of `snowdrift/lease/postgres`; or an `AssigningStore`, which numbers workers by a function. URLs
   *   need the package `pg`, `mysql2`, `ioredis`, `@upstash/redis`, `mongodb`, none, `snowdrift-zookeeper`, `@aws-sdk/client-dynamodb`,
   *   `@aws-sdk/client-s3` or `@google-cloud/storage`. Default: the environment variable `SNOWDRIFT_LEASE`
   * @returns resolves when IDs are available, so it waits for a slot's floor that is still ahead: of a directory up to a
   *   minute. Rejects as the constructor throws; with `ERR_SNOWFLAKE_IN_USE` if another host holds the worker ID that it claims; with
   *   `ERR_SNOWFLAKE_CLOCK_SKEW`; and with `ERR_SNOWFLAKE_CONFLICT` if other
   *   processes share the slot with another `maxAhead`
   */
  static lease(
    this: void,
    store?: string | URL | LeaseStore | AssigningStore | WorkerNodeStore,
    options?: LeaseOptions,
  ): Promise<SnowFlake>;

  /**
   * The default instance of this thread. Static calls, `PrimarySnowFlakeColumn()` and Prisma's extension use
   * it. Its first use opens it from the environment: `datacenterId` and `workerId`, and `SNOWDRIFT_STATE`
   * or a `file:` URL in `SNOWDRIFT_LEASE`. Before that, {@link SnowFlake.configure}, {@link SnowFlake.use} or
   * {@link SnowFlake.ready} may choose another one.
   *
   * Each worker thread and each copy of this package has its own. A closed one stays the default: static calls
   * throw `ERR_SNOWFLAKE_CLOSED` until you choose another one.
   *
   * @throws `ERR_SNOWFLAKE_CONFIG` `SNOWDRIFT_LEASE` names a server, and `await SnowFlake.ready()` has not
   *   settled yet; else as the constructor
   */
  static readonly default: SnowFlake | CachedSnowFlake;

  /**
   * Opens the default instance with options, before its first use.
   *
   * @throws `ERR_SNOWFLAKE_CONFLICT` it is already open, or {@link SnowFlake.ready} is opening it; else as the
   *   constructor
   */
  static configure(options: SnowFlakeOptions): SnowFlake;

  /**
   * Makes an open instance the default one of this thread, before the first static call.
   *
   * ```js
   * SnowFlake.use(await SnowFlake.lease(postgres(pool), { datacenterId: 1 }))
   * SnowFlake.nextId()
   * ```
   *
   * Close it yourself. Passing the same instance again does nothing. `const { nextId } = SnowFlake` follows the
   * default instance, even if it was taken before.
   *
   * @returns the instance
   * @throws `ERR_SNOWFLAKE_ARGUMENT` it is not an instance of this thread and this copy of the package, or a mock or a
   *   field of a subclass has replaced one of its methods
   * @throws `ERR_SNOWFLAKE_CLOSED` it is closed
   * @throws `ERR_SNOWFLAKE_CONFLICT` another default instance is open, or {@link SnowFlake.ready} is opening it
   */
  static use<Flake extends SnowFlake | CachedSnowFlake>(this: void, flake: Flake): Flake;

  /**
   * Opens the default instance from the environment, unless it is open. If `SNOWDRIFT_LEASE` is the URL of a
   * server, it takes a lease there with the default options. `workerId`, if it is set, is a claim.
   *
   * ```js
   * // SNOWDRIFT_LEASE=postgres://db/app datacenterId=1 node server.js
   * await SnowFlake.ready()
   * SnowFlake.nextId()
   * ```
   *
   * Concurrent calls take one lease. After a failure you may call it again. For a lease with options, see
   * {@link SnowFlake.use}. `await SnowFlake.default.close()` releases the lease.
   *
   * @returns the default instance; rejects as {@link SnowFlake.lease} and the constructor do, and with
   *   `ERR_SNOWFLAKE_ARGUMENT` for an argument
   */
  static ready(this: void): Promise<SnowFlake | CachedSnowFlake>;

  /** `nextId()` of the default instance. Can be passed as a callback. */
  static nextId(this: void): bigint;
  /** `nextIdString()` of the default instance. Can be passed as a callback. */
  static nextIdString(this: void): string;
  /** `nextIdBase32()` of the default instance. Can be passed as a callback. */
  static nextIdBase32(this: void): string;
  /** `nextIdNumber()` of the default instance, which needs a layout of at most 53 bits. Can be passed as a callback. */
  static nextIdNumber(this: void): number;
  /** `nextIds()` of the default instance. */
  static nextIds(this: void, count: number): BigUint64Array;
  static nextIds<T extends BigUint64Array>(this: void, array: T): T;
  /** `nextIdStrings()` of the default instance. */
  static nextIdStrings(this: void, count: number): string[];
  /** `nextIdAsync()` of the default instance. Rejects as {@link SnowFlake.nextId} throws. */
  static nextIdAsync(this: void): Promise<bigint>;
  /** `floorId()` of the default instance, by its layout, open or closed. `floorId()` of `snowdrift/id` needs no instance. */
  static floorId(this: void, time: Date | number): bigint;

  /**
   * Decodes an ID without opening the default instance. In `map()`, write `ids.map((id) => SnowFlake.parse(id))`: the second
   * argument is a layout, and `map()` passes an index.
   *
   * @param layout Default: that of the default instance, open or closed, else `'node'`
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  static parse(this: void, id: bigint | string, layout?: LayoutName | Layout): ParsedId;
  static parse(this: void, id: number, layout: 'safe' | Layout): ParsedId;
}

/**
 * Options of a {@link CachedSnowFlake}'s ring. `boostPower` and `paddingFactor` have the names and defaults of UidGenerator's
 * CachedUidGenerator. Others differ:
 *
 * | UidGenerator | here | difference |
 * |---|---|---|
 * | `scheduleInterval` | `scheduleIntervalMs` | seconds there, ms here |
 * | `rejectedPutBufferHandler` | `onRejectedPut` | called at the end of each filling there, by `scheduleIntervalMs` alone here |
 * | `rejectedTakeBufferHandler` | `onRejectedTake` | throws by default there, waits for `maxWait` here |
 * | `epochStr` | `epoch` of the layout | midnight in the machine's time zone there, Unix ms or a Date here |
 * | `timeBits`, `workerBits`, `seqBits` | `timestampBits`, `workerBits`, `sequenceBits` of the layout | |
 * | `workerIdAssigner` | `workerId`, or the store of `CachedSnowFlake.lease()`, such as `workerNode(pool)`, UidGenerator's own table | |
 */
export interface RingOptions {
  /**
   * The ring has room for the IDs of 2^boostPower ticks: 0 to 24, default 3. That is 32,768 IDs on the default
   * layout; at most 16,777,216 IDs (128 MiB).
   */
  boostPower?: number;
  /**
   * The ring is filled when no more than this is left in it, in percent: 0 to 100, default 50.
   */
  paddingFactor?: number;
  /**
   * The ring is also filled this often, in ms: 1 to 86,400,000; default 0, never. Expired IDs make room then, so that
   * an idle application finds fresh ones. UidGenerator's `scheduleInterval` is in seconds: multiply it by 1000.
   */
  scheduleIntervalMs?: number;
  /**
   * The age above which IDs are dropped instead of handed out, in ms: 0 to 31,536,000,000, rounded up to whole
   * ticks. Default 1000, or the 2^boostPower ticks of the ring if that is longer (8 s with ticks of 1 s). It also
   * limits the lag of ticks behind the clock, and so the number of IDs that a burst finds at once.
   */
  maxAge?: number;
  /**
   * The action when `scheduleIntervalMs` finds the ring full. `'discard'` (default) counts it in
   * `stats().ring.rejectedPuts`. A function is also called with the stats, in a callback of its own. No ID is
   * lost: none is generated before there is room for it.
   */
  onRejectedPut?: 'discard' | ((stats: CachedStats) => void);
  /**
   * The action when the ring is empty and the clock allows no more IDs. `'wait'` (default) blocks the thread for
   * at most `maxWait`, then throws. `'throw'` throws at once. A function gets that error and returns one ID to hand
   * out instead. For a batch, it is called for each ID. The ID is a bigint or a string, or a number if the layout has
   * at most 53 bits. snowdrift checks only its range: you keep it unique.
   */
  onRejectedTake?: 'wait' | 'throw' | ((refusal: SnowFlakeError) => bigint | string | number);
}

export type CachedSnowFlakeOptions = Omit<SnowFlakeOptions, 'clock'> & RingOptions;

export interface CachedStats extends Stats {
  /** Figures of the node's ring, all instances and threads together. `issued` counts the IDs taken from it. */
  ring: {
    /** IDs that it has room for. */
    size: number;
    /** IDs that it holds. */
    left: number;
    /** IDs dropped because they were older than `maxAge`, or later than a clock that rolled back. */
    dropped: number;
    /** How often `scheduleIntervalMs` found it full. */
    rejectedPuts: number;
    /** How often a caller found it empty. */
    rejectedTakes: number;
  };
}

/**
 * UidGenerator's CachedUidGenerator: a native thread fills a ring of IDs ahead, and all instances and
 * worker_threads of the node take from it without a lock. For bursts: 32,768 IDs at once on the default
 * layout, where a {@link SnowFlake} waits for 8 ticks.
 *
 * It counts its ticks instead of reading the clock. So an ID's timestamp may be up to `maxAge` before the time
 * of its call, and up to `maxAhead` after it (default 0; more needs `state` or a lease). Use a SnowFlake if timestamps
 * must show the order of events in different threads or processes.
 *
 * A clock rollback goes unnoticed while the ticks lag behind the clock by more, as they do when few IDs are taken.
 * Otherwise `clockBack` decides, once the IDs in the ring are taken.
 *
 * The IDs in the ring were issued by the node's sequence: no other instance or process of the host gets
 * them, the `state` or lease covers them, and a restart causes no duplicates.
 */
export class CachedSnowFlake extends Generator {
  /**
   * Fills the ring as far as the clock allows.
   *
   * @throws as {@link SnowFlake}; also `ERR_SNOWFLAKE_CONFLICT` if this process has the node's ring open with
   *   another `boostPower`, `paddingFactor`, `scheduleIntervalMs`, `maxAge`, `clockBack`, `maxWait` or
   *   `sequenceStart`
   */
  constructor(options?: CachedSnowFlakeOptions);

  stats(): CachedStats;

  /** As {@link SnowFlake.lease}. */
  static lease(
    this: void,
    store?: string | URL | LeaseStore | AssigningStore | WorkerNodeStore,
    options?: Omit<LeaseOptions, 'clock'> & RingOptions,
  ): Promise<CachedSnowFlake>;

  /** As {@link SnowFlake.parse}; the default layout is `'node'`. */
  static parse(this: void, id: bigint | string, layout?: LayoutName | Layout): ParsedId;
  static parse(this: void, id: number, layout: 'safe' | Layout): ParsedId;
}

/** The `code` of a {@link SnowFlakeError}. */
export type SnowFlakeErrorCode =
  /** An option, a layout or the environment is missing or wrong. */
  | 'ERR_SNOWFLAKE_CONFIG'
  /** The node, or the default instance, is in use with other options. The message names theirs. */
  | 'ERR_SNOWFLAKE_CONFLICT'
  /** An argument of a method is wrong. */
  | 'ERR_SNOWFLAKE_ARGUMENT'
  /** Not an ID, or not one of this layout. */
  | 'ERR_SNOWFLAKE_INVALID_ID'
  /** The sequence is exhausted. With `retryAfterMs`, except in the layout's last tick. */
  | 'ERR_SNOWFLAKE_EXHAUSTED'
  /** The clock rolled back. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_CLOCK_BACK'
  /** The clock is before the epoch. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_BEFORE_EPOCH'
  /** The layout's timestamp has overflowed: no more IDs. */
  | 'ERR_SNOWFLAKE_TIME_ENDED'
  /** The option `clock` threw, or returned no time. */
  | 'ERR_SNOWFLAKE_CLOCK'
  /** The instance is closed; or the default instance is, and you chose no other one. */
  | 'ERR_SNOWFLAKE_CLOSED'
  /** The slot or page is in use and cannot be shared. With `holders`, as far as they are known. */
  | 'ERR_SNOWFLAKE_IN_USE'
  /** The store did not renew the lease before its ceiling; or the slot was lost. It recovers by itself. */
  | 'ERR_SNOWFLAKE_LEASE_EXPIRED'
  /** This machine's clock and the store's differ too much. It recovers when they agree. */
  | 'ERR_SNOWFLAKE_CLOCK_SKEW'
  /** All slots of the datacenter are held. With `holders`. */
  | 'ERR_SNOWFLAKE_NO_SLOT'
  /**
   * A server cannot be reached, refuses the login, does not answer within `callTimeout`, or fails a call. Or a
   * namespace is of another layout. Or a slot's file, a page or its directory cannot be used. The message
   * names the server's host and port, or the file. `cause` is a copy of the client's error.
   */
  | 'ERR_SNOWFLAKE_STORE'
  /** The clock is outside the window: the time for which the node may issue IDs. With `retryAfterMs`. */
  | 'ERR_SNOWFLAKE_WINDOW'
  /** The addon for this platform is missing or does not load. */
  | 'ERR_SNOWFLAKE_ADDON';

/** Each error of snowdrift. Its `message` names the failure, the value and the remedy. */
export class SnowFlakeError extends Error {
  private constructor();
  readonly name: 'SnowFlakeError';
  /** The kind of failure. Compare this in code: later versions keep it, but may change the message. */
  readonly code: SnowFlakeErrorCode;
  /** When the same call can succeed, in whole ms from now. Left out if nobody knows, or if waiting does not help. */
  readonly retryAfterMs?: number;
  /** The holders of the slot, or of all slots, as far as they are known. */
  readonly holders?: SlotHolder[];
  /**
   * The error of your own code. If it shows a password that snowdrift knows, or one in a URL: a copy without it. Of a
   * store's client: a copy of name, `message`, `code` and `stack`, without passwords. Other properties may have some.
   */
  readonly cause?: unknown;
}
