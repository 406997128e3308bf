//! Requests: all ways to open a generator, in one type.

use super::leased::{join_leased, join_on_host, lease_on_host, open_leased};
use super::recorded::open_recorded;
use super::{Opening, Recording, Share, lease, open};
use crate::core::fault::{Failure, Fault, fault};
use crate::core::layout::Layout;
use crate::core::node::Node;
use crate::core::sequencer::Window;
use crate::pages::{Directory, Grant};

/// A request to open a generator.
#[derive(Debug)]
pub struct Request {
    /// The layout of its IDs.
    pub layout: Layout,
    /// The datacenter ID.
    pub datacenter_id: u64,
    /// The worker ID; none for any free one, where the basis gives one.
    pub worker_id: Option<u64>,
    /// The caller's settings.
    pub opening: Opening,
    /// The right of this process to issue the node's IDs.
    pub basis: Basis,
}

/// The right of a process to issue a node's IDs. With `in_thread` a thread of its own renews the lease, so that a
/// draw may wait for a renewal.
#[derive(Debug)]
pub enum Basis {
    /// The caller has named the node.
    Named,
    /// A directory records the node's slot.
    Recorded(Recording),
    /// A store has confirmed a window to this process alone.
    Window {
        /// The window.
        bounds: Window,
        /// Whether a thread renews it.
        in_thread: bool,
    },
    /// Another thread of this process holds the node's lease.
    Thread,
    /// A store has just leased the slot to this host.
    Grant {
        /// The terms that the store has confirmed.
        grant: Grant,
        /// Whether a thread renews it.
        in_thread: bool,
    },
    /// A process of this host has leased a slot of a namespace.
    Page {
        /// The namespace's random ID.
        namespace: u128,
        /// The only owner whose slot to join; none for any.
        owner: Option<u128>,
        /// Owners whose slots not to join.
        except: Vec<u128>,
        /// Whether a thread renews it.
        in_thread: bool,
    },
}

impl Request {
    /// Opens the generator. Returns None only for [`Basis::Page`], where the host has no page to join. Blocks only
    /// for [`Basis::Recorded`]: for the disk, and for `recording.wait` while the slot is held.
    pub fn open(&self) -> Result<Option<Share>, Failure> {
        let Request { layout, datacenter_id, worker_id, opening, basis } = self;
        let share = match basis {
            Basis::Named => open(self.node()?, opening)?,
            Basis::Recorded(recording) if worker_id.is_some() => {
                open_recorded(self.node()?, opening, recording)?
            }
            Basis::Recorded(recording) => lease(*layout, *datacenter_id, opening, recording)?,
            Basis::Window { bounds, in_thread } => {
                open_leased(self.node()?, opening, *bounds, *in_thread)?
            }
            Basis::Thread => join_leased(self.node()?, opening)?,
            Basis::Grant { grant, in_thread } => {
                lease_on_host(self.node()?, opening, self.directory()?, grant, *in_thread)?
            }
            Basis::Page { namespace, owner, except, in_thread } => {
                let is_wanted =
                    |one| owner.is_none_or(|wanted| wanted == one) && !except.contains(&one);
                let directory = self.directory()?;
                return join_on_host(
                    layout,
                    *datacenter_id,
                    opening,
                    directory,
                    *namespace,
                    is_wanted,
                    *in_thread,
                );
            }
        };
        Ok(Some(share))
    }

    /// The requested node.
    pub fn node(&self) -> Result<Node, Fault> {
        Node::new(self.layout, self.datacenter_id, self.worker_id.unwrap_or_default())
    }

    /// The directory of the host's pages.
    pub fn directory(&self) -> Result<&Directory, Failure> {
        self.opening.host.as_ref().ok_or_else(|| fault!("no-shared-memory").into())
    }
}
