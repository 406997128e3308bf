import type { LeaseStore, StoreOptions } from './store';

/**
 * Slots in etcd, by the JSON gateway of its v3 API. There is no client to install.
 *
 * etcd's own leases decide when a dead holder's slot is free: in whole seconds, and not less than its
 * election timeout allows. etcd shows its clock in whole seconds, too: clocks are compared to half a
 * second, so choose `maxClockSkew` at least 1 s.
 *
 * @param url `http://host:2379` or `https://...`
 */
export function etcd(url: string | URL, options?: StoreOptions): LeaseStore;
