//! A ring of IDs that one padder fills ahead and any number of takers drain, without a lock.
//!
//! Positions count up for ever. The slot of a position is the position modulo the ring's size. IDs below `cursor` are
//! taken, IDs below `tail` are padded:
//!
//! ```text
//!   cursor <= tail <= cursor + size
//! ```
//!
//! The IDs between them rise from slot to slot. So a taker reads only the two ends of a run to know all of it. It
//! reads them, and then moves the cursor past the run, if the cursor has not moved. In that case nothing it read was
//! overwritten meanwhile: the padder writes to a slot only when the cursor has passed its ID, and a cursor never
//! returns to an earlier position. Nor has another taker taken the run: of two takers that saw the same cursor, one
//! moves it and the other reads anew. (UidGenerator moves its cursor first and checks afterwards, with a flag per
//! slot; two takers can get the last ID.)
//!
//! `&mut` ensures that there is one padder only. `tests/loom` model-checks this very file, and shows that the check
//! fails without the comparison of the cursor or without the memory order.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A counter on a cache line of its own.
#[repr(align(128))]
struct Position(AtomicU64);

struct Slots {
    ids: Box<[AtomicU64]>,
    cursor: Position,
    tail: Position,
}

impl Slots {
    /// The ID at a position, or of another round if the cursor has passed the position meanwhile.
    fn read(&self, position: u64) -> u64 {
        self.ids[self.index(position)].load(Relaxed)
    }

    fn index(&self, position: u64) -> usize {
        // The length is a power of two.
        position as usize & (self.ids.len() - 1)
    }

    /// The first position in the range whose ID is not one of those that `is_before`. Those come first.
    fn partition(&self, range: Range<u64>, is_before: impl Fn(u64, u64) -> bool) -> u64 {
        let Range { mut start, mut end } = range;
        while start < end {
            let middle = start + (end - start) / 2;
            if is_before(middle, self.read(middle)) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    fn advance(&self, from: u64, to: u64) -> bool {
        // Release: the reads before it come before the padder's next writes to these slots.
        self.cursor.0.compare_exchange(from, to, Release, Relaxed).is_ok()
    }
}

/// The takers' side.
#[derive(Clone)]
pub struct Ring(Arc<Slots>);

/// The padder's side.
pub struct Padder {
    slots: Arc<Slots>,
    /// The cursor when it was last read.
    cursor: u64,
    tail: u64,
    /// Above all IDs in the ring.
    least: u64,
}

/// The result of a take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of IDs taken.
    pub count: usize,
    /// The number of too old IDs dropped.
    pub dropped: u64,
    /// The number of IDs left in the ring.
    pub left: u64,
}

/// A ring of `size` slots, a power of two, and its only padder.
pub fn ring(size: usize) -> (Padder, Ring) {
    assert!(size.is_power_of_two(), "{size} slots");
    let slots = Arc::new(Slots {
        ids: (0..size).map(|_| AtomicU64::new(0)).collect(),
        cursor: Position(AtomicU64::new(0)),
        tail: Position(AtomicU64::new(0)),
    });
    (Padder { slots: slots.clone(), cursor: 0, tail: 0, least: 0 }, Ring(slots))
}

impl Ring {
    /// The capacity of the ring in IDs.
    pub fn size(&self) -> u64 {
        self.0.ids.len() as u64
    }

    /// The number of IDs in the ring.
    pub fn len(&self) -> u64 {
        let cursor = self.0.cursor.0.load(Acquire);
        self.0.tail.0.load(Acquire).saturating_sub(cursor).min(self.size())
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes consecutive IDs, up to as many as `ids` has room for. Drops those below `oldest`.
    pub fn take(&self, ids: &mut [u64], oldest: u64) -> Taken {
        let slots = &*self.0;
        let mut dropped = 0;
        loop {
            // In this order: a tail read after a cursor never lies below it.
            let from = slots.cursor.0.load(Acquire);
            let end = slots.tail.0.load(Acquire);
            // Reads until the cursor moves count only if it moves from here.
            if from < end && slots.read(from) < oldest {
                let to = slots.partition(from + 1..end, |_, id| id < oldest);
                if slots.advance(from, to) {
                    dropped += to - from;
                }
                continue;
            }
            let most = (end - from).min(ids.len() as u64);
            if most == 0 {
                return Taken { count: 0, dropped, left: end - from };
            }
            let first = slots.read(from);
            let follows = |position, id: u64| id.wrapping_sub(first) == position - from;
            let to = if follows(from + most - 1, slots.read(from + most - 1)) {
                from + most
            } else {
                slots.partition(from + 1..from + most, follows)
            };
            if slots.advance(from, to) {
                let count = (to - from) as usize;
                for (slot, id) in ids[..count].iter_mut().zip(first..) {
                    *slot = id;
                }
                return Taken { count, dropped, left: end - to };
            }
        }
    }
}

impl Padder {
    /// The number of IDs for which there is room.
    pub fn room(&mut self) -> u64 {
        self.cursor = self.slots.cursor.0.load(Acquire);
        self.slots.ids.len() as u64 - (self.tail - self.cursor)
    }

    /// Puts in consecutive IDs, no more than the last [`Padder::room`]. If they do not rise above those in the ring,
    /// clears the ring first. Returns how many were dropped.
    pub fn put(&mut self, first: u64, count: u64) -> u64 {
        let dropped = if first < self.least { self.clear() } else { 0 };
        assert!(self.tail + count - self.cursor <= self.slots.ids.len() as u64, "no room");
        // Up to the end of the memory, then from its start.
        let (before, after) = self.slots.ids.split_at(self.slots.index(self.tail));
        let until_end = count.min(after.len() as u64);
        for (slot, id) in after.iter().zip(first..first + until_end) {
            slot.store(id, Relaxed);
        }
        for (slot, id) in before.iter().zip(first + until_end..first + count) {
            slot.store(id, Relaxed);
        }
        self.least = first + count;
        self.tail += count;
        // Release: a thread that sees this tail sees the IDs below it.
        self.slots.tail.0.store(self.tail, Release);
        dropped
    }

    fn clear(&mut self) -> u64 {
        loop {
            let from = self.slots.cursor.0.load(Acquire);
            if self.slots.advance(from, self.tail) {
                self.cursor = self.tail;
                return self.tail - from;
            }
        }
    }
}
