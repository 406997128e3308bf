//! The tokens of a leased page: the known token, of the newest record of the slot that any process has seen, and the
//! tokens that processes announce before they write them to the store.
//!
//! A place for an announced token belongs to the process that has locked its byte of the file. After that process dies,
//! another process takes over the place, with the token in it: the store may still apply its write.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::contents::PLACES;
use super::page::Page;
use super::processes::own_entry;
use crate::files::lock::{self, LockMode, USERS};

impl Page {
    /// Replaces the known token `from` by `to`; 0 for none. Returns false if `from` is not the known token any more.
    pub fn advance_known(&self, from: u64, to: u64) -> bool {
        self.notes().known.compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }

    /// The last announced token of each process, dead ones included.
    pub fn announced(&self) -> impl Iterator<Item = u64> {
        let announced = self.contents().announced.iter().map(|place| place.token.load(Acquire));
        announced.filter(|&token| token != 0)
    }

    /// Whether other living users of the slot have places. If the system does not report it, whether there may be any.
    pub fn has_other_places(&self, own: Option<&Announcer>) -> bool {
        let here = self.places.load(Acquire);
        if here & !own.map_or(0, |own| 1 << own.place) != 0 {
            return true;
        }
        if !cfg!(any(target_os = "linux", windows)) {
            return self.is_used().unwrap_or(true);
        }
        let mut elsewhere = (0..PLACES).filter(|place| here & 1 << place == 0);
        elsewhere.any(|place| {
            let mode = self.with_file(|file| lock::lock_of_others(file, byte_of_place(place)));
            mode.map_or(true, |mode| mode.is_some())
        })
    }
}

/// One user's place in a leased page for announced tokens.
pub struct Announcer {
    page: Arc<Page>,
    place: usize,
}

impl Announcer {
    /// Takes a place that no living user has; `None` if there is none.
    pub fn new(page: &Arc<Page>) -> Option<Announcer> {
        let is_free = |&place: &usize| {
            let bit = 1 << place;
            if page.places.fetch_or(bit, AcqRel) & bit != 0 {
                return false;
            }
            let lock =
                |file: &File| lock::try_take(file, byte_of_place(place), LockMode::Exclusive);
            let is_own = page.path().is_none() || page.with_file(lock).unwrap_or(false);
            if !is_own {
                page.places.fetch_and(!bit, AcqRel);
            }
            is_own
        };
        let place = page.candidates().find(is_free)?;
        Some(Announcer { page: page.clone(), place })
    }

    /// Announces a token for a write that replaces the record `before`. Returns the token to write: the earlier one, if
    /// this place has announced one for the same record already.
    pub fn announce(&self, token: u64, before: u64) -> u64 {
        let own = &self.page.contents().announced[self.place];
        let left = own.token.load(Acquire);
        if left != 0 && own.before.load(Acquire) == before {
            return left;
        }
        // In this order: a process that dies between the two stores has not sent this token, and another process may
        // take over the place.
        own.token.store(token, Release);
        own.before.store(before, Release);
        token
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        let Announcer { page, place } = self;
        let _ = page.with_file(|file| lock::release(file, byte_of_place(*place)));
        page.places.fetch_and(!(1 << *place), AcqRel);
    }
}

impl Page {
    /// The places that this process may take. On systems without locks on single bytes, only the one with the index of
    /// its entry in the table of processes.
    fn candidates(&self) -> Range<usize> {
        if cfg!(any(target_os = "linux", windows)) || self.path().is_none() {
            return 0..PLACES;
        }
        own_entry(&self.contents().processes).map_or(0..0, |entry| entry..entry + 1)
    }
}

/// The byte that the owner of a place locks.
fn byte_of_place(place: usize) -> u64 {
    USERS + 1 + place as u64
}
