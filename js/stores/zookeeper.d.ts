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
  /** A port of this process, to show to operators. */
  port?: number;
  /** The user of digest authentication, without ':'. */
  user?: string;
  /** The user's password, of at most 16,384 characters. */
  password?: string;
  /**
   * For a `secureClientPort`: `{}` is TLS with the CAs of Node. The server's certificate must name the host. A function
   * is called for each call of the store, so that it can return renewed certificates.
   */
  tls?: ZooKeeperTlsOptions | (() => ZooKeeperTlsOptions | Promise<ZooKeeperTlsOptions>);
}

/**
 * A store in ZooKeeper. It needs the package `snowdrift-zookeeper`.
 *
 * The node `/snowdrift/NAMESPACE` holds the namespace's record. To delete a namespace, delete it with all nodes
 * below it. The node `/snowdrift/NAMESPACE/DATACENTER/WORKER` of a worker ID holds its ceiling and its last
 * holder (host, port, pid, start), and has an ephemeral child `holder` while it is held. A dead holder's slot is
 * free when its session expires: after `ttl`, as far as the ensemble's tickTime allows.
 *
 * With user and password (digest authentication), the nodes that snowdrift creates are that user's only. The ACL of
 * nodes that exist stays: `docs/store-security.md` says how to change it. There is no SASL.
 *
 * As a URL of a lease: `zookeeper://user:password@zk1:2181,zk2:2181/a/path?namespace=orders`. `zookeepers:` is TLS, with
 * the options `ca`, `cert` and `key`: paths of PEM files, read again for each call. Its default port is 2281.
 *
 * @param ensemble `zk1:2181,zk2:2181`, with `/a/path` at the end to keep all nodes below that path, which must exist
 */
export function zookeeper(ensemble: string, options?: ZooKeeperOptions): LeaseStore;
