/**
 * Worker IDs from where a process runs. Each is asked for by name, and throws
 * `ERR_SNOWFLAKE_CONFIG` if it does not find what it needs: nothing is guessed.
 *
 * ```js
 * new SnowFlake({ datacenterId: 1, workerId: fromStatefulSet() })
 * ```
 */

export interface WithinPod {
  /**
   * How many worker IDs a pod, or task, has. Default 1: on Linux its processes share one sequence. The same
   * in all of them.
   */
  workersPerPod?: number;
  /**
   * Which of them this process uses: 0 (default) to workersPerPod - 1. The worker ID is
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
 * pm2's NODE_APP_INSTANCE. A reload runs the old and the new process with one number for about a second.
 * On Linux they share one sequence, as all instances do with one workerId: so this is worth it only above
 * 4,096 IDs a ms on one host, or to tell instances apart. With `scope: 'process'` (the default on macOS and
 * Windows) they issue duplicates: lease a worker ID from a directory there. Hence the flag.
 */
export function fromPm2(options: { iKnowThatReloadsOverlap: true }): number;
