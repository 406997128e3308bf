//! The tokens of a leased page: that of the newest record of its slot which any process has seen, and those of the writes
//! that its processes announce before they send them.
//!
//! A place for announced tokens belongs to the process that has locked its byte of the file. After its death another process
//! takes the place over, with a token in it whose write may still be applied.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::contents::PLACES;
use super::page::Page;
use super::processes::own_entry;
use crate::files::lock::{self, LockMode, USERS};

impl Page {
    /// Makes `to` the known token, unless `from` is it no more; 0 is none. Returns whether it did.
    pub fn advance_known(&self, from: u64, to: u64) -> bool {
        self.kept().known.compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }

    /// The tokens that processes have announced last, also dead ones.
    pub fn announced(&self) -> impl Iterator<Item = u64> {
        let announced = self.contents().announced.iter().map(|place| place.token.load(Acquire));
        announced.filter(|&token| token != 0)
    }

    /// Whether other living users have places: those who have joined its slot. As it may be, if the system does not tell.
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
            let mode = self.with_file(|file| lock::lock_of_others(file, byte_of(place)));
            mode.map_or(true, |mode| mode.is_some())
        })
    }
}

/// A place in a leased page for the tokens that one user announces.
pub struct Announcer {
    page: Arc<Page>,
    place: usize,
}

impl Announcer {
    /// A place that no living user has; none where they have all.
    pub fn new(page: &Arc<Page>) -> Option<Announcer> {
        let is_free = |&place: &usize| {
            let bit = 1 << place;
            if page.places.fetch_or(bit, AcqRel) & bit != 0 {
                return false;
            }
            let lock = |file: &File| lock::try_take(file, byte_of(place), LockMode::Exclusive);
            let is_own = page.path().is_none() || page.with_file(lock).unwrap_or(false);
            if !is_own {
                page.places.fetch_and(!bit, AcqRel);
            }
            is_own
        };
        let place = page.candidates().find(is_free)?;
        Some(Announcer { page: page.clone(), place })
    }

    /// Announces a token for a write over the record `before`. Returns the token to write: another one, where one for the same
    /// predecessor was announced here already.
    pub fn announce(&self, token: u64, before: u64) -> u64 {
        let own = &self.page.contents().announced[self.place];
        let left = own.token.load(Acquire);
        if left != 0 && own.before.load(Acquire) == before {
            return left;
        }
        // In this order: a process that dies in between has not sent this token, and another one may take its place.
        own.token.store(token, Release);
        own.before.store(before, Release);
        token
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        let Announcer { page, place } = self;
        let _ = page.with_file(|file| lock::release(file, byte_of(*place)));
        page.places.fetch_and(!(1 << *place), AcqRel);
    }
}

impl Page {
    /// The places that this process may take. Where files have no locks on single bytes, it has one, by its entry in the table.
    fn candidates(&self) -> Range<usize> {
        if cfg!(any(target_os = "linux", windows)) || self.path().is_none() {
            return 0..PLACES;
        }
        own_entry(&self.contents().processes).map_or(0..0, |entry| entry..entry + 1)
    }
}

/// The byte whose lock a place's owner has.
fn byte_of(place: usize) -> u64 {
    USERS + 1 + place as u64
}
