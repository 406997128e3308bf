//! Pages of slots that this host has leased: from a store, or from a directory of slots ([`Authority::is_host_lease`]).
//!
//! All processes of the host share a store's slot by its page. A page is one slot for ever. After a loss or release its word
//! is closed, and another slot needs another page.
//!
//! Floor and ceiling are those of the cells. The store confirms them before a process writes them. So no other host
//! issues the page's IDs, whatever happens to the page. After a deletion, another page of the node may follow on this
//! host. So its processes stop then, like those of every page, and lease another slot.
//!
//! A killed host leaves its page. The next process of the same boot joins it: the page records all issued IDs, and the
//! store grants the slot to nobody below the ceiling.

use std::fs::File;
use std::thread;
use std::time::Duration;

use super::contents::{Leasing, Loss};
use super::directory::Directory;
use super::header::{Authority, Header, Terms, name_prefix};
use super::life::{CHANGE, Earlier, TRIES};
use super::own;
use super::page::{Page, Snapshot};
use super::processes::Process;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::core::sequencer::{HighMarks, NEVER, Window};
use crate::files::lock::{self, LockMode, USERS};
use crate::files::path::is_at;

/// Maximum waits for a process that replaces or removes a page. That process may be stopped.
const CHANGES: usize = 5;

/// The longest wait for the clock to pass a page's last tick.
const PASSING_MS: i64 = 3;

/// The file of [`LeasesLock`].
const LOCK: &str = "leases.lock";

impl Page {
    /// A page in the process's own memory, for a slot that this process is about to take alone.
    pub fn own_pending(node: Node, max_ahead: Tick, namespace: u128, owner: u128) -> Page {
        let page = Page::own(node, Terms { max_ahead, authority: Authority::Lease { owner } });
        page.cells().prepare(node.layout());
        page.kept().set_namespace(namespace);
        page
    }

    /// Opens a pending page for what the store has confirmed, above the ticks of earlier pages of the node. `now`: the clock's
    /// tick.
    pub fn open_lease(&self, window: Window, now: Tick) {
        let sequence = self.sequence();
        if let Some(closed) = sequence.closed() {
            let Earlier { floor, mark } = self.earlier(now);
            let window = Window { floor: window.floor.max(floor), ..window };
            let mut high = HighMarks::default();
            high.marks[0] = mark;
            let used = (mark > NEVER).then(|| self.header().node.layout().last_sequence() + 1);
            // Fails if the layout has no tick left. Then the page stays closed.
            let _ = self.begin(&closed, window, &high, used);
        }
        if !self.is_current() {
            // It was replaced meanwhile. No failure: that would say that nothing was issued from it, but others may have
            // joined it.
            self.end();
        }
    }

    /// Ends a leased page. The first reason stays, except that `Reverted` replaces `Taken`. Returns the highest tick that
    /// the store has to record, to the caller that ends it: what was issued, and the floor that the store has confirmed.
    /// None if something overwrote the page, so that the store keeps its ceiling.
    pub fn end_lease(&self, loss: Loss) -> Option<Tick> {
        // Before the end: a process that finds the page ended can read the reason.
        let is_first = self.kept().note_loss(loss);
        let highest = self.end()?.max(self.sequence().floor());
        is_first.then_some(highest)
    }

    /// Whether the application has ended the lease since its machine was restored from a snapshot.
    #[inline]
    pub fn is_restored(&self) -> bool {
        self.kept().is_restored()
    }

    /// Stops using the page. Ends and removes it if no process of the host uses it any more. Returns the highest issued
    /// tick to the caller that ends it.
    pub fn leave(&self) -> Option<Tick> {
        self.leave_last()?.end_and_remove()
    }

    /// Stops using the page. If no process of the host uses it any more, returns it with a lock that keeps others away.
    ///
    /// Two processes that leave at once must not leave it to each other: each releases its own lock first.
    pub fn leave_last(&self) -> Option<Page> {
        self.retire();
        let again = Page::alone(self.path()?, self.header().uid).ok()??;
        (again.id() == self.id()).then_some(again)
    }

    /// Requires [`Page::try_alone`]. If the name is another page's at the removal, that page's processes notice.
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

    /// Removes a page without users once the clock has passed all its IDs, and waits some ms for that. Until then
    /// it records the issued IDs for a process that opens the node on other terms: the slot's store has them, too, but
    /// the node's next page knows only that it begins above the clock. A page that stays is removed by a later call.
    /// Requires [`Page::try_alone`]. Not covered: a clock rollback in between.
    pub fn remove_passed(&self, now: impl Fn() -> Tick) {
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

    /// Uses the page if it has its name and has not ended. Waits for a process that replaces or removes it.
    fn start_using(&mut self) -> Result<bool, Failure> {
        for _ in 0..CHANGES {
            if self.lock(LockMode::Shared)? {
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
    /// A page for a slot that this host is about to take. It issues nothing yet, and nobody joins it. Replaces an ended or unused
    /// page; a page in use is an error.
    pub fn pending(
        &self,
        node: &Node,
        max_ahead: Tick,
        namespace: u128,
        owner: u128,
    ) -> Result<Page, Failure> {
        let page = self.obtain(node, Terms { max_ahead, authority: Authority::Lease { owner } })?;
        page.kept().set_namespace(namespace);
        Ok(page)
    }

    /// Joins the host's slot of a namespace, if it has one of a wanted owner and worker ID. Prefers a page in use to one left behind.
    pub fn join_lease(
        &self,
        layout: &Layout,
        datacenter_id: u64,
        namespace: u128,
        max_ahead: Tick,
        is_wanted: impl Fn(u128, u64) -> bool,
    ) -> Result<Option<Page>, Failure> {
        let Some(prefix) = name_prefix(layout, datacenter_id) else { return Ok(None) };
        let mut found = Vec::new();
        for (_, page) in self.mapped(&prefix)? {
            let page = match page {
                // A damaged file is no page of this slot.
                Err(Failure { class: Class::Page, .. }) => continue,
                page => page?,
            };
            let Some(Leasing { namespace: of, owner, .. }) = page.leasing() else { continue };
            if page.has_ended() && page.try_alone().unwrap_or(false) {
                page.remove_passed(|| page.now());
            }
            // One that is not begun is about to be another slot's.
            if (of == namespace && is_wanted(owner, page.header().node.worker_id()))
                && !page.sequence().is_closed()
                && page.is_original()
                && !page.header().boot_id.is_other(&self.boot_id)
            {
                found.push((page.is_used()?, page));
            }
        }
        found.sort_by_key(|(is_used, page)| (!is_used, page.header().node.worker_id()));
        for (is_used, mut page) in found {
            let ours = Terms { max_ahead, ..page.header().terms };
            let is_ours = page.header().terms == ours;
            if is_used && !is_ours {
                return Err(page.refusal(&ours));
            }
            // An unused page may be of an earlier boot, and so lack IDs issued after the last write to the disk.
            let is_known = is_used || !(page.may_be_old() || self.boot_id.is_unknown());
            if is_ours && is_known && page.start_using()? {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    /// The pages of slots that this host has leased from any directory of slots, sorted by worker ID, with living processes
    /// first.
    pub fn leases_of(&self, layout: &Layout, datacenter_id: u64) -> Result<Vec<Snapshot>, Failure> {
        let Some(prefix) = name_prefix(layout, datacenter_id) else { return Ok(Vec::new()) };
        let mut found: Vec<Snapshot> =
            self.host_leased(&prefix)?.map(|page| page.snapshot()).collect();
        found.sort_by_key(|snapshot| {
            let is_left = !snapshot.processes.iter().any(Process::is_alive);
            (is_left, snapshot.header.node.worker_id())
        });
        Ok(found)
    }

    /// Removes unused pages of slots released to a directory, and of slots that another holder has by now (`is_left`), as
    /// after a killed process.
    pub fn sweep_leases(&self, is_left: impl Fn(&Page) -> bool) {
        for page in self.host_leased("").into_iter().flatten() {
            // Skips pages that are in use.
            let is_unused = page.try_alone().unwrap_or(false);
            if is_unused && (page.sequence().is_closed() || is_left(&page)) {
                page.remove_passed(|| page.now());
            }
        }
    }

    /// This boot's pages of slots leased from a directory. An unreadable file is no page of a slot that processes share.
    fn host_leased(&self, prefix: &str) -> Result<impl Iterator<Item = Page>, Failure> {
        let is_leased = |page: &Page| {
            let Header { terms, boot_id, .. } = page.header();
            terms.authority.is_host_lease() && !boot_id.is_other(&self.boot_id)
        };
        Ok(self.mapped(prefix)?.filter_map(|(_, page)| page.ok()).filter(is_leased))
    }

    /// Locks a key: a store, layout and datacenter. A process holds the lock while it looks for the host's slot and acquires
    /// one, so that two do not lease two slots for one purpose. (Even then nothing would be issued twice: each slot has one
    /// holder.) None while another process or caller holds it: a stopped one keeps it, so callers try for a bounded time,
    /// then continue without it.
    pub fn lock_leases(&self, key: u128) -> Result<Option<LeasesLock>, Failure> {
        let path = self.path().join(LOCK);
        for _ in 0..TRIES {
            own::create_directory(self.path(), self.uid)?;
            let file = match own::open_empty(&path, self.uid) {
                // Removed right after its creation.
                Err(failure) if failure.is_missing() => continue,
                opened => opened?,
            };
            let lock = LeasesLock { file, at: byte_of(key) };
            let is_taken = lock::try_take(&lock.file, lock.at, LockMode::Exclusive);
            if !is_taken.map_err(Failure::io("page-io", "lock", &path))? {
                return Ok(None);
            }
            // After a deletion of this file, others lock another one.
            if is_at(&path, &lock.file) {
                return Ok(Some(lock));
            }
        }
        Err(Failure::new(Class::Page, fault!("page-replaced", place: path)))
    }
}

/// The lock of a key, held until dropped: on Linux and Windows a byte of an empty file in the directory of pages; elsewhere,
/// the whole file. It belongs to the open file. So it ends with the process, and also excludes threads and copies of this
/// package in one process.
#[derive(Debug)]
pub struct LeasesLock {
    file: File,
    at: u64,
}

/// The byte of a key. Two keys with the same byte only wait for each other.
fn byte_of(key: u128) -> u64 {
    if cfg!(any(target_os = "linux", windows)) {
        let mixed = (key ^ key >> 64) as u64;
        mixed & (i64::MAX as u64 >> 1)
    } else {
        // The whole file.
        USERS
    }
}

impl Drop for LeasesLock {
    /// Unlocks at once, even if a forked process still has the open file.
    fn drop(&mut self) {
        let _ = lock::release(&self.file, self.at);
    }
}
