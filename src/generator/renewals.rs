//! Requests for a higher ceiling, from callers to the thread that renews the lease, and its answers. Threads take the lock
//! only when a window begins, rises or ends, or when its ceiling stalls a caller. Issuing an ID takes no lock.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The time to retry after while a ceiling is being raised: about one disk write.
const CONFIRMATION: Duration = Duration::from_millis(5);

/// The renewal of the window's ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewal {
    /// No thread raises it while a caller waits.
    Unattended,
    /// A thread raises it from time to time.
    Attended,
    /// A caller wants it raised at once.
    Wanted,
    /// It could not be raised. The next try is at this time.
    Failed(Instant),
}

/// The renewals of a generator's windows, shared by the thread that raises the ceiling and the callers that wait for it.
pub struct Renewals {
    state: Mutex<Renewal>,
    /// Wakes the thread that renews: a caller wants a higher ceiling.
    wanted: Condvar,
    /// Wakes the callers that want an ID: the ceiling was raised, or could not be.
    answered: Condvar,
}

impl Renewals {
    pub(super) fn new() -> Self {
        let state = Mutex::new(Renewal::Unattended);
        Renewals { state, wanted: Condvar::new(), answered: Condvar::new() }
    }

    /// Whether a thread raises the ceiling from now on, so that callers may wait for it. They would block a timer of their own
    /// event loop.
    pub fn attend(&self, is_attended: bool) {
        let mut state = self.state.lock();
        match (is_attended, *state) {
            (true, Renewal::Unattended) => *state = Renewal::Attended,
            (true, _) => {}
            (false, _) => self.answer(&mut state, Renewal::Unattended),
        }
    }

    /// Wakes the waiting callers: the ceiling may have risen, by this process or by another one.
    pub fn note(&self) {
        self.answer(&mut self.state.lock(), Renewal::Attended);
    }

    /// Reports that the store did not confirm, and that the next try is after this time.
    pub fn note_failure(&self, retry_after: Duration) {
        self.answer(&mut self.state.lock(), Renewal::Failed(Instant::now() + retry_after));
    }

    /// Sets the state and wakes the waiting callers. Unattended renewals stay so.
    fn answer(&self, state: &mut Renewal, renewal: Renewal) {
        if *state != Renewal::Unattended {
            *state = renewal;
        }
        self.answered.notify_all();
    }

    /// Requests a higher ceiling. Returns the time after which to retry; `None` if no thread raises it.
    pub(super) fn want(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        match *state {
            Renewal::Unattended => None,
            Renewal::Attended | Renewal::Wanted => {
                *state = Renewal::Wanted;
                self.wanted.notify_all();
                Some(CONFIRMATION)
            }
            Renewal::Failed(retry_at) => {
                let after = retry_at.saturating_duration_since(Instant::now());
                Some(after.max(CONFIRMATION))
            }
        }
    }

    /// Waits for an answer, for at most this long. Does not wait if one has come already: the ceiling was raised, or
    /// `is_the_same` returns false. Returns the time waited.
    pub(super) fn await_answer(
        &self,
        at_most: Duration,
        is_the_same: impl Fn() -> bool,
    ) -> Duration {
        let start = Instant::now();
        let mut state = self.state.lock();
        if is_the_same() && *state != Renewal::Attended {
            self.answered.wait_for(&mut state, at_most);
        }
        start.elapsed()
    }

    /// Blocks the calling thread until a caller wants a higher ceiling, until [`Renewals::interrupt`], or for this long.
    /// Returns false after this long.
    pub fn await_demand(&self, at_most: Duration) -> bool {
        let mut state = self.state.lock();
        if *state != Renewal::Wanted {
            self.wanted.wait_for(&mut state, at_most);
        }
        *state == Renewal::Wanted
    }

    /// Ends a [`Renewals::await_demand`], the present or the next one.
    pub fn interrupt(&self) {
        *self.state.lock() = Renewal::Wanted;
        self.wanted.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_that_has_come_is_not_waited_for() {
        let renewals = Renewals::new();
        renewals.attend(true);
        assert_eq!(renewals.want(), Some(CONFIRMATION));
        assert!(renewals.await_answer(LONG, || false) < LONG, "the ceiling has risen");
        renewals.note();
        assert!(renewals.await_answer(LONG, || true) < LONG);
    }

    #[test]
    fn a_demand_lasts_until_it_is_answered() {
        let renewals = Renewals::new();
        renewals.attend(true);
        assert!(!renewals.await_demand(Duration::ZERO));
        renewals.want();
        assert!(renewals.await_demand(LONG));
        renewals.note();
        assert!(!renewals.await_demand(Duration::ZERO));
        renewals.interrupt();
        assert!(renewals.await_demand(LONG));
    }
}
