//! The source of an instance's IDs: a share in a generator, and what stands in front of it.

use std::ops::Deref;
use std::sync::Arc;

use super::request::Wanted;
use super::ring::RingShare;
use crate::core::clock::ManualClock;
use crate::core::fault::Fault;
use crate::core::listeners::Listener;
use crate::registry::{By, Share};
use crate::ring;

/// The source of a channel's IDs.
pub struct Source {
    pub share: Share,
    /// The ring in front of the generator.
    pub ring: Option<RingShare>,
    /// The clock that the application sets. Then the generator is this instance's alone.
    pub clock: Option<Arc<ManualClock>>,
}

impl Source {
    /// Opens the wanted source. None where there is no page to join, or no place for one that others of this machine
    /// could join. May block, if the node is recorded.
    pub fn open(wanted: &Wanted) -> Result<Option<Source>, Fault> {
        let Wanted { request, caching } = wanted;
        let Some(share) = request.open()? else { return Ok(None) };
        let clock = match &request.by {
            By::Clock(clock) => Some(clock.clone()),
            _ => None,
        };
        let ring = match caching.map(|caching| ring::open(&share, caching)) {
            // A ring of this process with other options: the caller needs a slot of its own.
            Some(Err(_)) if matches!(request.by, By::Host(_)) => return Ok(None),
            opened => opened.transpose()?.map(RingShare::new),
        };
        Ok(Some(Source { share, ring, clock }))
    }

    /// Calls the listener when scheduled padding finds the ring full, if there is a ring.
    pub fn on_rejected_put(&self, listener: &Arc<Listener>) {
        if let Some(ring) = &self.ring {
            ring.cached.rejected_put().add(listener);
        }
    }

    /// Whether to report a clock rollback.
    pub fn has_rollback_to_report(&self) -> bool {
        match &self.ring {
            Some(ring) => ring.cached.has_rollback_to_report(),
            None => self.share.has_rollback_to_report(),
        }
    }

    /// Takes back single IDs, in the order of their draws, that JavaScript has drawn and nobody has seen.
    pub fn take_back(&self, ids: &[u64]) {
        if let Some(ring) = &self.ring {
            return ring.keep(ids);
        }
        for block in ids.iter().rev().filter_map(|id| self.node().block_of(*id)) {
            self.give_back(&block, 1);
        }
    }
}

impl Deref for Source {
    type Target = Share;

    fn deref(&self) -> &Share {
        &self.share
    }
}
