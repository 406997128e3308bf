//! How a generator behaves towards one caller.

use std::time::Duration;

use crate::layout::Tick;
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

/// How a generator behaves towards one caller. Callers of one node may differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// What to do when the clock stands below the last tick.
    pub clock_back: ClockBack,
    /// The longest that one reservation may wait, for the clock or for the store.
    pub max_wait: Duration,
    /// Whether a tick's sequence starts at random rather than at 0, where this caller begins it.
    pub random_start: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            clock_back: ClockBack::Counter,
            max_wait: Duration::from_millis(10),
            random_start: false,
        }
    }
}

impl Policies {
    /// What of them the sequencer needs, on a node whose IDs may lie this far ahead of the clock.
    #[inline]
    pub(super) fn rules(&self, max_ahead: Tick) -> Rules {
        Rules {
            may_raise: self.clock_back == ClockBack::Counter,
            max_ahead,
            random_start: self.random_start,
        }
    }
}
