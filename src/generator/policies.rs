//! The options of one caller: clock rollbacks, waiting, sequence start.

use std::time::Duration;

use crate::core::layout::Tick;
use crate::core::sequence::Rules;

/// The reaction to a clock rollback: the clock is below the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockBack {
    /// Continue at once under another value of the clock-back counter. If none is left, like `Wait`.
    Counter,
    /// Wait until the clock has caught up, within `max_wait`.
    Wait,
    /// Refuse at once.
    Throw,
}

/// The options of one caller. Callers of one node may differ in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The reaction to a clock rollback: the clock is below the last tick.
    pub clock_back: ClockBack,
    /// The longest wait of one reservation, for the clock or the store.
    pub max_wait: Duration,
    /// Whether the sequence of a tick that this caller begins starts at random rather than at 0.
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
    /// The part of them that the sequencer needs. IDs of the node may lie `max_ahead` ticks ahead of the clock.
    #[inline]
    pub(super) fn rules(&self, max_ahead: Tick) -> Rules {
        Rules {
            may_raise: self.clock_back == ClockBack::Counter,
            max_ahead,
            random_start: self.random_start,
        }
    }
}
