import type { LeaseStore, StoreOptions } from './store';

/** Certificates and a key, each in PEM. */
export interface ZooKeeperTlsOptions {
  /** The CAs to trust in place of Node's and those of `NODE_EXTRA_CA_CERTS`. */
  ca?: string | Uint8Array;
  /** The client's certificate, with those between it and its CA. */
  cert?: string | Uint8Array;
  /** Its key, without a passphrase. */
  key?: string | Uint8Array;
}

export interface ZooKeeperOptions extends StoreOptions {
  /** A port of this process, shown with it under `/snowdrift/NAMESPACE/holders`. */
  port?: number;
  /** The user of digest authentication, without ':'. */
  user?: string;
  /** The user's password, of at most 16,384 characters. */
  password?: string;
  /**
   * For a `secureClientPort`: `{}` is TLS with the CAs of Node. The server's certificate must name the host. A function
   * is called for each new session, so that it can return renewed certificates: after a connection is lost, the next call of the
   * store opens one.
   */
  tls?: ZooKeeperTlsOptions | (() => ZooKeeperTlsOptions | Promise<ZooKeeperTlsOptions>);
}

/**
 * A store in ZooKeeper. It needs the package `snowdrift-zookeeper`.
 *
 * The nodes below `/snowdrift/NAMESPACE/records` hold the records of a namespace. To delete a namespace, delete
 * `/snowdrift/NAMESPACE` with all nodes below it. Holds expire by the ensemble's clock.
 *
 * For people, `/snowdrift/NAMESPACE/holders` has a node `DATACENTER-WORKER` for each slot that is held: JSON with the `host`, `pid`,
 * `port`, `address` and start of a process. It is ephemeral, and ends with the session: some 10 s after the process. No lease depends
 * on it, and after a lost session or a restart it may be missing or old until the next renewal.
 *
 * With user and password (digest authentication), the nodes that snowdrift creates are that user's only. The ACL of
 * nodes that exist stays: `docs/store-security.md` says how to change it. There is no SASL. Those who read `holders` need the same login.
 *
 * As a URL of a lease: `zookeeper://user:password@zk1:2181,zk2:2181/a/path?namespace=orders`. `zookeepers:` is TLS, with
 * the options `ca`, `cert` and `key`: paths of PEM files, read again for each new session. Its default port is 2281. On Windows on ARM there
 * is no TLS.
 *
 * @param ensemble `zk1:2181,zk2:2181`, with `/a/path` at the end to keep all nodes below that path, which must exist
 */
export function zookeeper(ensemble: string, options?: ZooKeeperOptions): LeaseStore;
