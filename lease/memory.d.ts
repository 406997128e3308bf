import type { LeaseStore } from './store';

/**
 * Slots in the memory of this process: for an application's own tests.
 *
 * @param options.now the store's clock, Unix ms; default `Date.now`
 */
export function memory(options?: { name?: string; now?: () => number }): LeaseStore;
