//! One user's share in a node's generator.

use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use super::entry::{Entry, Held, Tenancy, Use};
use super::request::Request;
use crate::core::fault::Fault;
use crate::generator::{Caller, Generator};
use crate::pages::Page;

/// A share in a node's generator. Dropping it gives up the share; the last one releases what the process holds for the
/// generator.
pub struct Share {
    entry: Arc<Entry>,
    caller: Caller,
    has_left: bool,
    /// To warn of: other users of the machine who have the same node open, and slots skipped because their records are
    /// unusable.
    pub warnings: Vec<Fault>,
}

impl Entry {
    /// A share in a generator that begins.
    pub(super) fn begin(
        self: &Arc<Self>,
        tenancy: &mut Tenancy,
        request: &Request,
        (generator, held): (Arc<Generator>, Held),
    ) -> Share {
        // Above all ticks that the process issued alone, under a lease for example.
        generator.start_above(self.reached());
        let mut one = Use { generator, held, users: 0, second_users: None };
        let share = self.share(&mut one, request);
        // Mostly the only one.
        tenancy.uses.reserve_exact(1);
        tenancy.uses.push(one);
        share
    }

    /// A share in a generator in use.
    pub(super) fn share(self: &Arc<Self>, one: &mut Use, request: &Request) -> Share {
        one.users += 1;
        Share {
            entry: self.clone(),
            caller: Caller::new(one.generator.clone(), request.policies),
            has_left: false,
            warnings: one.second_users(),
        }
    }
}

impl Share {
    /// Another share in its generator; none once it has given up its own.
    pub(super) fn again(&self, request: &Request) -> Option<Share> {
        let mut tenancy = self.entry.tenancy.lock();
        let at = self.place(&tenancy)?;
        Some(self.entry.share(&mut tenancy.uses[at], request))
    }

    fn place(&self, tenancy: &Tenancy) -> Option<usize> {
        tenancy.uses.iter().position(|one| Arc::ptr_eq(&one.generator, &self.generator))
    }

    /// Gives up the share, or all of this process, which is ending. Returns whether no process uses the slot any more; with its page,
    /// if the host has one, locked so that nobody joins it.
    pub fn leave_last(mut self, is_exiting: bool) -> (bool, Option<Page>) {
        match self.give_up(is_exiting) {
            Some(Some(page)) => {
                let last = page.leave_last();
                (last.is_some(), last)
            }
            left => (left.is_some(), None),
        }
    }

    /// Gives up the share. None while others of this process have one that it keeps, or if this one was given up before; otherwise the
    /// page of a slot that the host has leased, if it is one.
    fn give_up(&mut self, is_exiting: bool) -> Option<Option<Arc<Page>>> {
        if mem::replace(&mut self.has_left, true) {
            return None;
        }
        let entry = &self.entry;
        let mut tenancy = entry.tenancy.lock();
        let at = self.place(&tenancy)?;
        let one = &mut tenancy.uses[at];
        one.users -= 1;
        if one.users > 0 && !is_exiting {
            return None;
        }
        let Use { generator, held, .. } = tenancy.uses.remove(at);
        entry.note_reached(generator.highest());
        let page = generator.page();
        match held {
            Held::Free => {}
            Held::Window => drop(generator.end_window()),
            Held::Page => return Some(Some(page)),
        }
        Some(None)
    }
}

impl Deref for Share {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Drop for Share {
    /// A leased page that has not ended stays, for the next process to join.
    fn drop(&mut self) {
        match self.give_up(false).flatten() {
            Some(page) if page.has_ended() => drop(page.leave()),
            Some(page) => page.retire(),
            None => {}
        }
    }
}
