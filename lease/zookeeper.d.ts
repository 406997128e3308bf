import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in ZooKeeper, by the optional second addon: `npm install snowdrift-zookeeper`.
 *
 * The node `/snowdrift/NAMESPACE` holds the namespace's record; delete a namespace with all nodes below it.
 * Operators see `/snowdrift/NAMESPACE/DATACENTER/WORKER` for each worker ID, which holds its ceiling
 * and who had it last (host, port, pid, start), with an ephemeral child `holder` while it is held. A dead
 * holder's slot is free when its session has expired: after `ttl`, as far as the ensemble's tickTime
 * allows.
 *
 * @param options.port where this process serves, for operators to see
 * @param ensemble `zk1:2181,zk2:2181`, with `/a/path` at the end if all is to be below that
 */
export function zookeeper(ensemble: string, options?: StoreOptions & { port?: number }): LeaseStore;
