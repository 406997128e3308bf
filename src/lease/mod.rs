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

use crate::core::fault::Fault;
use crate::host::HostError;
use crate::store::StoreError;
pub use renewer::{Lease, Report, Status};

/// Reasons for not opening a node.
#[derive(Debug)]
pub enum OpenError {
    /// The host's page refused.
    Host(HostError),
    /// The store refused.
    Store(StoreError),
    /// The layout has no room for the node, the host has no directory for pages, or this process has the node open in
    /// another way.
    Other(Fault),
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        OpenError::Store(error)
    }
}

impl From<HostError> for OpenError {
    fn from(error: HostError) -> Self {
        OpenError::Host(error)
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        OpenError::Other(fault)
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Fault {
        match error {
            OpenError::Host(error) => error.into(),
            OpenError::Store(error) => error.into(),
            OpenError::Other(fault) => fault,
        }
    }
}

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
