//! Loom's atomics, explored in full.
//!
//! Loom tries another order of two operations only where they are to the same object and one of them
//! writes; and of each object it knows the last operation only. Where a thread reads a cursor and then
//! moves it, its own read is that last operation, and an earlier read of another thread is never tried
//! after the move: of the ring 18 interleavings were left. So each operation here first touches a
//! companion, by which any two operations on one object depend on each other. Being relaxed, that
//! orders nothing else.
//!
//! Two faults can be planted: `COMPARED` false moves a cursor without a look whether it still stands where
//! it was, and `ORDERED` false says nothing about the order of reads and writes.

use loom::sync::atomic::Ordering::{self, Relaxed};

#[derive(Default)]
pub struct AtomicU64<const COMPARED: bool, const ORDERED: bool> {
    value: loom::sync::atomic::AtomicU64,
    companion: loom::sync::atomic::AtomicU64,
}

impl<const COMPARED: bool, const ORDERED: bool> AtomicU64<COMPARED, ORDERED> {
    pub fn new(value: u64) -> Self {
        AtomicU64 {
            value: loom::sync::atomic::AtomicU64::new(value),
            companion: loom::sync::atomic::AtomicU64::new(0),
        }
    }

    fn explored(&self) -> &loom::sync::atomic::AtomicU64 {
        self.companion.fetch_add(1, Relaxed);
        &self.value
    }

    pub fn load(&self, order: Ordering) -> u64 {
        self.explored().load(kept(ORDERED, order))
    }

    pub fn store(&self, value: u64, order: Ordering) {
        self.explored().store(value, kept(ORDERED, order));
    }

    pub fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        self.explored().fetch_max(value, kept(ORDERED, order))
    }

    pub fn compare_exchange(
        &self,
        from: u64,
        to: u64,
        order: Ordering,
        otherwise: Ordering,
    ) -> Result<u64, u64> {
        let (order, otherwise) = (kept(ORDERED, order), kept(ORDERED, otherwise));
        if COMPARED {
            return self.explored().compare_exchange(from, to, order, otherwise);
        }
        self.explored().store(to, order);
        Ok(from)
    }
}

fn kept(ordered: bool, order: Ordering) -> Ordering {
    if ordered { order } else { Relaxed }
}
