/**
 * Workers of a `node:cluster` primary, each with its own `workerId` in its environment.
 *
 * On Linux, workers of one workerId share one sequence without this (see `scope` in `snowdrift`). A workerId
 * per worker is worth it if one host needs more than 4,096 IDs a ms (default layout), or to tell workers
 * apart by their IDs.
 *
 * ```js
 * const cluster = require('node:cluster')
 * const { forkWorkers } = require('snowdrift/cluster')
 *
 * if (cluster.isPrimary) {
 *   forkWorkers({ count: 4, datacenterId: 1 })
 * } else {
 *   require('./server.js') // SnowFlake.nextId() just works
 * }
 * ```
 */

import type { Worker } from 'node:cluster';
import type { EventEmitter } from 'node:events';
import type { Layout, LayoutName } from './index';

export interface ForkWorkersOptions {
  /**
   * How many: 1 to 2^workerBits - firstWorkerId. Default: one a core, as far as there are worker IDs.
   * They get the workerIds from `firstWorkerId` on.
   */
  count?: number;
  /** The same for all. 0 to 2^datacenterBits - 1. */
  datacenterId: number;
  /** Default 0. For a second group of workers of one primary. */
  firstWorkerId?: number;
  /** The layout that the workers use: it says how many there may be. Default `'node'`. */
  layout?: LayoutName | Layout;
  /**
   * The directory in which each worker's slot is recorded: their `SNOWDRIFT_STATE`. All processes that use
   * these workerIds need the same one.
   */
  state?: string | URL;
  /** Added to the environment of each. What else they get, `cluster.setupPrimary()` says. */
  env?: Record<string, string>;
  /**
   * Signals to this process that stop the workers: each is passed on to them, and when all have ended
   * this process ends by it, too, unless the application listens to it itself. Default
   * `['SIGINT', 'SIGTERM', 'SIGHUP']`. A Ctrl-C on a terminal reaches the workers by itself and is
   * not passed on.
   */
  signals?: ('SIGINT' | 'SIGTERM' | 'SIGHUP')[];
  /** How long they may take to stop before they are killed, in ms: 0 to 3,600,000, default 10,000. */
  stopTimeout?: number;
  /**
   * A worker that lived this long was no crash at the start, in ms: 0 to 3,600,000, default 10,000.
   * It is restarted at once, however it died.
   */
  stableAfter?: number;
  /**
   * The pause before a worker that died sooner is restarted for the second time, in ms: 1 to
   * 3,600,000, default 100. It doubles with each death; the first restart is at once.
   */
  firstDelay?: number;
  /** The longest such pause, in ms: 1 to 3,600,000, default 30,000. */
  longestDelay?: number;
}

/** How a worker died that is restarted. */
export interface Death {
  workerId: number;
  pid: number;
  /** Its exit code, or null. */
  code: number | null;
  /** The signal that ended it, or null. */
  signal: NodeJS.Signals | null;
  /** Why it could not be started, if that is it. */
  failure?: Error;
  restartInMs: number;
}

export interface Workers extends EventEmitter {
  /** Those that run, by workerId. */
  readonly workers: ReadonlyMap<number, Worker>;

  /** When all have ended and none will be restarted. */
  readonly ended: Promise<void>;

  /**
   * Sends all of them a signal, default SIGTERM, and restarts none. Those that are not gone after
   * `stopTimeout` are killed.
   *
   * @returns when all have ended
   */
  stop(signal?: NodeJS.Signals): Promise<void>;

  /** A worker was forked, for the first time or again. */
  on(event: 'fork', listener: (worker: Worker, workerId: number) => void): this;
  /** A worker died and will be restarted. Without a listener, it is a warning of the process. */
  on(event: 'died', listener: (death: Death) => void): this;
  /**
   * A worker ended and will not be restarted: its exit code was 0, or it was told to disconnect or to
   * stop.
   */
  on(event: 'exit', listener: (worker: Worker, workerId: number) => void): this;
}

/**
 * Forks workers, and restarts each that dies, under its own workerId. Two primaries of one user on one host
 * may use the same workerIds: their workers share the sequences.
 *
 * @throws `ERR_SNOWFLAKE_CONFIG` an option is missing or wrong, or this is not the primary
 * @throws `ERR_SNOWFLAKE_CONFLICT` this primary has given one of these workerIds already
 */
export function forkWorkers(options: ForkWorkersOptions): Workers;
