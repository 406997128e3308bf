//! The source of an instance's IDs: a share in a generator, and the ring in front of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use super::request::Wanted;
use crate::core::clock::ManualClock;
use crate::core::fault::Fault;
use crate::core::listeners::Listener;
use crate::generator::{Refusal, Waits};
use crate::registry::{By, Share};
use crate::ring::{self, Cached};

/// The source of one instance's IDs.
pub struct Source {
    pub share: Share,
    /// The ring in front of the generator, if there is one.
    pub ring: Option<RingShare>,
    /// The application's clock, if there is one. Then no other instance uses the generator.
    pub clock: Option<Arc<ManualClock>>,
}

impl Source {
    /// Opens the wanted source. `None` if the host has no directory for pages that other processes could join. May
    /// block if the node is recorded.
    pub fn open(wanted: &Wanted) -> Result<Option<Source>, Fault> {
        let Wanted { request, slot, caching } = wanted;
        let share = match slot {
            Some(slot) => slot.share(request),
            None => request.open()?,
        };
        let Some(share) = share else { return Ok(None) };
        let clock = match &request.by {
            By::Clock(clock) => Some(clock.clone()),
            _ => None,
        };
        let cached = caching.map(|caching| ring::open(&share, caching)).transpose()?;
        let ring = cached.map(|cached| RingShare { cached, kept: RefCell::default() });
        Ok(Some(Source { share, ring, clock }))
    }

    /// Adds a listener for scheduled paddings that find the ring full. Does nothing without a ring.
    pub fn on_rejected_put(&self, listener: &Arc<Listener>) {
        if let Some(ring) = &self.ring {
            ring.cached.rejected_put().add(listener);
        }
    }

    /// Takes back single IDs that JavaScript has drawn but not handed out, in the order of their draws.
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

/// A ring, and the IDs that this instance has taken from it, but not handed out.
pub struct RingShare {
    /// The ring.
    pub cached: Arc<Cached>,
    /// IDs left over from blocks and from refused batches. The instance hands them out next.
    kept: RefCell<VecDeque<u64>>,
}

impl RingShare {
    /// Like [`Cached::take`], but takes the kept IDs first.
    pub fn take(&self, ids: &mut [u64], waits: Option<&mut Waits>) -> Result<usize, Refusal> {
        match self.take_kept(ids) {
            0 => self.cached.take(ids, waits),
            count => Ok(count),
        }
    }

    fn take_kept(&self, ids: &mut [u64]) -> usize {
        let mut kept = self.kept.borrow_mut();
        if kept.is_empty() {
            return 0;
        }
        let oldest = self.cached.oldest();
        let mut dropped = 0;
        while kept.front().is_some_and(|id| *id < oldest) {
            kept.pop_front();
            dropped += 1;
        }
        let mut count = 0;
        while count < ids.len()
            && let Some(&id) = kept.front()
            && (count == 0 || id == ids[count - 1] + 1)
        {
            ids[count] = id;
            count += 1;
            kept.pop_front();
        }
        self.cached.note_kept_no_more(count, dropped);
        count
    }

    /// Keeps IDs that were not handed out.
    pub fn keep(&self, ids: &[u64]) {
        self.cached.note_kept(ids.len());
        let mut kept = self.kept.borrow_mut();
        ids.iter().rev().for_each(|id| kept.push_front(*id));
    }

    /// Fills an array. After a refusal it keeps all IDs, and the array's contents are invalid.
    pub fn fill(&self, ids: &mut [u64], mut waits: Option<&mut Waits>) -> Result<(), Refusal> {
        let mut filled = 0;
        while filled < ids.len() {
            match self.take(&mut ids[filled..], waits.as_deref_mut()) {
                Ok(count) => filled += count,
                Err(refusal) => {
                    self.keep(&ids[..filled]);
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }
}
