//! How a generator behaves.

use std::time::Duration;

use crate::layout::{Layout, Tick};
use crate::shared::Rules;

/// What to do when the clock stands below the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockBack {
    /// Go on at once under another value of the clock-back counter; where none is left, as `Wait`.
    Counter,
    /// Wait until the clock has caught up, within `max_wait`.
    Wait,
    /// Refuse at once.
    Throw,
}

/// How a generator behaves. All who share a node agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// What to do when the clock stands below the last tick.
    pub clock_back: ClockBack,
    /// The longest that one reservation may wait, for the clock or for the store.
    pub max_wait: Duration,
    /// How far ahead of the clock ticks may be taken, in ms; rounded down to whole ticks.
    pub max_ahead_ms: i64,
    /// Whether a tick's sequence starts at random rather than at 0.
    pub random_start: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            clock_back: ClockBack::Counter,
            max_wait: Duration::from_millis(10),
            max_ahead_ms: 0,
            random_start: false,
        }
    }
}

impl Policies {
    /// In one word, which is read without a lock.
    pub(super) fn packed(&self, layout: &Layout) -> u64 {
        let max_ahead = (self.max_ahead_ms / layout.tick_ms) as u64;
        let may_raise = self.clock_back == ClockBack::Counter;
        max_ahead << 2 | u64::from(may_raise) << 1 | u64::from(self.random_start)
    }
}

/// What [`Policies::packed`] has packed.
pub(super) fn rules(packed: u64) -> Rules {
    Rules {
        may_raise: packed & 2 != 0,
        max_ahead: (packed >> 2) as Tick,
        random_start: packed & 1 != 0,
    }
}
