//! A ring of IDs that one padder fills ahead and any number of takers drain, without a lock.
//!
//! Positions count on for ever; the slot of a position is the position modulo the ring's size. Taken is
//! what lies below `cursor`, padded is what lies below `tail`:
//!
//! ```text
//!   cursor <= tail <= cursor + size
//! ```
//!
//! What lies between them rises from slot to slot. So a taker need only look at the two ends of a run to
//! know what is within: it reads them, and then moves the cursor past the run, if it still stands where
//! it was. Then what it read was not overwritten meanwhile: the padder writes to a slot only when the
//! cursor has passed what was in it, and a cursor never returns to where it was. And nobody else took
//! it: of two takers that saw the same cursor one moves it, the other reads anew. (UidGenerator moves
//! its cursor first and looks afterwards, with a flag a slot; two takers can get the last ID.)
//!
//! That there is one padder only is what `&mut` says. `tests/ring` has this very file model-checked,
//! and shows that the check fails where the cursor is not compared, or the order not kept.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A counter that does not share its cache line with another.
#[repr(align(128))]
struct Position(AtomicU64);

struct Slots {
    ids: Box<[AtomicU64]>,
    cursor: Position,
    tail: Position,
}

impl Slots {
    /// The ID at a position; or of another round, if the cursor has passed it meanwhile.
    fn read(&self, position: u64) -> u64 {
        self.ids[self.index(position)].load(Relaxed)
    }

    fn index(&self, position: u64) -> usize {
        // The length is a power of two.
        position as usize & (self.ids.len() - 1)
    }

    /// The first position of these whose ID is not one of those that `is_before`, which come first.
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

/// The side that fills it.
pub struct Padder {
    slots: Arc<Slots>,
    /// Where the cursor was when it was looked at last.
    cursor: u64,
    tail: u64,
    /// Above what is in the ring.
    least: u64,
}

/// What was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many IDs.
    pub count: usize,
    /// How many too old ones were passed over.
    pub dropped: u64,
    /// How many are left in the ring.
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
    /// How many IDs it holds when it is full.
    pub fn size(&self) -> u64 {
        self.0.ids.len() as u64
    }

    /// How many IDs it holds.
    pub fn len(&self) -> u64 {
        let cursor = self.0.cursor.0.load(Acquire);
        self.0.tail.0.load(Acquire).saturating_sub(cursor).min(self.size())
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes as many IDs as follow each other by one, up to as many as `ids` has room for. Those below
    /// `oldest` are dropped.
    pub fn take(&self, ids: &mut [u64], oldest: u64) -> Taken {
        let slots = &*self.0;
        let mut dropped = 0;
        loop {
            // In this order: no tail that is read after a cursor lies below it.
            let from = slots.cursor.0.load(Acquire);
            let end = slots.tail.0.load(Acquire);
            // Whatever is read until the cursor is moved counts only if it is moved from here.
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
    /// How many IDs there is room for.
    pub fn room(&mut self) -> u64 {
        self.cursor = self.slots.cursor.0.load(Acquire);
        self.slots.ids.len() as u64 - (self.tail - self.cursor)
    }

    /// Puts in IDs that follow each other by one, no more than the last [`Padder::room`] said. If they do
    /// not rise above what is in the ring, that is dropped before. Answers how many were.
    pub fn put(&mut self, first: u64, count: u64) -> u64 {
        let dropped = if first < self.least { self.clear() } else { 0 };
        assert!(self.tail + count - self.cursor <= self.slots.ids.len() as u64, "no room");
        // Up to the end of the memory, and then from its start.
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
        // Release: whoever sees this tail sees the IDs below it.
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
