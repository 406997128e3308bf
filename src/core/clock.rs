//! The clocks. All other modules take the time as a parameter.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{hint, thread};

/// A wait sleeps until this long before its end, and spins for the rest. Most sleeps overrun by about 60 us, so a wait
/// seldom spins; kernels with finer timers wake earlier. A late wake-up only delays: the tick's IDs are still
/// available.
const WAKE_UP: Duration = Duration::from_micros(20);

/// An hour in ms.
pub const HOUR_MS: i64 = 3_600_000;

/// A wall clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime {
    /// Whole ms since 1970-01-01T00:00:00Z; negative before.
    pub ms: i64,
    /// Nanoseconds within that ms: 0 to 999,999.
    pub ns: u32,
}

impl UnixTime {
    /// The first moment of a ms.
    pub fn from_ms(ms: i64) -> Self {
        UnixTime { ms, ns: 0 }
    }
}

impl From<SystemTime> for UnixTime {
    #[inline]
    fn from(time: SystemTime) -> Self {
        // No overflow: the system counts seconds in an i64, and a thousandth of that range is 292 million years.
        let ms = |since: Duration| since.as_secs() as i64 * 1000 + i64::from(since.subsec_millis());
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => UnixTime { ms: ms(since), ns: since.subsec_nanos() % 1_000_000 },
            // Before 1970. No layout needs ns there, so the time is rounded down to a whole ms.
            Err(before) => UnixTime::from_ms(-1 - ms(before.duration())),
        }
    }
}

/// A wall clock, which may roll back or jump at any moment, with a way to wait.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> UnixTime;

    /// Waits this long, regardless of changes of the wall clock.
    fn wait(&self, duration: Duration);

    /// Whether the clock may show an earlier time for an instant and then recover.
    fn may_flicker(&self) -> bool {
        false
    }
}

impl<C: Clock> Clock for Arc<C> {
    fn now(&self) -> UnixTime {
        self.as_ref().now()
    }

    fn wait(&self, duration: Duration) {
        self.as_ref().wait(duration);
    }

    fn may_flicker(&self) -> bool {
        self.as_ref().may_flicker()
    }
}

/// The system's wall clock (`CLOCK_REALTIME` and its equivalents).
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixTime {
        SystemTime::now().into()
    }

    fn wait(&self, duration: Duration) {
        let end = Instant::now() + duration;
        if let Some(sleep) = duration.checked_sub(WAKE_UP) {
            thread::sleep(sleep);
        }
        while Instant::now() < end {
            hint::spin_loop();
        }
    }

    fn may_flicker(&self) -> bool {
        true
    }
}

/// A clock that moves only when set or waited on: for tests, and for custom clocks of applications.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock set to this Unix ms.
    pub fn at(unix_ms: i64) -> Self {
        ManualClock(AtomicI64::new(unix_ms))
    }

    /// Sets the clock, forwards or backwards.
    pub fn set(&self, unix_ms: i64) {
        self.0.store(unix_ms, SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_ms(self.0.load(SeqCst))
    }

    /// Moves the clock forwards at once.
    fn wait(&self, duration: Duration) {
        let whole_ms = duration.as_nanos().div_ceil(1_000_000);
        self.0.fetch_add(i64::try_from(whole_ms).unwrap_or(i64::MAX), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_shows_the_system_time() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let now = SystemClock.now();
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let now = now.ms as u128 * 1_000_000 + u128::from(now.ns);
        assert!((before..=after).contains(&now));
    }

    #[test]
    fn a_time_before_1970_is_rounded_down_to_a_ms() {
        for (us, ms) in [(1, -1), (999, -1), (1001, -2), (86_400_000_001, -86_400_001)] {
            let time = UNIX_EPOCH - Duration::from_micros(us);
            assert_eq!(UnixTime::from(time), UnixTime::from_ms(ms), "{us}");
        }
    }

    #[test]
    fn a_wait_is_not_shorter_than_asked_for() {
        for us in [1, 10, 15, 30] {
            let (start, wait) = (Instant::now(), Duration::from_micros(us));
            SystemClock.wait(wait);
            assert!(start.elapsed() >= wait, "{us} us");
        }
    }

    #[test]
    fn only_the_system_clock_may_flicker() {
        assert!(Arc::new(SystemClock).may_flicker() && !Arc::new(ManualClock::at(0)).may_flicker());
    }
}
