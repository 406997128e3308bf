//! The source of an instance's IDs: a share in a generator, and the ring in front of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::request::Wanted;
use crate::core::clock::{Clock, ManualClock, SystemClock};
use crate::core::fault::{Fault, fault};
use crate::core::listeners::Listener;
use crate::generator::{Stalled, Waits};
use crate::registry::{By, DirectoryLease, DirectoryLeasing, Share};
use crate::ring::{self, Cached};

/// The source of one instance's IDs.
pub struct Source {
    pub share: Share,
    /// The ring in front of the generator, if there is one.
    pub ring: Option<RingShare>,
    /// The application's clock, if there is one. Then no other instance uses the generator.
    pub clock: Option<Arc<ManualClock>>,
    /// The lease of the share's slot, if it is from a directory. Dropped after the share, since the last one frees the slot.
    pub lease: Option<Arc<DirectoryLease>>,
}

impl Source {
    /// Opens the wanted source. `None` if the host has no directory for pages that other processes could join.
    pub fn open(wanted: &Wanted) -> Result<Option<Source>, Fault> {
        let Wanted { request, slot, .. } = wanted;
        let share = match slot {
            Some(slot) => slot.share(request),
            None => request.open()?,
        };
        share.map(|share| Source::of(wanted, share, None)).transpose()
    }

    /// Leases a slot from a directory. Blocks for the disk, for as long as others may hold the slots, and for this long until the
    /// clock has passed the slot's floor, if it does by then.
    pub fn lease(
        wanted: &Wanted,
        leasing: &DirectoryLeasing,
        at_most: Duration,
    ) -> Result<Source, Fault> {
        let is_usable = ring::usable(wanted.caching);
        let lease = DirectoryLease::open(&wanted.request, leasing, is_usable)?;
        let mut source = Source::of_lease(wanted, &lease)?;
        source.share.warnings.extend(lease.state().skipped);
        source.await_floor(at_most);
        Ok(source)
    }

    /// The source in the present slot of a lease from a directory.
    pub fn of_lease(wanted: &Wanted, lease: &Arc<DirectoryLease>) -> Result<Source, Fault> {
        let share = lease.state().slot.and_then(|slot| slot.share(&wanted.request));
        let share = share.ok_or_else(|| fault!("slot-left"))?;
        Source::of(wanted, share, Some(lease.clone()))
    }

    fn of(
        wanted: &Wanted,
        share: Share,
        lease: Option<Arc<DirectoryLease>>,
    ) -> Result<Source, Fault> {
        let clock = match &wanted.request.by {
            By::Clock(clock) => Some(clock.clone()),
            _ => None,
        };
        let cached = wanted.caching.map(|caching| ring::open_ring(&share, caching)).transpose()?;
        let ring = cached.map(|cached| RingShare { cached, kept: RefCell::default() });
        Ok(Source { share, ring, clock, lease })
    }

    /// Waits this long for the floor, unless each call waits for it: one that is just ahead, as after a close, delays no opening.
    fn await_floor(&self, at_most: Duration) {
        let begun = Instant::now();
        let of_calls = if self.ring.is_none() { self.policies.max_wait } else { Duration::ZERO };
        let first = self.node().layout().tick_end_ms(self.window().floor) + 1;
        loop {
            let left = first - self.max_ahead_ms() - SystemClock.now().ms;
            let left = Duration::from_millis(left.max(0) as u64);
            if left <= of_calls || begun.elapsed() + left > at_most {
                return;
            }
            thread::sleep(left);
        }
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
    pub fn take(&self, ids: &mut [u64], waits: Option<&mut Waits>) -> Result<usize, Stalled> {
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
    pub fn fill(&self, ids: &mut [u64], mut waits: Option<&mut Waits>) -> Result<(), Stalled> {
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
