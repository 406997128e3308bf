/**
 * Worker IDs from the environment of StatefulSets, Docker Swarm and pm2. Each function throws
 * `ERR_SNOWFLAKE_CONFIG` if its source is missing or not a whole number.
 *
 * ```js
 * new SnowFlake({ datacenterId: 1, workerId: fromStatefulSet() })
 * ```
 */

export interface PodOptions {
  /**
   * The number of worker IDs of a pod or task, the same for all of them. Default 1: the processes of a
   * host share one sequence.
   */
  workersPerPod?: number;
  /**
   * The one that this process uses: 0 (default) to workersPerPod - 1. The worker ID is
   * `ordinal * workersPerPod + slot`. For the `firstWorkerId` of `forkWorkers`, leave it at 0.
   */
  slot?: number;
}

/**
 * The ordinal of a Kubernetes StatefulSet's pod: the end of the host name ('web-3'), or an environment variable
 * with the pod-index label.
 *
 * @param options.podIndex the name of that variable. Default: none, it reads the host name
 * @param options.hostname Default: this host's name
 */
export function fromStatefulSet(
  options?: PodOptions & { podIndex?: string; hostname?: string },
): number;

/**
 * The task slot of a Docker Swarm service, minus 1. Create the service with
 * `docker service create --env TASK_SLOT={{.Task.Slot}}`.
 *
 * @param options.variable the name of that environment variable. Default `'TASK_SLOT'`
 */
export function fromSwarmTask(options?: PodOptions & { variable?: string }): number;

/**
 * The NODE_APP_INSTANCE of pm2. During a reload, the old and the new process have the same number for about a
 * second. They share one sequence. With `scope: 'process'` they issue duplicates: lease a worker ID from a
 * directory there.
 *
 * All instances of a host can have one `workerId`. Use this function only above 4,096 IDs a ms on one host, or if
 * IDs must show their instance.
 */
export function fromPm2(options: { iKnowThatReloadsOverlap: true }): number;
