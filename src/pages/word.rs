//! The lease word of a leased page: the known token and the pending one, 32 bits each, in one atomic. Pages only keep it;
//! `lease` says what it means.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::page::Page;

impl Page {
    /// The lease word.
    pub fn lease_word(&self) -> u64 {
        self.notes().lease_word.load(Acquire)
    }

    /// Sets the lease word of a page that is still pending.
    pub fn set_lease_word(&self, word: u64) {
        self.notes().lease_word.store(word, Release);
    }

    /// Replaces the lease word, if it is still `from`. Returns whether it did.
    pub fn swap_lease_word(&self, from: u64, to: u64) -> bool {
        self.notes().lease_word.compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }
}
