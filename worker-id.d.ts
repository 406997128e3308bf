/**
 * Worker IDs from where a process runs. Each is asked for by name, and throws
 * `ERR_SNOWFLAKE_CONFIG` if it does not find what it needs: nothing is guessed.
 *
 * ```js
 * new SnowFlake({ datacenterId: 1, workerId: fromStatefulSet() })
 * ```
 */

export interface WithinPod {
  /** How many processes of a pod, or task, draw IDs. Default 1. The same in all of them. */
  workersPerPod?: number;
  /**
   * Which of them this is: 0 (default) to workersPerPod - 1. The worker ID is
   * `ordinal * workersPerPod + slot`. With `forkWorkers`, `firstWorkerId` is that of slot 0.
   */
  slot?: number;
}

/**
 * A Kubernetes StatefulSet's ordinal: at the end of the host name ('web-3'), or in an environment
 * variable that holds the pod-index label.
 *
 * @param options.podIndex the name of that variable. Default: the host name is read
 * @param options.hostname default: this host's
 */
export function fromStatefulSet(
  options?: WithinPod & { podIndex?: string; hostname?: string },
): number;

/**
 * A Docker Swarm service's task slot, less 1: `docker service create --env TASK_SLOT={{.Task.Slot}}`.
 *
 * @param options.variable the name of that environment variable. Default `'TASK_SLOT'`
 */
export function fromSwarmTask(options?: WithinPod & { variable?: string }): number;

/**
 * pm2's NODE_APP_INSTANCE, which is refused unless it is known what that means: a reload runs the old
 * and the new process with one number for about a second, so both draw the same IDs. Use it together
 * with `state` and `waitForSlot`, or lease a worker ID instead.
 */
export function fromPm2(options: { iKnowThatReloadsOverlap: true }): number;
