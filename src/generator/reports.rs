//! Counts every clock rollback, and keeps the latest one for a report to the application, at a limited rate. Issuing an
//! ID takes no lock: without a rollback it only checks two flags.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A clock rollback to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// The distance of the clock below the last tick, in ms.
    pub back_ms: i64,
    /// The counter value since the rollback.
    pub counter: usize,
    /// Whether IDs are refused until the clock has caught up.
    pub is_refused: bool,
    /// The number of earlier rollbacks that were not reported, due to the rate limit.
    pub unreported: u64,
}

/// The number of rollbacks and the pending report.
pub(super) struct Reports {
    count: AtomicU64,
    /// True from a refused rollback until the next ID, so that one rollback counts once.
    is_behind: AtomicBool,
    /// Whether there is a report to take.
    is_due: AtomicBool,
    pending: Mutex<Pending>,
}

struct Pending {
    report: Option<Rollback>,
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

    /// The number of rollbacks.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts a rollback: see [`Rollback`].
    pub(super) fn note(&self, back_ms: i64, counter: usize, is_refused: bool) {
        self.count.fetch_add(1, Relaxed);
        let Pending { report, budget } = &mut *self.pending.lock();
        let unreported = budget.unreported;
        if budget.take(Instant::now()) {
            // This report replaces one that was not taken.
            let untaken = report.map_or(0, |report| report.unreported + 1);
            *report =
                Some(Rollback { back_ms, counter, is_refused, unreported: unreported + untaken });
            self.is_due.store(true, SeqCst);
        }
    }

    /// Counts a refused rollback, once until the next ID is issued.
    pub(super) fn note_refused(&self, back_ms: i64, counter: usize) {
        if !self.is_behind.swap(true, Relaxed) {
            self.note(back_ms, counter, true);
        }
    }

    /// Called when an ID is issued: the next refusal is of another rollback.
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

    /// Takes the report. Only the first caller receives it.
    pub(super) fn take(&self) -> Option<Rollback> {
        let mut pending = self.pending.lock();
        self.is_due.store(false, SeqCst);
        pending.report.take()
    }
}

/// A rate limit, so that a clock that keeps rolling back does not flood the log: `FULL` reports at once, then one per
/// `EVERY`.
struct Budget {
    left: u32,
    since: Instant,
    unreported: u64,
}

/// The number of reports allowed at once.
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
    fn the_budget_recovers_and_counts_unreported_rollbacks() {
        let start = Instant::now();
        let mut budget = Budget { left: 1, since: start, unreported: 0 };
        assert!(budget.take(start));
        assert!(!budget.take(start));
        assert_eq!(budget.unreported, 1);
        assert!(budget.take(start + EVERY));
        assert_eq!(budget.unreported, 0);
        // After a long time the budget is full again, and is spent as at first.
        let later = start + EVERY * 100;
        assert!((0..FULL).all(|_| budget.take(later)) && !budget.take(later));
        let next = later + EVERY;
        assert!(budget.take(next) && !budget.take(next));
    }

    #[test]
    fn a_replaced_report_is_counted_in_the_next_one() {
        let reports = Reports::new();
        for counter in 1..=3 {
            reports.note(5, counter, false);
        }
        assert_eq!(
            reports.take(),
            Some(Rollback { back_ms: 5, counter: 3, is_refused: false, unreported: 2 })
        );
        assert_eq!(reports.take(), None);
    }
}
