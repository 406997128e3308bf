import type { LeaseStore } from './store';

/**
 * A store in the memory of this process, for tests.
 *
 * @param options.name the `name` of the store
 * @param options.now the store's clock, in Unix ms. Default `Date.now`
 */
export function memory(options?: { name?: string; now?: () => number }): LeaseStore;
