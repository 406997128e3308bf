//! The ring of a node as one JavaScript instance draws from it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::generator::{Refusal, Waits};
use crate::ring::Cached;

/// A ring, and the IDs that this instance has taken from it and not handed out.
pub struct RingShare {
    /// The ring.
    pub cached: Arc<Cached>,
    /// Blocks are larger than a turn needs, and batches are refused as a whole. The IDs left over come next.
    kept: RefCell<VecDeque<u64>>,
}

impl RingShare {
    /// A ring with nothing taken yet.
    pub fn new(cached: Arc<Cached>) -> RingShare {
        RingShare { cached, kept: RefCell::default() }
    }

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
