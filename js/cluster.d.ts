/**
 * Forks the workers of a `node:cluster` primary, each with its own `workerId` or with a lease.
 *
 * Workers with one `workerId` share a sequence without this module (see `scope` in `snowdrift`). Use
 * one worker ID per worker if one host needs more than 4,096 IDs a ms (default layout), or if IDs must show their
 * worker.
 *
 * ```js
 * const cluster = require('node:cluster')
 * const { forkWorkers } = require('snowdrift/cluster')
 * const { SnowFlake } = require('snowdrift')
 *
 * if (cluster.isPrimary) {
 *   forkWorkers({ count: 4, datacenterId: 1 })
 * } else {
 *   console.log(SnowFlake.nextIdString()); // 900710334548410368
 * }
 * ```
 */

/// <reference types="node" />

import type { Worker } from 'node:cluster';
import type { EventEmitter } from 'node:events';
import type { Layout, LayoutName } from '../index';

/**
 * Options of {@link forkWorkers}. Passing `lease`, `state`, `firstWorkerId` or `layout` as undefined, null or empty is
 * `ERR_SNOWFLAKE_CONFIG`.
 */
export interface ForkWorkersOptions {
  /**
   * The number of workers: 1 to 2^workerBits - firstWorkerId. Default: one per core, at most one per worker
   * ID. Their worker IDs start at `firstWorkerId`. With `lease`, 1 to 1000.
   */
  count?: number;
  /** The same for all workers: 0 to 2^datacenterBits - 1. */
  datacenterId: number;
  /** The first worker's ID. Default 0. Set it for a second group of workers of one primary. */
  firstWorkerId?: number;
  /** The workers' layout, which limits `count`. Default `'node'`. */
  layout?: LayoutName | Layout;
  /**
   * The directory that records each worker's slot: their `SNOWDRIFT_STATE`. All processes that use these
   * worker IDs need the same one.
   */
  state?: string | URL;
  /**
   * The URL of a store: their `SNOWDRIFT_LEASE`. They get `datacenterId` and no `workerId`, and take the lease
   * by `await SnowFlake.ready()`, or by the module of `snowdrift/nestjs`. A `file:` URL needs no `ready()`. The
   * URL is in their environment, not in their arguments. Cannot be combined with `state`.
   *
   * The workers of a host share one slot (see `SnowFlake.lease`). Workers of a restarted primary join it. With
   * `firstWorkerId` and a server, each worker claims its own worker ID instead.
   */
  lease?: string | URL;
  /** Variables to add to each worker's environment. For other settings, call `cluster.setupPrimary()`. */
  env?: Record<string, string>;
  /**
   * Signals that stop the workers. The primary forwards each to them. When all have ended, it ends by that
   * signal, too, unless the application listens to it. Default `['SIGINT', 'SIGTERM', 'SIGHUP']`. A Ctrl-C on
   * a terminal reaches the workers directly and is not forwarded.
   */
  signals?: ('SIGINT' | 'SIGTERM' | 'SIGHUP')[];
  /** How long workers may take to stop before they are killed, in ms: 0 to 3,600,000, default 10,000. */
  stopTimeout?: number;
  /**
   * A worker that dies after this time is restarted at once, in ms: 0 to 3,600,000, default 10,000. One that
   * dies sooner is restarted with growing delays.
   */
  stableAfter?: number;
  /**
   * The delay before the second restart of a worker that keeps dying, in ms: 1 to 3,600,000, default 100. The
   * first restart is at once; each later delay is twice the one before.
   */
  firstDelay?: number;
  /** The longest such delay, in ms: 1 to 3,600,000, default 30,000. */
  longestDelay?: number;
}

/** The death of a worker that will be restarted. */
export interface Death {
  /** Its index, 0 to count - 1, which the worker that replaces it keeps. */
  index: number;
  /** Left out with `lease`. */
  workerId?: number;
  pid: number;
  /** Its exit code, or null. */
  code: number | null;
  /** The signal that ended it, or null. */
  signal: NodeJS.Signals | null;
  /** Why it could not start, if it could not. */
  failure?: Error;
  restartInMs: number;
}

export interface Workers extends EventEmitter {
  /** The running workers by workerId; with `lease` by index, 0 to count - 1. */
  readonly workers: ReadonlyMap<number, Worker>;

  /** Settles when all workers have ended and none will be restarted. */
  readonly ended: Promise<void>;

  /**
   * Sends all workers a signal, default SIGTERM, and restarts none. Kills those that still run after
   * `stopTimeout`.
   *
   * @returns settles when all have ended
   */
  stop(signal?: NodeJS.Signals): Promise<void>;

  /** A worker was forked or restarted. With `lease`, the number is its index. */
  on(event: 'fork', listener: (worker: Worker, workerId: number) => void): this;
  /** A worker died and will be restarted. Without a listener, it is the warning `SNOWFLAKE_WORKER_DIED`. */
  on(event: 'died', listener: (death: Death) => void): this;
  /**
   * A worker ended and will not be restarted: its exit code was 0, or it was disconnected or stopped on
   * purpose. With `lease`, the number is its index.
   */
  on(event: 'exit', listener: (worker: Worker, workerId: number) => void): this;
}

/**
 * Forks workers. If one dies, it is restarted under its own `workerId`. Two primaries of one user on one host
 * may use the same worker IDs: their workers share the sequences. (Not if the host has no place for pages: see
 * `scope` in `snowdrift`.)
 *
 * @throws `ERR_SNOWFLAKE_CONFIG` an option is missing or wrong, or this is not the primary
 * @throws `ERR_SNOWFLAKE_CONFLICT` this primary already has a worker with one of these worker IDs
 */
export function forkWorkers(options: ForkWorkersOptions): Workers;
