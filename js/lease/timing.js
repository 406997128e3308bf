'use strict';
// The times of leases from stores, apart from the options. A release ends in time since its limits grow
// outwards: freeing the slot and closing the store, then all leases on a signal.

module.exports = {
  /** The pause between checks for a passed floor, and after a failure of this code. */
  POLL_MS: 100,
  /** The longest wait for another process of the host that acquires a slot, in calls to the store. */
  MAX_WAIT_CALLS: 4,
  /** A wait for a floor that is worth a warning. */
  LONG_WAIT_MS: 1000,
  /** The longest wait for the description of a server's run. */
  DESCRIBE_MS: 1000,

  /** Time limits of releasing a slot and of closing the store. */
  RELEASE_MS: 2000,
  CLOSE_MS: 1000,
  /** Time limit of all releases on a signal. */
  SIGNAL_MS: 4000,
};
