//! The way from a caller that wants a higher ceiling to the lease's keeper, and back. Its lock is entered
//! where a window begins or ends, is raised, or stands in the way; no ID that is issued comes by.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// When to try again while a ceiling is being raised: about what a disk takes.
const CONFIRMATION: Duration = Duration::from_millis(5);

/// Tells a generator's windows apart, so that a late answer of one store does not move the window of
/// the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowId(u64);

/// How things stand with the window's upper end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ceiling {
    /// Nobody will move it while a caller waits.
    Fixed,
    /// It is raised from time to time.
    Kept,
    /// It is to be raised at once.
    Wanted,
    /// It could not be raised; the next try is at that moment.
    Refused(Instant),
}

/// Who keeps a ceiling, and who waits for it.
pub(super) struct Keeping {
    state: Mutex<Kept>,
    /// A caller wants a higher ceiling: the lease's keeper waits for this.
    wanted: Condvar,
    /// The ceiling was raised, or could not be: callers that want an ID wait for this.
    answered: Condvar,
}

/// What the lock guards. A thread that changes a window holds it.
pub(super) struct Kept {
    ceiling: Ceiling,
    window: WindowId,
}

impl Kept {
    /// Another window than before, from now on.
    pub(super) fn begin(&mut self, ceiling: Ceiling) -> WindowId {
        self.ceiling = ceiling;
        self.window.0 += 1;
        self.window
    }

    /// Nobody raises the ceiling any more.
    pub(super) fn fix(&mut self) {
        self.ceiling = Ceiling::Fixed;
    }
}

impl Keeping {
    pub(super) fn new() -> Self {
        Keeping {
            state: Mutex::new(Kept { ceiling: Ceiling::Fixed, window: WindowId(0) }),
            wanted: Condvar::new(),
            answered: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Kept> {
        self.state.lock()
    }

    /// The lock, if that is still the window.
    pub(super) fn lock_window(&self, id: WindowId) -> Option<MutexGuard<'_, Kept>> {
        Some(self.state.lock()).filter(|kept| kept.window == id)
    }

    /// Has the ceiling raised. When the answer is to be expected; never, where nobody raises it.
    pub(super) fn want(&self) -> Option<Duration> {
        let mut kept = self.state.lock();
        match kept.ceiling {
            Ceiling::Fixed => None,
            Ceiling::Kept | Ceiling::Wanted => {
                kept.ceiling = Ceiling::Wanted;
                self.wanted.notify_all();
                Some(CONFIRMATION)
            }
            Ceiling::Refused(retry_at) => {
                let after = retry_at.saturating_duration_since(Instant::now());
                Some(after.max(CONFIRMATION))
            }
        }
    }

    /// Waits for the answer, unless it came already, so that `is_the_same` does not hold any more. How
    /// long that took.
    pub(super) fn await_answer(
        &self,
        at_most: Duration,
        is_the_same: impl Fn() -> bool,
    ) -> Duration {
        let start = Instant::now();
        let mut kept = self.state.lock();
        if is_the_same() && kept.ceiling != Ceiling::Kept {
            self.answered.wait_for(&mut kept, at_most);
        }
        start.elapsed()
    }

    /// Tells those who wait how things stand now, except that a ceiling nobody keeps stays so.
    pub(super) fn answer(&self, mut kept: MutexGuard<'_, Kept>, ceiling: Ceiling) {
        if kept.ceiling != Ceiling::Fixed {
            kept.ceiling = ceiling;
        }
        self.answered.notify_all();
    }

    /// Holds the calling thread until the ceiling should be raised, or for this long. Whether it should.
    pub(super) fn await_demand(&self, at_most: Duration) -> bool {
        let mut kept = self.state.lock();
        if kept.ceiling != Ceiling::Wanted {
            self.wanted.wait_for(&mut kept, at_most);
        }
        kept.ceiling == Ceiling::Wanted
    }

    /// Ends an [`Keeping::await_demand`], the present or the next one.
    pub(super) fn interrupt(&self) {
        self.state.lock().ceiling = Ceiling::Wanted;
        self.wanted.notify_all();
    }
}
