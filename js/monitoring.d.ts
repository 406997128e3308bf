/**
 * Health and metrics of an application's instance, for probes, Prometheus and its clients. For OpenTelemetry there is
 * `snowdrift/opentelemetry`, for NestJS the `SnowFlakeHealthIndicator` of `snowdrift/nestjs`.
 *
 * ```js
 * import { health, prometheus } from 'snowdrift/monitoring'
 * health().status  // 'up'
 * prometheus()     // Prometheus's text
 * ```
 */

import type { CachedSnowFlake, LeaseInfo, SnowFlake } from '../index';

/** Whether an instance can issue IDs. It has no secret, and names no host. */
export interface Health {
  /** `'up'` if IDs are available, as far as that is known without generating one. */
  status: 'up' | 'down';
  /**
   * Why it is down: there is no default instance, or it is closed; or the lease has passed its ceiling, lost its slot, or
   * waits for the slot's floor. {@link LeaseInfo.failure} and the logs have the details.
   */
  reason?: string;
  /** Left out without an instance. */
  datacenterId?: number;
  /** Left out without an instance. */
  workerId?: number;
  /** Left out without `state` or a lease. */
  lease?: {
    /** `'failing'` is up: renewals fail, and IDs continue up to the ceiling. */
    state: LeaseInfo['state'];
    /** How long IDs continue without another renewal, in ms; 0 if they have stopped. */
    remainingMs: number;
  };
}

/**
 * For readiness probes. A liveness probe must not use it: a restart does not bring a store back.
 *
 * @param flake Default: the default instance, which its first use opens. If it cannot be opened, or
 *   {@link SnowFlake.ready} has not settled, the status is `'down'`
 * @throws `ERR_SNOWFLAKE_ARGUMENT` not an instance
 */
export function health(flake?: SnowFlake | CachedSnowFlake): Health;

/** A metric by its name in Prometheus. */
export interface Metric {
  /** Such as `snowdrift_ids_issued_total`. */
  name: string;
  type: 'counter' | 'gauge';
  help: string;
  /** The node of the value. Left out without one. */
  labels?: { datacenter: string; worker: string };
  /** Left out if the instance has none: those of leases and rings; and all if there is no default instance yet. */
  value?: number;
}

/**
 * All metrics with their values of this moment: for prom-client and others. The list is always the same.
 *
 * @param flake Default: the default instance. It is not opened
 * @throws `ERR_SNOWFLAKE_ARGUMENT` not an instance
 */
export function metrics(flake?: SnowFlake | CachedSnowFlake): Metric[];

/**
 * The same in Prometheus's text format, as `/metrics` of `npx snowdrift serve`.
 *
 * @param flake Default: the default instance. It is not opened; without one, the text is empty
 * @throws `ERR_SNOWFLAKE_ARGUMENT` not an instance
 */
export function prometheus(flake?: SnowFlake | CachedSnowFlake): string;
