//! What the sequencer answers in: marks, windows, blocks, stalls. The sequencer itself is
//! [`crate::shared`]; `tests/rule` states its rule plainly.

use crate::layout::{MAX_COUNTERS, Tick};

/// The high mark of a counter under which nothing was issued yet.
pub const NEVER: Tick = -1;

/// For each value of the clock-back counter, the highest tick ever issued under it.
///
/// It is all that a restart must remember: a sequencer that starts from the marks of an earlier one
/// repeats none of its IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighMarks {
    /// By counter value; [`NEVER`] where nothing was issued.
    pub marks: [Tick; MAX_COUNTERS],
    /// The counter in use.
    pub current: usize,
}

impl HighMarks {
    /// The highest tick issued under any counter; [`NEVER`] at first.
    pub fn highest(&self) -> Tick {
        self.marks.into_iter().max().unwrap_or(NEVER)
    }
}

impl Default for HighMarks {
    fn default() -> Self {
        HighMarks { marks: [NEVER; MAX_COUNTERS], current: 0 }
    }
}

/// The ticks (floor, ceiling] that may be issued at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Nothing at or below this tick is issued.
    pub floor: Tick,
    /// Nothing above this tick is issued.
    pub ceiling: Tick,
}

impl Window {
    /// No bound but the layout's own.
    pub const OPEN: Window = Window { floor: NEVER, ceiling: Tick::MAX };
    /// No tick at all.
    pub const CLOSED: Window = Window { floor: NEVER, ceiling: NEVER };
}

/// Consecutive IDs of one tick, reserved in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Their tick.
    pub tick: Tick,
    /// Their clock-back counter.
    pub counter: usize,
    /// The first sequence number.
    pub first: u64,
    /// How many there are; at least 1.
    pub len: u64,
}

/// Why nothing can be issued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Every sequence number of this tick is taken, and of those that may be taken ahead.
    SequenceUsedUp {
        /// First tick of the clock at which IDs can be issued again.
        until: Tick,
    },
    /// The clock stands below what was issued, and no counter value is left for it.
    ClockBehind {
        /// The earliest tick at which IDs can be issued again; it may turn out to be full.
        until: Tick,
    },
    /// The clock stands before the epoch.
    BeforeEpoch,
    /// At or below the window's floor.
    AtFloor {
        /// First tick at which IDs can be issued again.
        until: Tick,
    },
    /// Above the window's ceiling.
    AboveCeiling {
        /// The last tick that may be issued.
        ceiling: Tick,
    },
    /// Past the layout's last tick. Nothing ends this.
    TimeEnded,
    /// The host's page is gone, and no other one can be opened.
    NoPage,
}
