//! A slot held for as long as its generator issues IDs. One native thread per slot keeps the recorded ceiling ahead
//! of the clock, so that no caller ever waits for a disk.
//!
//! Each process that shares a page has such a thread. The first one to wake raises the ceiling, and the others find
//! it raised. So the next one replaces a thread that is stopped or killed.
//!
//! | file | content |
//! |---|---|
//! | `evidence` | what a page and its record tell about the ticks issued before |
//! | `durable` | a node's page, bound to its record on a disk |
//! | `release` | the end of a holding: the last user records the ticks issued |
//! | `renewer` | a held slot, and the thread that renews it |
//! | `reset` | repairs of a slot or page that a wrong clock made unusable |

pub mod durable;
mod evidence;
mod release;
mod renewer;
pub mod reset;

pub use renewer::{Lease, Report, Status};

/// The processes that may use a slot beside this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// None.
    Alone,
    /// The host's processes.
    Shared,
    /// The host's processes from now on; none yet.
    Taken,
    /// The host's processes, one of which has taken it.
    Joined,
}
