'use strict';
// The times of leases from stores, apart from the options. A release ends in time since its limits grow
// outwards: freeing the slot and closing the store, the thread, all leases on a signal.

module.exports = {
  /** When the process that renewed last renews again, in ttls. */
  RENEW_AFTER: 1 / 3,
  /** How much later the other processes of the host renew, at least and at most, in ttls. */
  TAKEOVER_DELAY: [1 / 12, 1 / 6],

  /** The shortest and the longest pause between checks of the shared page; in between, 1/12 ttl. */
  CHECK_MS: [50, 1000],
  /** The shortest and the longest pause after a try that failed; in between, 1/10 ttl. */
  RETRY_MS: [100, 1000],
  /** What each call of a try adds to that pause. */
  CALL_MS: 25,
  /** The pause between checks for a free slot or a passed floor. */
  POLL_MS: 100,
  /** The pause between tries to join the slot that another process of the host acquires. */
  JOIN_MS: 20,
  /** The longest wait for that process, in calls to the store. */
  MAX_WAIT_CALLS: 4,
  /** A wait for a floor that is worth a warning. */
  LONG_WAIT_MS: 1000,
  /** The longest wait for the description of a server's run. */
  DESCRIBE_MS: 1000,
  /** The pause before a thread that died is replaced. */
  RESTART_MS: 1000,

  /** Time limits of releasing a slot and of closing the store. */
  RELEASE_MS: 2000,
  CLOSE_MS: 1000,
  /** Time limit for a thread to do both and end. */
  THREAD_MS: 3500,
  /** Time limits of all releases: on a signal, and by threads in process.exit(). */
  SIGNAL_MS: 4000,
  EXIT_MS: 1000,
};
