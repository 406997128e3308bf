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

/// The source of a channel's IDs.
pub struct Source {
    pub share: Share,
    /// The ring in front of the generator.
    pub ring: Option<RingShare>,
    /// The clock that the application sets. Then the generator is this instance's alone.
    pub clock: Option<Arc<ManualClock>>,
}

impl Source {
    /// Opens the wanted source. None where there is no place for a page that others of this machine could join. May block, if
    /// the node is recorded.
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

    /// Calls the listener when scheduled padding finds the ring full, if there is a ring.
    pub fn on_rejected_put(&self, listener: &Arc<Listener>) {
        if let Some(ring) = &self.ring {
            ring.cached.rejected_put().add(listener);
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

/// A ring, and the IDs that this instance has taken from it and not handed out.
pub struct RingShare {
    /// The ring.
    pub cached: Arc<Cached>,
    /// Blocks are larger than a turn needs, and batches are refused as a whole. The IDs left over come next.
    kept: RefCell<VecDeque<u64>>,
}

impl RingShare {
    /// As [`Cached::take`].
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

    /// Takes back IDs that were not handed out.
    pub fn keep(&self, ids: &[u64]) {
        self.cached.note_kept(ids.len());
        let mut kept = self.kept.borrow_mut();
        ids.iter().rev().for_each(|id| kept.push_front(*id));
    }

    /// Fills an array: all of it or, if refused, nothing.
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
