//! This host as the protocol of leases sees it: [`crate::lease::Host`] over pages that the host's processes share.
//!
//! What the protocol relies on, and where it comes from:
//!
//! | promise | by |
//! |---|---|
//! | a node has one page; the next one begins above what earlier ones issued | [`Directory::pending`](crate::pages::Directory::pending), [`Page::open_lease`](crate::pages::Page::open_lease) |
//! | only one caller ends a page, and has its last tick | [`Page::end_lease`](crate::pages::Page::end_lease) |
//! | the last one to leave excludes who joins | [`Share::leave_last`](super::share::Share::leave_last), until the handle is left again or dropped |
//! | within this process, instances that name the node share its generator | [`Entry`](super::entry::Entry) |

use super::host_page::HostPage;
use super::host_pages::HostPages;
use crate::core::layout::Tick;
use crate::core::loss::Loss;
use crate::core::random::fresh;
use crate::core::sequencer::Window;
use crate::lease::{Host, Phase, Renewal, Tenure, Token, Word};

impl Host for HostPages {
    type Page = HostPage;

    fn random(&mut self) -> u64 {
        fresh()
    }

    /// A clone of this machine may choose the same. That is harmless: it draws other tokens.
    fn choose(&mut self, of: usize) -> usize {
        fastrand::usize(..of.max(1))
    }

    /// A failure to read them is noted, so that this host makes no page that it could have joined.
    fn pages(&mut self) -> Vec<HostPage> {
        self.find_pages().unwrap_or_else(|failure| {
            self.failure = Some(failure);
            Vec::new()
        })
    }

    /// Ends any leased page of the worker ID first, also an open one: the protocol only asks for this where its ceiling has
    /// passed, or where this store says that its line is free or has expired. An end is always safe.
    fn create(&mut self, tenure: Tenure, word: Word) -> Option<HostPage> {
        if self.failure.is_some() {
            // What has failed for one worker ID fails for the next.
            return None;
        }
        self.create_page(tenure, word).unwrap_or_else(|failure| {
            self.note(failure);
            None
        })
    }

    fn join(&mut self, page: &HostPage) -> bool {
        match self.share_of(page) {
            Ok(Some(share)) => {
                *page.0.share.lock() = Some(share);
                true
            }
            Ok(None) => false,
            Err(failure) => {
                // Not as a conflict: with another `maxAhead`, this process takes no second slot for the host.
                self.failure = Some(failure);
                false
            }
        }
    }

    /// The first call leaves it. Where nobody else uses it, others cannot join it before the next call, or before all handles of
    /// this lease are dropped: meanwhile its line is freed.
    fn leave(&mut self, page: &HostPage) -> bool {
        let Some(share) = page.0.share.lock().take() else {
            page.0.unlock_last();
            return false;
        };
        // Who looks for a slot meanwhile waits until this one is free. Economy only, so a failure is nothing.
        let lock = if self.lock.is_none() { self.take_lock().ok().flatten() } else { None };
        let (is_last, last) = share.leave_last(self.is_exiting);
        if is_last && self.lock.is_none() {
            self.lock = lock;
        }
        let has_ended = page.page().has_ended();
        *page.0.last.lock() = last;
        if has_ended {
            page.0.unlock_last();
        }
        is_last
    }

    fn tenure(&self, page: &HostPage) -> Tenure {
        let leasing = page.page().lease_status();
        let (namespace, owner) = leasing.map_or((0, 0), |one| (one.namespace, one.owner));
        let worker = page.page().header().node.worker_id();
        Tenure { namespace: Token(namespace), owner: Token(owner), worker }
    }

    fn phase(&self, page: &HostPage) -> Phase {
        let page = page.page();
        if page.has_ended() || !page.is_current() {
            Phase::Ended
        } else if page.sequence().is_closed() {
            Phase::Pending
        } else {
            Phase::Open
        }
    }

    /// What it was, also once it has ended.
    fn window(&self, page: &HostPage) -> Window {
        let (page, sequence) = (page.page(), page.page().sequence());
        match sequence.has_had_window() {
            // The ceiling first: its floor rises before it.
            true => {
                let ceiling = page.cells().ceiling();
                Window { floor: sequence.floor(), ceiling }
            }
            false => Window::CLOSED,
        }
    }

    fn word(&self, page: &HostPage) -> Word {
        Word::of_bits(page.page().lease_word())
    }

    fn swap(&mut self, page: &HostPage, from: Word, to: Word) -> bool {
        page.page().swap_lease_word(from.bits(), to.bits())
    }

    fn renewal(&self, page: &HostPage) -> Renewal {
        page.page().lease_status().map_or(Renewal::default(), |leasing| Renewal {
            at: leasing.renewed_ms,
            expires: leasing.expires_ms.unwrap_or_default(),
            ttl: leasing.ttl_ms,
        })
    }

    /// A take is counted as no renewal.
    fn renew(&mut self, page: &HostPage, Renewal { at, expires, ttl }: Renewal) {
        let notes = page.page().notes();
        match page.page().sequence().is_closed() {
            true => notes.set_renewed(at, Some(expires), ttl),
            false => notes.note_renewal(at, Some(expires), ttl),
        }
    }

    fn open(&mut self, page: &HostPage, window: Window) {
        let Some(generator) = page.generator() else { return };
        // What was in the way of other nodes is no reason of anything any more.
        (self.failure, self.conflict) = (None, None);
        page.page().open_lease(window, generator.tick_now());
        if page.page().sequence().is_closed() {
            // The layout has no tick left, or another process has ended it. Without a reason, so that the first one to leave it
            // frees the line.
            page.page().end();
        }
        generator.note_first_tick();
    }

    /// A page has one window in its life, so a late raise is of this one.
    fn raise(&mut self, page: &HostPage, ceiling: Tick) {
        if let Some(generator) = page.generator() {
            generator.raise_ceiling(ceiling);
        }
    }

    fn end(&mut self, page: &HostPage, loss: Loss) -> Option<Tick> {
        page.page().end_lease(loss)
    }

    fn loss(&self, page: &HostPage) -> Loss {
        HostPages::loss_of(page.page())
    }

    /// Without a directory there is nothing to share, and so nothing to lock. Where the lock fails, the take fails, too:
    /// [`Host::create`] makes no page.
    fn lock(&mut self) -> bool {
        if self.directory.is_none() || self.is_broken || self.lock.is_some() {
            return true;
        }
        self.failure = None;
        match self.take_lock() {
            Ok(lock) => self.lock = lock,
            Err(failure) => {
                self.failure = Some(failure);
                return true;
            }
        }
        self.lock.is_some()
    }

    /// The system's lock cannot be taken away. So this process goes on without it, once.
    fn break_lock(&mut self) {
        self.is_broken = true;
    }

    fn unlock(&mut self) {
        (self.lock, self.is_broken) = (None, false);
        self.seen.clear();
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", not(miri)))]
mod tests;
