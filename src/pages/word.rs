//! The lease word of a leased page: the known token and the pending one, 32 bits each, in one atomic. Pages only keep it;
//! `register_lease` says what it means. And the suspend of a page, which notes the word.

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

    /// The lease word at the last suspend; 0 if there was none. Tokens that it has may be a clone's, too.
    pub fn suspended_word(&self) -> u64 {
        self.notes().suspended_word.load(Acquire)
    }

    /// Issues nothing until the ceiling is raised. Notes the lease word before the window changes: who reads the number of
    /// the new window, and then the noted word, reads this one.
    pub fn suspend(&self) {
        self.notes().suspended_word.store(self.lease_word(), Release);
        // An overwritten page issues nothing. A change of its word would make it possible.
        if self.is_possible() {
            self.sequence().suspend();
        }
    }
}
