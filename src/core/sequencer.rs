//! The types of the sequencer: marks, windows, blocks, stalls. [`crate::core::sequence`] implements the sequencer;
//! `tests/rule.rs` states its rule in plain code.

use crate::core::layout::{MAX_COUNTERS, Tick};

/// The high mark of an unused counter value.
pub const NEVER: Tick = -1;

/// The high marks: for each value of the clock-back counter, the highest tick issued under it. A sequencer that starts
/// from them issues no ID again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighMarks {
    /// By counter value; [`NEVER`] if none was issued.
    pub marks: [Tick; MAX_COUNTERS],
    /// The current counter value.
    pub current: usize,
}

impl HighMarks {
    /// The highest tick issued under any counter value; [`NEVER`] if none was issued.
    pub fn highest(&self) -> Tick {
        self.marks.into_iter().max().unwrap_or(NEVER)
    }
}

impl Default for HighMarks {
    fn default() -> Self {
        HighMarks { marks: [NEVER; MAX_COUNTERS], current: 0 }
    }
}

/// The ticks that a node may issue at present: (floor, ceiling].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Issues nothing at or below this tick.
    pub floor: Tick,
    /// Issues nothing above this tick.
    pub ceiling: Tick,
}

impl Window {
    /// Bounded by the layout only.
    pub const OPEN: Window = Window { floor: NEVER, ceiling: Tick::MAX };
    /// Contains no tick.
    pub const CLOSED: Window = Window { floor: NEVER, ceiling: NEVER };
}

/// Consecutive IDs of one tick, reserved in one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Their tick.
    pub tick: Tick,
    /// Their clock-back counter value.
    pub counter: usize,
    /// The first sequence number.
    pub first: u64,
    /// The number of IDs, at least 1.
    pub len: u64,
}

/// The reason that no ID can be issued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The sequence is exhausted in this tick, and in all ticks that `max_ahead` allows.
    SequenceExhausted {
        /// The first clock tick at which IDs can be issued again.
        until: Tick,
    },
    /// The clock rolled back below the last tick, and no counter value is available.
    ClockBehind {
        /// The earliest tick at which IDs can be issued again. It may be exhausted by then.
        until: Tick,
    },
    /// The clock is before the epoch.
    BeforeEpoch,
    /// The tick is at or below the floor of the window.
    AtFloor {
        /// The first tick at which IDs can be issued again.
        until: Tick,
    },
    /// The tick is above the ceiling of the window.
    AboveCeiling {
        /// The last tick that may be issued; [`NEVER`] while no window is open.
        ceiling: Tick,
    },
    /// The timestamp overflows: no more IDs, ever.
    TimeEnded,
    /// The host has no usable page, and none can be opened.
    NoPage,
}
