import type { LeaseStore, StoreOptions } from './store';

/**
 * A store in the memory of this process, for tests.
 *
 * @param options.now the store's clock, in Unix ms. Default `Date.now` as it was when snowdrift was loaded
 * @param options.stored the records. Stores with the same Map act as one
 */
export function memory(
  options?: StoreOptions & { now?: () => number; stored?: Map<string, string> },
): LeaseStore;
