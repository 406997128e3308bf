//! Pages of leased slots: leased from a store or a directory. Both are "the store" here.
//!
//! All processes of the host share a slot by its page. A page is of one slot only: after a loss or a release it is
//! closed, and another slot needs another page.
//!
//! The cells have the floor and the ceiling. The store confirms both before a process writes them, so no other host
//! issues the page's IDs, whatever happens to the page. After a page is deleted, this host may create another page of
//! the node. So its processes stop, as on every page, and lease another slot.
//!
//! If all processes of a host are killed, the page stays. The next process of the same boot joins it: the page records
//! all issued IDs, and the store grants no other host ticks at or below the ceiling.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::directory::Directory;
use super::header::{Header, Terms, name_prefix};
use super::life::TRIES;
use super::own;
use super::page::Page;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::loss::Loss;
use crate::core::node::Node;
use crate::files::lock::{self, LockMode, USERS};
use crate::files::path::is_at;

/// Maximum number of pauses for another process that replaces or removes a page. That process may be stopped.
const CHANGE_TRIES: usize = 5;

/// The longest wait until the clock has passed a page's last tick, in ms.
const PASSING_MS: i64 = 3;

/// The file of [`LeasesLock`].
const LOCK: &str = "leases.lock";

impl Page {
    /// A page in the process's own memory, for a slot that this process is about to take for itself.
    pub fn pending_in_process(node: Node, max_ahead: Tick, namespace: u64, owner: u64) -> Page {
        let page = Page::in_process(node, Terms { max_ahead, owner: Some(owner) });
        page.cells().prepare(node.layout());
        page.notes().set_namespace(namespace);
        page
    }

    /// Ends a leased page. Keeps the first reason, but `Reverted` and `Restored` replace `Taken` and `Released`. The caller that
    /// ends the page gets the tick that the store must record: the highest issued tick, or the confirmed floor if that is higher.
    /// `None` for other callers, and if the page was overwritten: then the store keeps its ceiling.
    pub fn end_lease(&self, loss: Loss) -> Option<Tick> {
        // Before the end, so that a process that finds the page ended can read the reason.
        let is_first = self.notes().note_loss(loss);
        let highest = self.end()?.max(self.sequence().floor());
        is_first.then_some(highest)
    }

    /// Whether it has ended for a reason by which its IDs are disputed: see [`Loss::is_disputed`].
    #[inline]
    pub fn is_disputed(&self) -> bool {
        self.notes().is_disputed()
    }

    /// Stops using the page. The last user ends and removes it, and gets the tick that the store must record.
    pub fn leave(&self) -> Option<Tick> {
        self.leave_last()?.end_and_remove()
    }

    /// Stops using the page. Returns it to the last user, locked exclusively.
    ///
    /// Each process releases its own lock first, so that of two that leave at once, one is the last.
    pub fn leave_last(&self) -> Option<Page> {
        self.retire();
        let again = Page::map(self.path()?, self.header().uid).ok()??;
        (again.id() == self.id() && again.try_lock_exclusive().ok()?).then_some(again)
    }

    /// Requires [`Page::try_lock_exclusive`]. If the name is another page's by then, that
    /// page's processes notice its removal.
    fn end_and_remove(&self) -> Option<Tick> {
        let highest = self.end_lease(Loss::Released);
        if self.has_ended() {
            self.remove_passed(|| self.now());
        }
        highest
    }

    fn now(&self) -> Tick {
        self.header().node.layout().tick_at(SystemClock.now().ms)
    }

    /// Removes a page without users once the clock has passed its last tick. Waits a few ms for that. Until then the
    /// page is the record of its IDs for a process that opens the node on other terms: that process does not ask the
    /// slot's store, and only begins above the clock. If the page stays, a later call removes it. Requires
    /// [`Page::try_lock_exclusive`]. Not covered: a clock rollback after the removal. A page that is kept stays.
    pub fn remove_passed(&self, now: impl Fn() -> Tick) {
        if self.notes().is_kept() {
            return;
        }
        let last = self.sequence().highest();
        let ticks = last.saturating_add(1).saturating_sub(now());
        let wait_ms = ticks.saturating_mul(self.header().node.layout().tick_ms);
        if (1..=PASSING_MS).contains(&wait_ms) {
            thread::sleep(Duration::from_millis(wait_ms as u64));
        }
        if last < now() {
            let _ = self.remove_with_marker();
        }
    }

    /// Starts to use the page, if it has its name and has not ended. Waits for a process that replaces or removes it.
    fn start_using(&mut self) -> Result<bool, Failure> {
        for _ in 0..CHANGE_TRIES {
            if self.lock(LockMode::Shared)? {
                // The page may have ended before this process locked it.
                let is_usable = !self.sequence().is_closed() && self.is_named()?;
                if is_usable {
                    self.enter();
                }
                return Ok(is_usable);
            }
            lock::pause();
        }
        Ok(false)
    }
}

impl Directory {
    /// A pending page, for a slot that this host is about to take. It issues nothing, and no process joins it. Replaces
    /// an ended or unused page; an error if the page is in use.
    pub fn pending(
        &self,
        node: &Node,
        max_ahead: Tick,
        namespace: u64,
        owner: u64,
        seen: Option<Arc<Page>>,
    ) -> Result<Page, Failure> {
        let terms = Terms { max_ahead, owner: Some(owner) };
        let page = self.obtain_after(node, terms, seen)?;
        page.notes().set_namespace(namespace);
        Ok(page)
    }

    /// This boot's leased pages that have not ended: those in use first, then the lowest worker ID. Nobody's
    /// use of them changes. Skips unreadable files, copies, and pages that lost a name. `worker_id`: of this one alone.
    /// `seen`: the pages that were seen before, and now; mapping one takes long.
    pub fn leased(
        &self,
        layout: &Layout,
        datacenter_id: u64,
        worker_id: Option<u64>,
        seen: &mut Vec<Arc<Page>>,
    ) -> Result<Vec<Arc<Page>>, Failure> {
        let paths = match worker_id {
            Some(worker_id) => vec![self.page_of(&Node::new(*layout, datacenter_id, worker_id)?)],
            None => match name_prefix(layout, datacenter_id) {
                Some(prefix) => self.paths(&prefix)?,
                None => Vec::new(),
            },
        };
        let mut found = Vec::new();
        let before = std::mem::take(seen);
        for path in paths {
            let page = match self.page_seen(&path, &before) {
                // A damaged file is of no slot.
                Err(Failure { class: Class::Page, .. }) | Ok(None) => continue,
                Ok(Some(page)) => page,
                Err(failure) => return Err(failure),
            };
            seen.push(page.clone());
            let Header { terms, boot_id, .. } = page.header();
            if terms.owner.is_some()
                && !boot_id.is_other(&self.boot_id)
                && page.is_original()
                && !page.has_ended()
                && page.is_current()
            {
                found.push((!page.is_used()?, page));
            }
        }
        found.sort_by_key(|(is_left, page)| (*is_left, page.header().node.worker_id()));
        Ok(found.into_iter().map(|(_, page)| page).collect())
    }

    /// Starts to use a page that [`Directory::leased`] found. None if it has ended by now, or may lack issued IDs. An error if
    /// other processes use it with another `max_ahead`.
    pub fn join_leased(&self, found: &Page, max_ahead: Tick) -> Result<Option<Page>, Failure> {
        let Some(path) = found.path() else { return Ok(None) };
        let Some(mut page) = Page::map(path, self.uid)?.filter(|page| page.is_same(found)) else {
            return Ok(None);
        };
        let ours = Terms { max_ahead, ..page.header().terms };
        let (is_ours, is_used) = (page.header().terms == ours, page.is_used()?);
        if is_used && !is_ours {
            return Err(page.refusal(&ours));
        }
        // An unused page may be of an earlier boot. Then it may lack the IDs issued after the last write to the disk.
        let is_known = is_used || !(page.may_be_old || self.boot_id.is_unknown());
        let is_joined = is_ours && is_known && page.start_using()?;
        Ok(is_joined.then_some(page))
    }

    /// The page at a path, mapped unless it was seen before.
    fn page_seen(&self, path: &Path, seen: &[Arc<Page>]) -> Result<Option<Arc<Page>>, Failure> {
        match seen.iter().find(|page| page.is_at(path).unwrap_or(false)) {
            Some(page) => Ok(Some(page.clone())),
            None => Ok(Page::map(path, self.uid)?.map(Arc::new)),
        }
    }

    /// Ends the node's page if it is leased, so that this host can make the node's next one, also where a stopped
    /// process uses it. That one begins above what it issued. Returns the node's page.
    pub fn end_leased(
        &self,
        node: &Node,
        seen: &[Arc<Page>],
    ) -> Result<Option<Arc<Page>>, Failure> {
        let page = self.page_seen(&self.page_of(node), seen)?;
        if let Some(page) = &page
            && page.lease_status().is_some()
            && !page.has_ended()
        {
            page.end_lease(Loss::Released);
        }
        Ok(page)
    }

    /// Locks a key: a store, layout and datacenter. A process has the lock while it searches for the host's slot or
    /// takes one, so that the host takes only one slot. (Two slots would be safe, since each has one holder.) `None`
    /// while another caller has the lock. A stopped process keeps it, so callers try for a bounded time, then continue
    /// without it.
    pub fn lock_leases(&self, key: u128) -> Result<Option<LeasesLock>, Failure> {
        let path = self.path().join(LOCK);
        for _ in 0..TRIES {
            own::ensure_directory(self.path(), self.uid)?;
            let file = match own::open_empty(&path, self.uid) {
                // Another process removed it right after its creation.
                Err(failure) if failure.is_missing() => continue,
                opened => opened?,
            };
            let lock = LeasesLock { file, at: byte_of_key(key) };
            let is_taken = lock::try_take(&lock.file, lock.at, LockMode::Exclusive);
            if !is_taken.map_err(Failure::io("page-io", "lock", &path))? {
                return Ok(None);
            }
            // If the file was deleted, other processes lock a new one.
            if is_at(&path, &lock.file) {
                return Ok(Some(lock));
            }
        }
        Err(Failure::new(Class::Page, fault!("page-replaced", place: path)))
    }
}

/// The lock of a key, until dropped: on Linux and Windows, on a byte of an empty file in the directory of pages;
/// elsewhere, on the whole file. It belongs to the open file. So it ends with the process, and excludes other threads
/// and other copies of this package in the process, too.
#[derive(Debug)]
pub struct LeasesLock {
    file: File,
    at: u64,
}

/// The byte of a key. Keys with the same byte only wait for each other.
fn byte_of_key(key: u128) -> u64 {
    if cfg!(any(target_os = "linux", windows)) {
        let mixed = (key ^ key >> 64) as u64;
        mixed & (i64::MAX as u64 >> 1)
    } else {
        // The whole file.
        USERS
    }
}

impl Drop for LeasesLock {
    /// Unlocks at once, even if a forked process shares the open file.
    fn drop(&mut self) {
        let _ = lock::release(&self.file, self.at);
    }
}
