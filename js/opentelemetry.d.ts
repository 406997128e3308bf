/**
 * Metrics of an application's instance for OpenTelemetry. It needs the package `@opentelemetry/api`, and an SDK that exports
 * them.
 *
 * ```js
 * import { instrument } from 'snowdrift/opentelemetry'
 * instrument()
 * ```
 */

import type { CachedSnowFlake, SnowFlake } from '../index';

/** Options of {@link instrument}. Passing `flake` as undefined, null or empty is `ERR_SNOWFLAKE_CONFIG`. */
export interface InstrumentOptions {
  /** The instance. Default: at each export the default one of this thread, if there is one. It is not opened. */
  flake?: SnowFlake | CachedSnowFlake;
  /** Default: the global MeterProvider of `@opentelemetry/api`. The SDK sets it, so start that first. */
  // biome-ignore lint/suspicious/noExplicitAny: without the dependency
  meterProvider?: { getMeter(name: string, version?: string): any };
}

/**
 * Registers observable counters and gauges, whose values are read at each export. Names and units are by OpenTelemetry's
 * semantic conventions, times in seconds. Attributes: `snowdrift.datacenter.id`, `snowdrift.worker.id`.
 *
 * | instrument | unit | |
 * |---|---|---|
 * | `snowdrift.ids.issued` | `{id}` | counter: IDs issued |
 * | `snowdrift.waits` | `{wait}` | counter: waits for the clock or the store |
 * | `snowdrift.wait.time` | `s` | counter: time spent in these waits |
 * | `snowdrift.clock.rollbacks` | `{rollback}` | counter |
 * | `snowdrift.overflow` | `s` | gauge: Unix time at which the timestamp overflows |
 * | `snowdrift.lease.held` | `{lease}` | gauge: 1 while the slot is held and renewed in time |
 * | `snowdrift.lease.remaining` | `s` | gauge: time until IDs stop unless the slot is renewed; 0 if they have stopped |
 * | `snowdrift.lease.ceiling` | `s` | gauge: Unix time of the last ID that may be issued |
 * | `snowdrift.lease.renewals` | `{renewal}` | counter |
 * | `snowdrift.ring.limit` | `{id}` | gauge: IDs that the ring has room for |
 * | `snowdrift.ring.usage` | `{id}` | gauge: IDs that the ring holds |
 * | `snowdrift.ring.dropped` | `{id}` | counter: IDs of the ring that were dropped |
 * | `snowdrift.ring.rejected_takes` | `{call}` | counter: calls that found the ring empty |
 *
 * Counters count all instances and threads of the node in this process, so call this in one thread, once. After `close()`
 * the values are those of the close.
 *
 * @returns stops it
 * @throws `ERR_SNOWFLAKE_CONFIG` the package `@opentelemetry/api` is missing, or an option is unknown or wrong
 * @throws `ERR_SNOWFLAKE_ARGUMENT` `flake` is not an instance
 */
export function instrument(options?: InstrumentOptions): () => void;
