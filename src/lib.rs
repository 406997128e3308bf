//! The core of snowdrift: 64-bit Snowflake IDs that never repeat.
//!
//! Read in this order; each file imports only from those above it.
//!
//! | file | what it is |
//! |---|---|
//! | `layout` | how 63 bits are cut, and what a cut allows |
//! | `sequencer` | what is reserved, why not, and what a restart must remember |
//! | `shared` | the state machine that decides which IDs come next, over atomics that threads and processes share |
//! | `node` | whose IDs they are |
//! | `clock` | where the time comes from |
//! | `listeners` | who is to hear of what a thread does |
//! | `store` | where slots are recorded, for the next process and against other hosts |
//! | `host` | the page in which a host's processes share a node's sequence |
//! | `generator` | a sequencer and its clock, its window, and the waiting |
//! | `durable` | a page and its record on a disk |
//! | `reset` | what is done about a slot or page that a wrong clock made useless |
//! | `lease` | a slot that is held: the thread that keeps its ceiling ahead |
//! | `registry` | one generator a node for the whole process |
//! | `ring` | IDs filled ahead, drained by many threads without a lock |
//! | `cached` | a ring in front of a generator, and the thread that pads it |
//! | `binding` | Node-API; the only part that knows Node exists |

/// The atomics of [`ring`] and [`shared`]: their tests put others in their place.
mod atomic {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}
pub mod cached;
pub mod clock;
pub mod durable;
pub mod generator;
pub mod host;
pub mod layout;
pub mod lease;
pub mod listeners;
pub mod node;
pub mod registry;
pub mod reset;
pub mod ring;
pub mod sequencer;
pub mod shared;
pub mod store;

#[cfg(feature = "binding")]
mod binding;
