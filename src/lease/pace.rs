//! When a process looks at its slot, renews it, and tries again. Times in ms.

/// The pause before the next try to join the slot that another process of the host takes.
pub const JOIN_MS: i64 = 20;
/// The pause before the next look at a slot that may become free.
pub const POLL_MS: i64 = 100;
/// The shortest and the longest pause after a try that failed; in between, 1/10 ttl.
const RETRY_MS: (i64, i64) = (100, 1000);
/// What each call of a try adds to that pause.
const CALL_MS: i64 = 25;
/// The shortest and the longest pause between looks at a page that the host shares; in between, 1/12 ttl.
const CHECK_MS: (i64, i64) = (50, 1000);
/// When the process that renewed last renews again, in parts of the ttl.
const RENEW_AFTER: i64 = 3;

/// The last renewal of a slot.
#[derive(Clone, Copy, Debug)]
pub struct LastRenewal {
    /// The time since then.
    pub elapsed: i64,
    /// The renewing process's ttl.
    pub ttl: i64,
    /// The number of renewals.
    pub count: u64,
    /// Whether the host's processes share the slot.
    pub is_shared: bool,
    /// Whether a process asked for a renewal at once.
    pub is_asked: bool,
}

/// The pace of one process.
#[derive(Clone, Debug)]
pub struct RenewalPace {
    ttl: i64,
    /// How much later than its last renewer this process renews, in parts of the ttl: 1/12 to 1/6.
    takeover: f64,
    /// The number of the last renewal by this process.
    own: Option<u64>,
    /// The calls of the present try.
    calls: i64,
    /// Whether it had a slot.
    is_open: bool,
    /// The number of the renewal after which it has looked for a lower slot of the host.
    looked: Option<u64>,
}

impl RenewalPace {
    /// The pace of a process with this ttl. `random` is from 0 to 1.
    pub fn new(ttl: i64, random: f64) -> RenewalPace {
        RenewalPace {
            ttl,
            takeover: (1.0 + random) / 12.0,
            own: None,
            calls: 0,
            is_open: false,
            looked: None,
        }
    }

    /// A try begins.
    pub fn begin(&mut self) {
        self.calls = 0;
    }

    /// A call is made.
    pub fn call(&mut self) {
        self.calls += 1;
    }

    /// This process has a slot. The number is that of its renewal, if it made it.
    pub fn hold(&mut self, own: Option<u64>) {
        self.is_open = true;
        self.own = own.or(self.own);
    }

    /// It has another slot.
    pub fn lose(&mut self) {
        (self.own, self.looked) = (None, None);
    }

    /// Whether to look for a lower slot of the host: once after each renewal. `count` is the number of the last one.
    pub fn look(&mut self, count: u64) -> bool {
        self.looked.replace(count) != Some(count)
    }

    /// The pause after a try without success: longer after many calls, as after a search of many buckets.
    pub fn retry(&self) -> i64 {
        let least = if self.is_open { self.ttl / 10 } else { POLL_MS };
        least.max(self.calls * CALL_MS).clamp(RETRY_MS.0, RETRY_MS.1)
    }

    /// How long until this process should renew or look again. It gives the process that renewed last a head start. Where a caller
    /// waits for it, it is due as soon as after a failure.
    pub fn due(&self, last: LastRenewal, is_wanted: bool) -> i64 {
        // In a Linux time namespace the monotonic clock differs from the other processes'.
        if last.is_asked || last.elapsed < 0 {
            return 0;
        }
        // Processes of one host may have different ttls. The hold lasts for the one confirmed last.
        let ttl = self.ttl.min(last.ttl);
        let is_own = self.own == Some(last.count);
        let delay = if is_own { 0 } else { (self.takeover * ttl as f64) as i64 };
        let usual = ttl / RENEW_AFTER + delay;
        let after = if is_wanted { usual.min(RETRY_MS.0) } else { usual };
        let left = (after - last.elapsed).max(0);
        if last.is_shared { left.min((self.ttl / 12).clamp(CHECK_MS.0, CHECK_MS.1)) } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: LastRenewal =
        LastRenewal { elapsed: 0, ttl: 30_000, count: 7, is_shared: false, is_asked: false };

    #[test]
    fn the_last_renewer_is_first() {
        let mut own = RenewalPace::new(30_000, 0.0);
        own.hold(Some(7));
        let other = RenewalPace::new(30_000, 0.0);
        assert_eq!((own.due(LAST, false), other.due(LAST, false)), (10_000, 12_500));
        let late = LastRenewal { elapsed: 10_000, ..LAST };
        assert_eq!((own.due(late, false), other.due(late, false)), (0, 2500));
        own.lose();
        assert_eq!(own.due(late, false), 2500);
    }

    #[test]
    fn the_shorter_ttl_counts() {
        let last = LastRenewal { ttl: 3000, ..LAST };
        assert_eq!(RenewalPace::new(30_000, 1.0).due(last, false), 1500);
        assert_eq!(RenewalPace::new(3000, 1.0).due(LAST, false), 1500);
    }

    #[test]
    fn a_shared_page_is_looked_at_often() {
        let last = LastRenewal { is_shared: true, ..LAST };
        assert_eq!(RenewalPace::new(30_000, 0.0).due(last, false), 1000);
        assert_eq!(RenewalPace::new(100, 0.0).due(LastRenewal { ttl: 10, ..last }, false), 3);
        assert_eq!(RenewalPace::new(100, 0.0).due(LastRenewal { ttl: 1000, ..last }, false), 41);
    }

    #[test]
    fn who_asks_or_waits_gets_it_soon() {
        let pace = RenewalPace::new(30_000, 0.0);
        assert_eq!(pace.due(LastRenewal { is_asked: true, ..LAST }, false), 0);
        assert_eq!(pace.due(LastRenewal { elapsed: -1, ..LAST }, false), 0);
        assert_eq!(pace.due(LAST, true), 100);
        assert_eq!(pace.due(LastRenewal { elapsed: 100, ..LAST }, true), 0);
    }

    #[test]
    fn a_lower_slot_is_looked_for_once_after_each_renewal() {
        let mut pace = RenewalPace::new(30_000, 0.0);
        assert_eq!([7, 7, 8].map(|count| pace.look(count)), [true, false, true]);
        pace.lose();
        assert!(pace.look(8));
    }

    #[test]
    fn tries_slow_down() {
        let mut pace = RenewalPace::new(5000, 0.0);
        assert_eq!(pace.retry(), 100);
        pace.hold(None);
        assert_eq!(pace.retry(), 500);
        (0..30).for_each(|_| pace.call());
        assert_eq!(pace.retry(), 750);
        (0..30).for_each(|_| pace.call());
        assert_eq!(pace.retry(), 1000);
        pace.begin();
        assert_eq!(pace.retry(), 500);
    }
}
