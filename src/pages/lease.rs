//! A leased page: a slot of a store that all processes of this host share. A page is one slot for ever. After a loss or
//! release its word is closed, and another slot needs another page.
//!
//! Floor and ceiling are those of the cells. The store confirms them before a process writes them. So no other host
//! issues the page's IDs, whatever happens to the page. After a deletion, another page of the node may follow on this
//! host. So its processes stop then, like those of every page, and lease another slot.
//!
//! A killed host leaves its page. The next process of the same boot joins it: the page records all issued IDs, and the
//! store grants the slot to nobody below the ceiling.

use std::thread;

use super::contents::{Grant, Loss};
use super::directory::Directory;
use super::header::{Authority, Terms};
use super::life::CHANGE;
use super::page::Page;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, Window};
use crate::files::lock::Hold;

/// Maximum waits for a process that replaces or removes a page. That process may be stopped.
const CHANGES: usize = 5;

impl Page {
    /// Ends a leased page. The first reason stays, except that `Reverted` replaces `Taken`. Returns the highest tick that
    /// the store has to record, to the caller that ends it: what was issued, and the floor that the store has confirmed.
    /// None if something overwrote the page, so that the store keeps its ceiling.
    pub fn end_lease(&self, loss: Loss) -> Option<Tick> {
        // Before the end: a process that finds the page ended can read the reason.
        let is_first = self.kept().note_loss(loss);
        let highest = self.end()?.max(self.sequence().floor());
        is_first.then_some(highest)
    }

    /// Stops using the page. Ends and removes it if no process of the host uses it any more. Returns the highest issued
    /// tick to the caller that ends it.
    ///
    /// Two processes that leave at once must not leave it to each other. A process that cannot lock the page
    /// exclusively releases its lock first, then tries once more.
    pub fn leave(&self) -> Option<Tick> {
        if self.try_alone().unwrap_or(false) {
            return self.end_and_remove();
        }
        self.retire();
        let again = Page::alone(self.path()?, self.header().uid).ok()??;
        if again.id() == self.id() { again.end_and_remove() } else { None }
    }

    /// Requires [`Page::try_alone`]. If the name is another page's at the removal, that page's processes notice.
    fn end_and_remove(&self) -> Option<Tick> {
        let highest = self.end_lease(Loss::Released);
        if self.header().node.layout().tick_ms == 1 {
            // The last issued tick may be the current ms: wait until it is over.
            thread::sleep(CHANGE);
        }
        self.remove_if_past();
        highest
    }

    /// Removes an ended and unused page once the clock has passed all its IDs. Until then it records the issued IDs for
    /// a process that opens the node without this lease. A later call retries after a failure.
    fn remove_if_past(&self) {
        let layout = self.header().node.layout();
        let now = || layout.tick_at(SystemClock.now().ms);
        if self.header().terms.authority.is_lease()
            && self.has_ended()
            && self.sequence().highest() < now()
            && self.try_alone().unwrap_or(false)
        {
            let _ = self.remove_with_marker();
        }
    }

    /// Uses the page if it has its name and has not ended. Waits for a process that replaces or removes it.
    fn start_using(&mut self) -> Result<bool, Failure> {
        for _ in 0..CHANGES {
            if self.lock(Hold::Shared)? {
                // The page may have ended before the lock.
                let is_usable = !self.sequence().is_closed() && self.is_named()?;
                if is_usable {
                    self.enter();
                }
                return Ok(is_usable);
            }
            thread::sleep(CHANGE);
        }
        Ok(false)
    }
}

impl Directory {
    /// Creates the page of a slot that this host just acquired. Replaces an ended or unused page; a page in use is an
    /// error. Its window is what the store has confirmed, above the ticks of earlier pages of the node.
    pub fn lease(&self, node: &Node, max_ahead: Tick, grant: &Grant) -> Result<Page, Failure> {
        let authority = Authority::Lease { owner: grant.owner };
        let page = self.obtain(node, Terms { max_ahead, authority })?;
        page.kept().begin_lease(grant);
        let sequence = page.sequence();
        if let Some(closed) = sequence.closed() {
            let floor = grant.floor.max(sequence.before());
            // Fails if the layout has no tick left. Then the page stays closed.
            let bounds = Window { floor, ceiling: grant.ceiling };
            let _ = sequence.reopen(&closed, bounds, &HighMarks::default());
        }
        if !page.is_current() {
            // It was replaced meanwhile.
            page.end();
            return Err(Failure::new(Class::Page, fault!("page-replaced", place: page.path())));
        }
        Ok(page)
    }

    /// Joins the host's slot of a namespace, if it has one of a wanted owner. Prefers a page in use to one left behind.
    pub fn join_lease(
        &self,
        layout: &Layout,
        datacenter_id: u64,
        namespace: u128,
        max_ahead: Tick,
        is_wanted: impl Fn(u128) -> bool,
    ) -> Result<Option<Page>, Failure> {
        let mut found = Vec::new();
        for path in self.paths_of(layout, datacenter_id)? {
            let page = match Page::map(&path, self.uid) {
                Ok(Some(page)) => page,
                // A damaged file is no page of this slot.
                Ok(None) | Err(Failure { class: Class::Page, .. }) => continue,
                Err(error) => return Err(error),
            };
            page.remove_if_past();
            let is_of = page
                .leasing()
                .is_some_and(|leasing| leasing.namespace == namespace && is_wanted(leasing.owner));
            // One that is not begun is about to be another slot's.
            if is_of
                && !page.sequence().is_closed()
                && page.is_original()
                && !page.header().boot_id.is_other(&self.boot_id)
            {
                found.push((!page.is_used()?, page));
            }
        }
        found.sort_by_key(|(is_unused, page)| (*is_unused, page.header().node.worker_id()));
        for (is_unused, mut page) in found {
            let ours = Terms { max_ahead, ..page.header().terms };
            if page.header().terms != ours {
                if is_unused {
                    continue;
                }
                return Err(page.refusal(&ours));
            }
            // The page may be of an earlier boot, and so lack IDs issued after the last write to the disk.
            if is_unused && (page.may_be_old() || self.boot_id.is_unknown()) {
                continue;
            }
            if page.start_using()? {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}
