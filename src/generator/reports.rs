//! Clock rollbacks: counted always, and reported to the application once each, though not too many. The
//! way of an ID only looks whether there is anything to do: no rollback, no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A clock rollback that is not reported yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// How far below the last tick the clock stood, in ms.
    pub back_ms: i64,
    /// The counter value in use since.
    pub counter: usize,
    /// How many earlier steps went unreported, because there were too many.
    pub unreported: u64,
}

/// The rollbacks that were counted, and the one to report.
pub(super) struct Reports {
    count: AtomicU64,
    /// Set from a refused rollback until the next ID, so that it counts once.
    is_behind: AtomicBool,
    /// Whether there is a report to take.
    is_due: AtomicBool,
    pending: Mutex<Pending>,
}

struct Pending {
    report: Option<ClockStep>,
    budget: Budget,
}

impl Reports {
    pub(super) fn new() -> Self {
        Reports {
            count: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            pending: Mutex::new(Pending { report: None, budget: Budget::full() }),
        }
    }

    /// How many rollbacks there were.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts a rollback that was answered with another counter value.
    pub(super) fn note(&self, back_ms: i64, counter: usize) {
        self.count.fetch_add(1, Relaxed);
        let Pending { report, budget } = &mut *self.pending.lock();
        let unreported = budget.unreported;
        if budget.take(Instant::now()) {
            *report = Some(ClockStep { back_ms, counter, unreported });
            self.is_due.store(true, SeqCst);
        }
    }

    /// Counts a rollback that was refused, unless that was so since the last ID.
    pub(super) fn note_refused(&self, back_ms: i64, counter: usize) {
        if !self.is_behind.swap(true, Relaxed) {
            self.note(back_ms, counter);
        }
    }

    /// An ID was issued: the next refusal is of another rollback.
    #[inline]
    pub(super) fn note_issued(&self) {
        if self.is_behind.load(Relaxed) {
            self.is_behind.store(false, Relaxed);
        }
    }

    /// Whether there is a report to take.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Relaxed)
    }

    /// The report, to the first who asks.
    pub(super) fn take(&self) -> Option<ClockStep> {
        let mut pending = self.pending.lock();
        self.is_due.store(false, SeqCst);
        pending.report.take()
    }
}

/// Keeps a clock that steps all the time from flooding the log: `FULL` reports at once, then one
/// each `EVERY`.
struct Budget {
    left: u32,
    since: Instant,
    unreported: u64,
}

/// How many reports come at once.
const FULL: u32 = 10;
const EVERY: Duration = Duration::from_secs(10);

impl Budget {
    fn full() -> Self {
        Budget { left: FULL, since: Instant::now(), unreported: 0 }
    }

    fn take(&mut self, now: Instant) -> bool {
        while self.left < FULL && now.duration_since(self.since) >= EVERY {
            self.left += 1;
            self.since += EVERY;
        }
        if self.left == 0 {
            self.unreported += 1;
            return false;
        }
        if self.left == FULL {
            self.since = now;
        }
        self.left -= 1;
        self.unreported = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_comes_back_and_tells_what_it_left_out() {
        let start = Instant::now();
        let mut budget = Budget { left: 1, since: start, unreported: 0 };
        assert!(budget.take(start));
        assert!(!budget.take(start));
        assert_eq!(budget.unreported, 1);
        assert!(budget.take(start + EVERY));
        assert_eq!(budget.unreported, 0);
    }
}
