import type { LeaseStore, StoreOptions } from './store';

export interface KubernetesOptions extends StoreOptions {
  /** The API server, `https://host:6443`. Default: that of the pod's cluster. */
  server?: string | URL;
  /**
   * A token of a service account, or a function that returns it, called for each request. Default in a pod: the file of
   * its service account, which Kubernetes renews.
   */
  token?: string | (() => string | Promise<string>);
  /**
   * The CA to trust, in PEM, in place of Node's. Default in a pod: that of its service account. A function is called for each
   * request.
   */
  ca?: string | Uint8Array | (() => string | Uint8Array | Promise<string | Uint8Array>);
  /** The namespace of Kubernetes that has the Leases. It must exist. Default: that of the pod. */
  kubernetesNamespace?: string;
}

/**
 * A store in the API server of Kubernetes, 1.20 or later, without a client. In a pod it needs no option: it takes address, CA, token and
 * namespace of the pod's service account, which needs a Role with `get`, `create` and `patch` on `leases` of
 * `coordination.k8s.io`.
 *
 * A record is a Lease, `snowdrift.NAMESPACE.KEY`, with annotations of up to 16 KiB. `kubectl get leases -l
 * app.kubernetes.io/managed-by=snowdrift` shows all. To delete a namespace, delete its Leases.
 *
 * Holds expire by the clock of the API server that replies. The replies have that clock in whole seconds. snowdrift
 * compares clocks to half a second, so choose `maxClockSkew` of at least 1 s.
 *
 * As a URL of a lease: `kubernetes:///` in a pod, with the Leases in the pod's namespace; `kubernetes:///ids` in the namespace
 * `ids`. Elsewhere `kubernetes://host:6443/ids?tokenFile=/run/token&ca=/run/ca.pem`: files, read again for each request.
 */
export function kubernetes(options?: KubernetesOptions): LeaseStore;
