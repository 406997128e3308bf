'use strict';
// The times of leases from stores, apart from the options. A release ends in time since its limits grow
// outwards: freeing the slot and closing the store, then all leases on a signal.

module.exports = {
  /** The pause between checks for a passed floor, and after a failure of this code. */
  POLL_MS: 100,
  /** A wait for a floor that is worth a warning. */
  LONG_WAIT_MS: 1000,
  /** The longest wait for the names of other namespaces. */
  NAMES_MS: 1000,

  /** Time limit of closing the store. The driver has 2,000 ms to free the slot before that. */
  CLOSE_MS: 1000,
  /** Time limit of all releases on a signal. */
  SIGNAL_MS: 4000,
};
