//! A ring of IDs in front of a generator, as in UidGenerator's CachedUidGenerator: a thread pads it ahead, and all
//! threads of the process that name the node drain it.
//!
//! The generator has issued the IDs in the ring, under its policies, window and marks. So other callers of the
//! generator, and processes that restart from its store, meet none of them again. The ring only hands them out
//! later. Three bounds keep their timestamps honest. Ticks count on from the last one, but lie at most `max_age`
//! behind the clock. They lie at most the generator's `max_ahead` ahead of it. The ring drops IDs that have grown
//! older than `max_age`.
//!
//! | file | content |
//! |---|---|
//! | `buffer` | the lock-free ring: one padder, many takers |
//! | `cached` | a node's ring, as its users take IDs from it |
//! | `padding` | the thread that fills it |

pub mod buffer;
mod cached;
mod padding;

use std::time::Duration;

use crate::core::atomic;
use crate::core::fault::{Fault, fault};
use crate::core::layout::{Layout, Tick};

pub use cached::{Cached, fits, open};

/// The most slots of a ring: 128 MiB.
const MOST_SLOTS: u64 = 1 << 24;

/// The options of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// The ring has room for the IDs of 2 to this power ticks.
    pub boost_power: u32,
    /// Padding starts when no more than this percentage is left in the ring.
    pub padding_factor: u64,
    /// The interval of additional padding.
    pub schedule: Option<Duration>,
    /// IDs whose tick lies more than this many ticks behind the clock are dropped.
    pub max_age: Tick,
}

impl Caching {
    /// The number of slots in the ring of a layout.
    pub fn slots(&self, layout: &Layout) -> Result<usize, Fault> {
        let per_tick = u128::from(layout.last_sequence()) + 1;
        let slots = per_tick << self.boost_power.min(63);
        if slots > u128::from(MOST_SLOTS) {
            return Err(fault!("ring-too-large", slots, most: MOST_SLOTS));
        }
        Ok(slots as usize)
    }
}

/// The counters of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    /// Its slots.
    pub size: u64,
    /// IDs in it.
    pub left: u64,
    /// IDs taken.
    pub taken: u64,
    /// IDs dropped because they were too old, or because the IDs put in next did not rise above them.
    pub dropped: u64,
    /// The number of scheduled paddings that found the ring full.
    pub rejected_puts: u64,
    /// The number of takes that found no ID.
    pub rejected_takes: u64,
}

#[cfg(test)]
mod tests;
