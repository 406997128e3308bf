//! A lock-free ring of IDs. One padder puts IDs in ahead of demand, and any number of takers take them out.
//!
//! Positions only rise. The element of a position has the index position modulo size. IDs below `cursor` are taken, IDs
//! below `tail` are padded:
//!
//! ```text
//!   cursor <= tail <= cursor + size
//! ```
//!
//! The IDs between them rise, so a taker knows a run of consecutive IDs by its first and last one. It reads these two,
//! then moves the cursor past the run by a compare-and-swap. If the swap succeeds, the padder has overwritten nothing
//! that the taker read: it writes an element only after the cursor has passed it, and a cursor never returns to an
//! earlier position. And no other taker has taken the run: of two takers that saw the same cursor, one moves it and the
//! other reads again. (UidGenerator moves its cursor first and checks afterwards, with a flag per element; two takers
//! can get the last ID.)
//!
//! `&mut` ensures that there is only one padder. `tests/loom` model-checks this file, and shows that the check fails
//! without the comparison of the cursor or without the memory order.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A counter on a cache line of its own.
#[repr(align(128))]
struct Position(AtomicU64);

struct Buffer {
    ids: Box<[AtomicU64]>,
    cursor: Position,
    tail: Position,
}

impl Buffer {
    /// The ID at a position. If the cursor has passed the position, the ID may be of a later round.
    fn read(&self, position: u64) -> u64 {
        self.ids[self.index(position)].load(Relaxed)
    }

    fn index(&self, position: u64) -> usize {
        // The size is a power of two.
        position as usize & (self.ids.len() - 1)
    }

    /// The first position in the range for which `is_before` is false. It must be true for all positions before that
    /// one.
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
        // Release: this thread's earlier reads happen before the padder's next writes to these elements.
        self.cursor.0.compare_exchange(from, to, Release, Relaxed).is_ok()
    }
}

/// The takers' side.
#[derive(Clone)]
pub struct Ring(Arc<Buffer>);

/// The padder's side.
pub struct Padder {
    buffer: Arc<Buffer>,
    /// The cursor when it was last read.
    cursor: u64,
    tail: u64,
    /// The next ID must be at least this, to be above all IDs in the ring.
    least: u64,
}

/// The result of a take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of IDs taken.
    pub count: usize,
    /// The number of IDs dropped because they were too old.
    pub dropped: u64,
    /// The number of IDs left in the ring.
    pub left: u64,
}

/// A ring for `size` IDs, a power of two, and its only padder.
pub fn ring(size: usize) -> (Padder, Ring) {
    assert!(size.is_power_of_two(), "{size} IDs");
    let buffer = Arc::new(Buffer {
        ids: (0..size).map(|_| AtomicU64::new(0)).collect(),
        cursor: Position(AtomicU64::new(0)),
        tail: Position(AtomicU64::new(0)),
    });
    (Padder { buffer: buffer.clone(), cursor: 0, tail: 0, least: 0 }, Ring(buffer))
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

    /// Takes consecutive IDs, at most as many as `ids` has room for. Drops IDs below `oldest`.
    pub fn take(&self, ids: &mut [u64], oldest: u64) -> Taken {
        let buffer = &*self.0;
        let mut dropped = 0;
        loop {
            // In this order: a tail that is read after a cursor is never below it.
            let from = buffer.cursor.0.load(Acquire);
            let end = buffer.tail.0.load(Acquire);
            // What this reads until `advance` is valid only if the cursor is still `from` then.
            if from < end && buffer.read(from) < oldest {
                let to = buffer.partition(from + 1..end, |_, id| id < oldest);
                if buffer.advance(from, to) {
                    dropped += to - from;
                }
                continue;
            }
            let most = (end - from).min(ids.len() as u64);
            if most == 0 {
                return Taken { count: 0, dropped, left: end - from };
            }
            let first = buffer.read(from);
            let follows = |position, id: u64| id.wrapping_sub(first) == position - from;
            let to = if follows(from + most - 1, buffer.read(from + most - 1)) {
                from + most
            } else {
                buffer.partition(from + 1..from + most, follows)
            };
            if buffer.advance(from, to) {
                let count = (to - from) as usize;
                for (element, id) in ids[..count].iter_mut().zip(first..) {
                    *element = id;
                }
                return Taken { count, dropped, left: end - to };
            }
        }
    }
}

impl Padder {
    /// The number of IDs that the ring has room for.
    pub fn room(&mut self) -> u64 {
        self.cursor = self.buffer.cursor.0.load(Acquire);
        self.buffer.ids.len() as u64 - (self.tail - self.cursor)
    }

    /// Puts in consecutive IDs, at most as many as the last [`Padder::room`]. If they are not above all IDs in the
    /// ring, clears the ring first. Returns the number of dropped IDs.
    pub fn put(&mut self, first: u64, count: u64) -> u64 {
        let dropped = if first < self.least { self.clear() } else { 0 };
        assert!(self.tail + count - self.cursor <= self.buffer.ids.len() as u64, "no room");
        // First up to the end of the array, then from its start.
        let (before, after) = self.buffer.ids.split_at(self.buffer.index(self.tail));
        let until_end = count.min(after.len() as u64);
        for (element, id) in after.iter().zip(first..first + until_end) {
            element.store(id, Relaxed);
        }
        for (element, id) in before.iter().zip(first + until_end..first + count) {
            element.store(id, Relaxed);
        }
        self.least = first + count;
        self.tail += count;
        // Release: a thread that sees this tail sees the IDs below it.
        self.buffer.tail.0.store(self.tail, Release);
        dropped
    }

    fn clear(&mut self) -> u64 {
        loop {
            let from = self.buffer.cursor.0.load(Acquire);
            if self.buffer.advance(from, self.tail) {
                self.cursor = self.tail;
                return self.tail - from;
            }
        }
    }
}
