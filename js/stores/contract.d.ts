import type { LeaseStore } from './store';

export interface ContractOptions {
  /** Time limit of each call, in ms. Default 60 000. */
  limit?: number;

  /** How many tests run side by side. Default 4. */
  concurrency?: number;

  /**
   * Replaces a stored record by something else, as another program would: with it the contract checks that the store
   * rejects the record, and names its key.
   */
  spoil?: (namespace: string, key: string) => unknown;

  /** Opens a store that accepts calls and never answers: with it the contract checks that signals end the calls. */
  openSilent?: () => LeaseStore | Promise<LeaseStore>;
}

/**
 * Tests a {@link LeaseStore} with `node:test`. Call it in a test file: `registerContract('my store', (namespace) =>
 * myStore(client, { namespace }))`.
 *
 * The tests write to new namespaces whose names begin with `contract-`, and leave their records behind.
 *
 * They check: compare-and-set by many writers; writes that are sent twice, or given up at any moment; keys and namespaces that are
 * apart; texts of 16 KiB; stale reads; the clock; `close()` with calls in flight; silence; records of another format. They cannot
 * check that what is written outlives a crash.
 *
 * @param name the name of the suite
 * @param open opens the store of a namespace, with connections of its own, as one more process would. The tests call its
 *   `close()`, if it has one
 */
export function registerContract(
  name: string,
  open: (namespace: string) => LeaseStore | Promise<LeaseStore>,
  options?: ContractOptions,
): void;
