//! One generator per node for the whole process, so that instances and worker_threads that name the same node cannot
//! collide. One lease, where a store records the node.
//!
//! | file | content |
//! |---|---|
//! | `entry` | the process's entry for a node: its generators, and where the node is recorded |
//! | `share` | one user's share in a node's generator; what the last one releases |
//! | `named` | nodes that no store records |
//! | `recorded` | nodes with a slot in a directory |
//! | `slots` | any free slot of a directory |
//! | `leased` | nodes that JavaScript has leased from a store |
//! | `request` | all ways to open a generator, in one type |
//!
//! The process never forgets what it issues alone, not even after all instances are closed: a later opening must not
//! issue the same IDs again. A process names few nodes. The host's page remembers the IDs drawn from it.

mod entry;
mod leased;
mod named;
mod recorded;
mod request;
mod share;
mod slots;

use std::path::PathBuf;
use std::time::Duration;

use crate::core::layout::{Layout, Tick};
use crate::generator::Policies;
use crate::pages::Directory;

pub use entry::release_all;
pub use named::{join, open};
pub use request::{Basis, Request};
pub use share::Share;
pub use slots::lease;

/// The settings for opening a node.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The caller's own policies.
    pub policies: Policies,
    /// The furthest that IDs may lie ahead of the clock, in ms. All users of the node agree on it.
    pub max_ahead_ms: i64,
    /// The directory of the host's pages; none to share the node within the process only.
    pub host: Option<Directory>,
}

impl Opening {
    fn max_ahead(&self, layout: &Layout) -> Tick {
        self.max_ahead_ms / layout.tick_ms
    }
}

/// The settings of a node's record.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file store's directory.
    pub directory: PathBuf,
    /// The distance of the recorded ceiling ahead of the clock.
    pub ttl: Duration,
    /// The longest wait for a slot that another process holds.
    pub wait: Duration,
    /// This host's name.
    pub host: String,
    /// The start of this process, Unix ms.
    pub started_ms: i64,
    /// Whether all threads of the process that request any slot get the same one.
    pub common: bool,
}

#[cfg(test)]
mod tests;
