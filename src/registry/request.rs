//! A request for a generator, and who allows it to issue IDs.

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::clock::{Clock, ManualClock, SystemClock};
use crate::core::fault::{Failure, Fault, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::generator::Policies;
use crate::pages::Directory;

/// A request to open a generator.
#[derive(Clone)]
pub struct Request {
    /// The layout of its IDs.
    pub layout: Layout,
    /// The datacenter ID.
    pub datacenter_id: u64,
    /// The worker ID; none for any free one of a store.
    pub worker_id: Option<u64>,
    /// The caller's own policies.
    pub policies: Policies,
    /// The furthest that IDs may lie ahead of the clock, in ms. All users of the node agree on it.
    pub max_ahead_ms: i64,
    /// Who shares the node.
    pub scope: Scope,
    /// A directory in memory for the host's pages, in place of the system's.
    pub shared: Option<PathBuf>,
    /// Who allows this process to issue the node's IDs.
    pub by: By,
}

/// The processes that share a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the host, where the system has a place for pages.
    Auto,
    /// Those of the host.
    Host,
    /// This one alone.
    Process,
}

/// Who allows a process to issue a node's IDs.
#[derive(Clone)]
pub enum By {
    /// Nobody: the caller has named the node.
    Free,
    /// Nobody, in a page of this caller alone: the application sets its clock.
    Clock(Arc<ManualClock>),
    /// A store or a directory: a lease of this process takes a slot, or joins the host's.
    Lease,
}

impl Request {
    /// The requested node.
    pub fn node(&self) -> Result<Node, Fault> {
        Node::new(self.layout, self.datacenter_id, self.worker_id.unwrap_or_default())
    }

    /// The directory of the host's pages, which takes long to find; none to share the node within the process only.
    pub fn host(&self) -> Result<Option<Directory>, Failure> {
        if self.scope == Scope::Process || matches!(self.by, By::Clock(_)) {
            return Ok(None);
        }
        let found = Directory::find(self.shared.as_deref())?;
        if found.is_none() && self.scope == Scope::Host {
            return Err(fault!("no-shared-memory").into());
        }
        Ok(found)
    }

    /// The clock of a generator that it begins.
    pub(super) fn clock(&self) -> Box<dyn Clock> {
        match &self.by {
            By::Clock(clock) => Box::new(clock.clone()),
            _ => Box::new(SystemClock),
        }
    }

    /// The furthest that IDs may lie ahead of the clock.
    pub(super) fn max_ahead(&self) -> Tick {
        self.max_ahead_ms / self.layout.tick_ms
    }
}
