//! A leased page: a slot of a store that all processes of this host share. A page is one slot for ever. After a loss or
//! release its word is closed, and another slot needs another page.
//!
//! Floor and ceiling are those of the cells. The store confirms them before a process writes them. So no other host
//! issues the page's IDs, whatever happens to the page. After a deletion, another page of the node may follow on this
//! host. So its processes stop then, like those of every page, and lease another slot.
//!
//! A killed host leaves its page. The next process of the same boot joins it: the page records all issued IDs, and the
//! store grants the slot to nobody below the ceiling.

use std::io::ErrorKind;
use std::path::Path;
use std::thread;

use super::contents::NewPage;
use super::directory::{CHANGE, Directory, TRIES};
use super::header::{Header, MARKER};
use super::kept::{Grant, Loss};
use super::page::Page;
use super::{Kind, own};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequence::Sequence;
use crate::core::sequencer::{HighMarks, NEVER, Window};
use crate::files::lock::Hold;
use crate::files::{system, whole};

/// Maximum waits for a process that replaces or removes a page. That process may be stopped.
const CHANGES: usize = 5;

impl Page {
    /// Ends the page: from now on, no process issues IDs from it. The first reason stays, except that `Reverted`
    /// replaces `Taken`. Returns the highest issued tick to the caller that ends it; none if something overwrote it, so
    /// that the store keeps its ceiling.
    pub fn end(&self, loss: Loss) -> Option<Tick> {
        let is_known = self.is_possible();
        // Before the close: a process that finds the page closed can read the reason.
        let is_first = self.kept().note_loss(loss);
        let HighMarks { marks, .. } = self.sequence().close_once().high;
        // Includes ticks issued before this page: a release must not record less.
        let highest = marks.into_iter().max().unwrap_or(NEVER).max(self.sequence().floor());
        (is_first && is_known).then_some(highest)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.sequence().is_closed()
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
        let again = Page::alone(self.path(), self.header().uid).ok()??;
        if again.id() == self.id() { again.end_and_remove() } else { None }
    }

    /// Requires [`Page::try_alone`]. If the name is another page's at the removal, that page's processes notice.
    fn end_and_remove(&self) -> Option<Tick> {
        let highest = self.end(Loss::Released);
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
        if self.header().kind == Kind::Leased
            && self.has_ended()
            && self.highest() < now()
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
                let is_usable = !self.has_ended() && self.is_named()?;
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
    /// error.
    pub fn lease(&self, node: &Node, max_ahead: Tick, grant: &Grant) -> Result<Page, Failure> {
        let path = self.page_of(node);
        let wanted = self.wanted(node, Kind::Leased, max_ahead);
        let mut changes = 0;
        for _ in 0..TRIES {
            self.create_directory()?;
            let before = Page::map(&path, wanted.uid)?;
            let highest = match &before {
                None => NEVER,
                Some(page) if page.header().boot_id.is_other(&wanted.boot_id) => {
                    if page.is_named()? {
                        own::remove(&path)?;
                    }
                    continue;
                }
                Some(page) if page.has_ended() && page.header().kind == Kind::Leased => {
                    page.highest()
                }
                Some(page) if page.try_alone()? => page.highest(),
                Some(page) if changes < CHANGES && page.is_locked_alone()? => {
                    changes += 1;
                    thread::sleep(CHANGE);
                    continue;
                }
                Some(page) => return Err(in_use(page, &wanted)),
            };
            // After a deletion of the page, the marker shows that the node's next page is not its first.
            match system::create_private(&path.with_extension(MARKER)) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
                Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                    return Err(Failure::io("page-io", "create", &path)(cause));
                }
                _ => {}
            }
            let leased = leased(&wanted, grant, highest);
            if let Some(page) = self.put(&leased, before.as_ref(), &path)? {
                own::explain(self.path());
                return Ok(page);
            }
        }
        Err(Failure::new(Class::Page, fault!("page-replaced", place: path)))
    }

    /// Gives a page its name, in place of another page or of none. This process uses the page before others can find
    /// it: they would take themselves for its last users. None if another file has the name by now.
    fn put(
        &self,
        page: &NewPage,
        before: Option<&Page>,
        path: &Path,
    ) -> Result<Option<Page>, Failure> {
        let failed = Failure::io("page-io", "create", path);
        let file = own::write(self.path(), page.bytes()).map_err(&failed)?;
        let Some(mut page) = Page::map(file.path(), self.uid)? else { return Ok(None) };
        page.lock(Hold::Shared)?;
        let named = match before {
            None => file.persist_noclobber(path),
            Some(before) if before.is_named()? => file.persist(path),
            Some(_) => return Ok(None),
        };
        let file = whole::if_possible(named.map_err(Into::into)).map_err(failed)?;
        if file.is_some() {
            page.enter();
            page.set_path(path);
        }
        Ok(file.map(|_| page))
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
            if is_of && !page.has_ended() && !page.header().boot_id.is_other(&self.boot_id) {
                found.push((!page.is_used()?, page));
            }
        }
        found.sort_by_key(|(is_unused, page)| (*is_unused, page.header().node.worker_id()));
        for (is_unused, mut page) in found {
            if page.header().max_ahead != max_ahead {
                if is_unused {
                    continue;
                }
                let node = page.header().node;
                return Err(page.refusal(&self.wanted(&node, Kind::Leased, max_ahead)));
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

/// A leased page. Its window is what the store has confirmed, above the ticks of an earlier page of the node.
fn leased(wanted: &Header, grant: &Grant, highest: Tick) -> NewPage {
    let mut page = NewPage::new(wanted, NEVER, Tick::MAX);
    let contents = page.contents();
    let sequence = Sequence::new(&contents.cells, wanted.node.layout());
    let bounds = Window { floor: grant.floor.max(highest), ceiling: grant.ceiling };
    if let Some(closed) = sequence.closed() {
        // Fails if the layout has no tick left. Then the page stays closed.
        let _ = sequence.reopen(&closed, bounds, &HighMarks::default());
    }
    contents.kept.begin_lease(grant);
    page
}

/// The reason that a slot's page cannot replace this one.
fn in_use(page: &Page, wanted: &Header) -> Failure {
    match page.header().kind {
        Kind::Leased => {
            let (place, pid) = (page.path(), page.living_user());
            Failure::new(Class::Conflict, fault!("page-lease", place, pid))
        }
        _ => page.refusal(wanted),
    }
}
