//! Requests for a higher ceiling, from callers to the renewing thread, and their results. Threads take the lock only
//! when a window begins or ends, when its ceiling rises, or when the ceiling stalls a caller. Issuing an ID takes no
//! lock.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The retry time while a ceiling is being raised: about one disk write.
const CONFIRMATION: Duration = Duration::from_millis(5);

/// The state of a window's renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RenewalState {
    /// No thread raises the ceiling while a caller blocks.
    Unattended,
    /// A thread raises the ceiling from time to time.
    Attended,
    /// A caller requested a higher ceiling.
    Requested,
    /// The last renewal failed. The next try is at this time.
    Failed(Instant),
}

/// The renewals of a generator's windows, shared by the renewing thread and the callers that wait for it.
pub struct Renewals {
    state: Mutex<RenewalState>,
    /// Wakes the renewing thread: a caller requested a higher ceiling.
    requested: Condvar,
    /// Wakes the waiting callers: the renewal succeeded or failed.
    finished: Condvar,
}

impl Renewals {
    pub(super) fn new() -> Self {
        let state = Mutex::new(RenewalState::Unattended);
        Renewals { state, requested: Condvar::new(), finished: Condvar::new() }
    }

    /// Sets whether a thread raises the ceiling from now on, so that callers may block until it does. They must not
    /// block for a timer of their own event loop, which could not run.
    pub fn set_attended(&self, is_attended: bool) {
        let mut state = self.state.lock();
        match (is_attended, *state) {
            (true, RenewalState::Unattended) => *state = RenewalState::Attended,
            (true, _) => {}
            (false, _) => self.finish(&mut state, RenewalState::Unattended),
        }
    }

    /// Wakes the waiting callers: this or another process may have raised the ceiling.
    pub fn notify_raised(&self) {
        self.finish(&mut self.state.lock(), RenewalState::Attended);
    }

    /// Notes a failed renewal. The next try is after this time.
    pub fn note_failure(&self, retry_after: Duration) {
        self.finish(&mut self.state.lock(), RenewalState::Failed(Instant::now() + retry_after));
    }

    /// Sets the state, unless it is unattended, and wakes the waiting callers.
    fn finish(&self, state: &mut RenewalState, renewal: RenewalState) {
        if *state != RenewalState::Unattended {
            *state = renewal;
        }
        self.finished.notify_all();
    }

    /// Requests a higher ceiling. Returns the time until a retry; `None` if no thread raises the ceiling.
    pub(super) fn request(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        match *state {
            RenewalState::Unattended => None,
            RenewalState::Attended | RenewalState::Requested => {
                *state = RenewalState::Requested;
                self.requested.notify_all();
                Some(CONFIRMATION)
            }
            RenewalState::Failed(retry_at) => {
                let after = retry_at.saturating_duration_since(Instant::now());
                Some(after.max(CONFIRMATION))
            }
        }
    }

    /// Waits for the result of a request, for at most this long. Does not wait if the ceiling has risen already: by the
    /// state, or because `is_the_same` returns false. Returns the time waited.
    pub(super) fn await_result(
        &self,
        at_most: Duration,
        is_the_same: impl Fn() -> bool,
    ) -> Duration {
        let start = Instant::now();
        let mut state = self.state.lock();
        if is_the_same() && *state != RenewalState::Attended {
            self.finished.wait_for(&mut state, at_most);
        }
        start.elapsed()
    }

    /// Blocks the renewing thread until a caller requests a higher ceiling or [`Renewals::interrupt`] is called, for at
    /// most this long. Returns false after a timeout.
    pub fn await_request(&self, at_most: Duration) -> bool {
        let mut state = self.state.lock();
        if *state != RenewalState::Requested {
            self.requested.wait_for(&mut state, at_most);
        }
        *state == RenewalState::Requested
    }

    /// Ends the present or the next [`Renewals::await_request`].
    pub fn interrupt(&self) {
        *self.state.lock() = RenewalState::Requested;
        self.requested.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_result_that_has_come_needs_no_wait() {
        let renewals = Renewals::new();
        renewals.set_attended(true);
        assert_eq!(renewals.request(), Some(CONFIRMATION));
        assert!(renewals.await_result(LONG, || false) < LONG, "the ceiling has risen");
        renewals.notify_raised();
        assert!(renewals.await_result(LONG, || true) < LONG);
    }

    #[test]
    fn a_request_lasts_until_its_result() {
        let renewals = Renewals::new();
        renewals.set_attended(true);
        assert!(!renewals.await_request(Duration::ZERO));
        renewals.request();
        assert!(renewals.await_request(LONG));
        renewals.notify_raised();
        assert!(!renewals.await_request(Duration::ZERO));
        renewals.interrupt();
        assert!(renewals.await_request(LONG));
    }
}
