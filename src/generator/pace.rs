//! The number of IDs that one instance reserves at once, adapted to its rate. The aims: few native calls, and few IDs
//! with an outdated timestamp.
//!
//! JavaScript draws from a block in one of two ways. *Checked*: it reads the clock before each ID, and discards the
//! block when its millisecond has ended. *Unchecked*: it does not read the clock, because a callback reports the end of
//! the event-loop turn. A turn with that callback is *watched*. The callback costs as much as 25 clock readings, so it
//! pays only in a loop. Hence:
//!
//! 1. The first [`SURE_OF_LOOP`] IDs of a watched turn are checked, and all IDs of other turns.
//! 2. An unchecked block has at most 1/16 of the IDs drawn per ms at the present rate, or 16 if that is more. So its
//!    last ID is drawn within a quarter of a ms if the rate stays. A booked block may have the IDs of a whole ms.
//! 3. A checked block has at most the IDs drawn per ms, and at most JavaScript's limit.
//!
//! The time is a parameter: Unix ms.

use crate::core::layout::Layout;

/// The most IDs of a block. In larger blocks the native call no longer affects the time per ID.
pub const LARGEST_BLOCK: u64 = 256;

/// One instance reserves at most 1/32 of a tick's IDs for later turns, and at most 64, so that idle instances do not
/// exhaust a tick.
const CHECKED_PART: u64 = 32;
const MOST_CHECKED: u64 = 64;

/// The number of IDs drawn within one ms before a turn is watched, at least.
const LEAST_PATIENCE: u64 = 32;

/// The maximum of `patience`, which doubles while watched turns end early.
const MOST_PATIENCE: u64 = 4096;

/// A watched turn with at most this many IDs was not worth its callback.
const WORTH_WATCHING: u64 = 64;

/// A watched turn with this many IDs counts as a loop.
const SURE_OF_LOOP: u64 = 16;

/// Below this many IDs per ms, clock readings cost less than more frequent reservations.
const LOOP_RATE: u64 = 64;

/// The size of the smallest unchecked block.
const LEAST_UNCHECKED: u64 = 16;

/// The most IDs of a checked block in this layout.
pub fn most_checked(layout: &Layout) -> u64 {
    ((layout.last_sequence() + 1) / CHECKED_PART).clamp(1, MOST_CHECKED)
}

/// The way to draw from the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Check each ID.
    Check,
    /// Check each ID, and watch this turn.
    Watch,
    /// Draw without reading the clock.
    Free,
}

/// The rate of one instance, and the state of its turn.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The ms of the last reservation.
    ms: i64,
    /// IDs drawn since that ms began.
    drawn: u64,
    /// IDs drawn per ms before that ms.
    rate: u64,
    /// The size of the last block. The number of IDs drawn from it is not known yet.
    len: u64,
    /// IDs drawn since the last watched turn ended.
    unwatched: u64,
    patience: u64,
    /// IDs drawn in this turn since it is watched; `None` if it is not.
    watched: Option<u64>,
    most_checked: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            ms: 0,
            drawn: 0,
            rate: 0,
            len: 0,
            unwatched: 0,
            patience: LEAST_PATIENCE,
            watched: None,
            most_checked: 1,
        }
    }
}

impl Pace {
    /// The number of IDs of the last block that may still be unused.
    pub fn block_len(&self) -> u64 {
        self.len
    }

    /// Forgets the last block: its IDs count neither as drawn nor as unused.
    pub fn forget_block(&mut self) {
        self.len = 0;
    }

    /// Records the end of the last block. `unused`: the number of its IDs that were not drawn. `is_watched`: whether a
    /// callback reports the end of this turn. `most_checked`: the most IDs of a checked block, at least 1.
    pub fn note(&mut self, unused: u64, is_watched: bool, most_checked: u64) {
        let drawn = self.len.saturating_sub(unused);
        self.len = 0;
        self.drawn += drawn;
        self.unwatched += drawn;
        self.most_checked = most_checked.clamp(1, LARGEST_BLOCK);
        match &mut self.watched {
            Some(watched) if is_watched => *watched += drawn,
            Some(watched) => {
                self.patience = match *watched {
                    0..=WORTH_WATCHING => (self.patience * 2).min(MOST_PATIENCE),
                    _ => LEAST_PATIENCE,
                };
                self.unwatched = 0;
                self.watched = None;
            }
            None => {}
        }
    }

    /// The pace at a clock reading.
    pub fn at(mut self, ms: i64) -> Pace {
        if ms != self.ms {
            let passed = u64::try_from(ms.saturating_sub(self.ms)).unwrap_or(u64::MAX);
            self.rate = self.drawn / passed.max(1);
            self.drawn = 0;
            self.ms = ms;
        }
        self
    }

    /// The present estimate of IDs drawn per ms.
    fn a_ms(&self) -> u64 {
        self.rate.max(self.drawn)
    }

    /// The way to draw from the next block.
    pub fn advice(&self) -> Advice {
        match self.watched {
            Some(watched) if watched >= SURE_OF_LOOP && self.a_ms() >= LOOP_RATE => Advice::Free,
            Some(_) => Advice::Check,
            None if self.drawn >= LEAST_PATIENCE && self.unwatched >= self.patience => {
                Advice::Watch
            }
            None => Advice::Check,
        }
    }

    /// The number of IDs to reserve.
    pub fn size(&self) -> u64 {
        match self.advice() {
            Advice::Free => (self.a_ms() / 16).clamp(LEAST_UNCHECKED, LARGEST_BLOCK),
            Advice::Check | Advice::Watch => self.a_ms().clamp(1, self.most_checked),
        }
    }

    /// The number of IDs to book in a coming tick: up to the IDs drawn per ms, since each booking is a wait.
    pub fn booking_size(&self) -> u64 {
        match self.advice() {
            Advice::Free => self.a_ms().min(LARGEST_BLOCK),
            Advice::Check | Advice::Watch => self.size(),
        }
    }

    /// Records a reserved block. Its caller follows the present advice.
    pub fn begin_block(&mut self, len: u64) {
        if self.advice() == Advice::Watch {
            self.watched = Some(0);
        }
        self.len = len;
    }
}

#[cfg(test)]
mod tests;
