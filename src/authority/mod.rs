//! Who allows a page to issue: a record on a disk, or a lease from a store. Nobody allows a free page.
//!
//! A slot is a worker ID in a store. No holder of one issues the IDs of an earlier one, and a slot has one holder at a time.
//! Every store keeps these rules:
//!
//! 1. A holder issues ticks in (floor, ceiling] only. Its floor is the ceiling recorded before its start, or a lower
//!    one, if the store hands over the high marks of all IDs issued above that.
//! 2. A recorded ceiling never falls, except by its owner's release, to the last tick it issued.
//! 3. Checking the owner and raising the ceiling is one atomic operation.
//! 4. A generator's ceiling moves only after the store has confirmed it.
//!
//! So no two holders of a slot share a (tick, counter), whatever their clocks and pauses are.
//!
//! One native thread per slot of a directory keeps the recorded ceiling ahead of the clock, so that no caller ever waits for
//! a disk. Each process that shares a page has such a thread. The first one to wake raises the ceiling, and the others find
//! it raised. So the next one replaces a thread that is stopped or killed.
//!
//! | file | content |
//! |---|---|
//! | `record` | a slot's record in its file, and its holder |
//! | `slot` | a slot's file: its records and locks |
//! | `file` | a directory with one file per slot |
//! | `evidence` | what a page and its record tell about the ticks issued before |
//! | `durable` | a node's page, bound to its record on a disk: begins, raises and ends its window |
//! | `renewer` | a held slot, and the thread that renews it |
//! | `reset` | repairs of a slot or page that a wrong clock made unusable |

pub mod durable;
mod evidence;
pub mod file;
pub mod record;
mod renewer;
pub mod reset;
pub mod slot;

pub use file::Recorded;
pub use record::Holder;
pub use renewer::{Lease, Report, Status};
pub use slot::in_use;

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
