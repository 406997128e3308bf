//! A ring of IDs in front of a generator, like UidGenerator's CachedUidGenerator: a thread pads it ahead of demand, and
//! all threads of the process with this node take IDs from it.
//!
//! IDs in the ring are issued already, under the generator's policies, window and marks. So neither other callers of
//! the generator nor restarted processes issue them again. The ring only hands them out later. Their timestamps are
//! bounded: each tick follows the last one, is at most `max_age` behind the clock, and at most the generator's
//! `max_ahead` ahead of it. The ring drops IDs older than `max_age`.
//!
//! | file | content |
//! |---|---|
//! | `buffer` | the lock-free ring: one padder, many takers |
//! | `cached` | a node's ring, shared by its users in this process |
//! | `padding` | the thread that fills it |

pub mod buffer;
mod cached;
mod padding;

use std::time::Duration;

use crate::core::atomic;
use crate::core::fault::{Fault, fault};
use crate::core::layout::{Layout, Tick};

pub use cached::{Cached, open_ring, usable};

/// The maximum size of a ring in IDs: 128 MiB.
const MOST_IDS: u64 = 1 << 24;

/// The options of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// The ring has room for the IDs of 2^`boost_power` ticks.
    pub boost_power: u32,
    /// Padding starts when at most this percentage of the ring is left.
    pub padding_factor: u64,
    /// The interval of scheduled padding.
    pub schedule: Option<Duration>,
    /// The ring drops IDs whose tick is more than this many ticks behind the clock.
    pub max_age: Tick,
}

impl Caching {
    /// The size of a layout's ring, in IDs.
    pub fn size(&self, layout: &Layout) -> Result<usize, Fault> {
        let per_tick = u128::from(layout.last_sequence()) + 1;
        let slots = per_tick << self.boost_power.min(63);
        if slots > u128::from(MOST_IDS) {
            return Err(fault!("ring-too-large", slots, most: MOST_IDS));
        }
        Ok(slots as usize)
    }
}

/// The counters of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    /// The capacity of the ring.
    pub size: u64,
    /// IDs in the ring.
    pub left: u64,
    /// IDs taken.
    pub taken: u64,
    /// IDs dropped because they were too old, or because later IDs were not above them.
    pub dropped: u64,
    /// Scheduled paddings that found the ring full.
    pub rejected_puts: u64,
    /// Takes that found no ID.
    pub rejected_takes: u64,
}

#[cfg(test)]
mod tests;
