import type { LeaseStore, StoreOptions } from './store';

/** Options of `node:tls`. */
export interface TlsOptions {
  /** The CAs to trust in place of Node's and those of `NODE_EXTRA_CA_CERTS`, in PEM. */
  ca?: string | Uint8Array;
  /** The client's certificate, in PEM. */
  cert?: string | Uint8Array;
  /** Its key, in PEM. */
  key?: string | Uint8Array;
  [option: string]: unknown;
}

export interface EtcdOptions extends StoreOptions {
  /** A user of etcd, if authentication is enabled there. Or in the first URL: `https://user:password@host:2379`. */
  user?: string;
  /** The user's password, of at most 16,384 characters. snowdrift exchanges it for a token, and renews the token when etcd refuses it. */
  password?: string;
  /** For https: URLs. A function is called for each request, so that it can return renewed certificates. */
  tls?: TlsOptions | (() => TlsOptions | Promise<TlsOptions>);
}

/**
 * A store in etcd, 3.4 or later, by the JSON gateway of its v3 API, without a client.
 *
 * A record is a key, `snowdrift/NAMESPACE/records/...`; `etcdctl get --prefix snowdrift/NAMESPACE/` shows all. To delete a
 * namespace, delete the keys with that prefix.
 *
 * Holds expire by the clock of the member that replies; etcd's own leases are not used. The replies have that clock in whole
 * seconds. snowdrift compares clocks to half a second, so choose `maxClockSkew` of at least 1 s.
 *
 * Of several endpoints, one is used until it fails. A request that cannot have had an effect goes to the next one:
 * at once, or after a second of silence. Otherwise the call fails, and the next call goes there. They must be members of one cluster.
 *
 * As a URL of a lease: `etcd://user:password@h1:2379,h2:2379?namespace=orders`. `etcds:` is TLS, with the options
 * `ca`, `cert` and `key`: paths of PEM files, read again for each request.
 * `docs/store-security.md` has the role that the user needs.
 *
 * The gateway takes no user from a client certificate: give user and password as well, and a certificate without a
 * common name.
 *
 * @param urls `http://host:2379` or `https://...`, or a list of them
 */
export function etcd(
  urls: string | URL | readonly (string | URL)[],
  options?: EtcdOptions,
): LeaseStore;
