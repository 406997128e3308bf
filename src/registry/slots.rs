//! Slots of a directory: a named one, or any free one, for all processes of the host, for the process, or for one call.
//!
//! With the host's pages, its processes share a slot: one takes it, and the others join it through its page. Under
//! [`LeasesLock`](crate::pages::LeasesLock) one process at a time looks for that page, and takes a slot where there is
//! none. Without the lock two processes may take two slots: wasteful, but as safe.

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::entry::{Entry, Held, SETTLE, Tenancy, Use};
use super::request::{Recording, Request};
use super::share::Share;
use crate::authority::file::FileStore;
use crate::authority::{Access, Holder, Lease, Recorded, Status, in_use};
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::{Class, Failure, Fault, fault};
use crate::core::layout::Layout;
use crate::core::node::Node;
use crate::generator::Generator;
use crate::pages::{Authority, Directory};

/// The longest wait for other processes of the host that search for its slot. A search takes as long as the disk,
/// unless its process was stopped. Shorter than a constructor's wait for the disk.
const SEARCH: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(5);

/// The pause between attempts to take a held slot.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The time in which processes give up a page that has lost its name.
const GRACE: Duration = Duration::from_millis(500);

/// The slots that all callers in the process share if they request any. Each has its own lock, since callers wait for
/// the disk under it.
static COMMON: LazyLock<Mutex<HashMap<Wanted, Arc<Common>>>> = LazyLock::new(Mutex::default);

/// Any slot of a store's directory, for a layout and a datacenter; and the directory of the host's pages, for callers
/// that share them.
type Wanted = (PathBuf, Layout, u64, Option<PathBuf>);

/// The slot leased for all callers with that request.
type Common = Mutex<Option<Node>>;

/// The slots of a directory, as one caller opens them.
pub(super) struct Slots<'a> {
    request: &'a Request,
    recording: &'a Recording,
    store: FileStore,
    /// The directory of the host's pages; none for a slot of this process alone.
    host: Option<Directory>,
}

impl<'a> Slots<'a> {
    pub fn open(request: &'a Request, recording: &'a Recording) -> Result<Slots<'a>, Failure> {
        let host = request.host()?;
        Ok(Slots { request, recording, store: FileStore::open(&recording.directory)?, host })
    }

    /// Takes the slot of the named node, or any free one, or shares it with others in this process. Waits while others
    /// hold it.
    pub fn share(&self) -> Result<Share, Failure> {
        if self.request.worker_id.is_none() {
            return self.share_any();
        }
        // Processes of this host that lost their page are about to give it up.
        let least = if self.host.is_some() { GRACE } else { POLL };
        let entry = Entry::of(self.request.node()?);
        self.until_free(least, || {
            let mut tenancy = entry.settled_tenancy()?;
            self.share_or_take(&entry, &mut tenancy, Access::Shared)
        })
    }

    /// Retries for at least this long while others hold the slots.
    fn until_free(
        &self,
        least: Duration,
        mut attempt: impl FnMut() -> Result<Share, Failure>,
    ) -> Result<Share, Failure> {
        // Once more in any case: a new holder may not have written its name yet.
        let deadline = Instant::now() + self.recording.wait.max(least);
        loop {
            match attempt() {
                Err(failure) if failure.class == Class::InUse && Instant::now() < deadline => {
                    thread::sleep(POLL);
                }
                answer => return answer,
            }
        }
    }

    /// Takes a slot, unless this process has it, or is taking or releasing it. Joins the host's, also where this process
    /// has it.
    fn take(&self, node: Node, access: Access) -> Result<Share, Failure> {
        let entry = Entry::of(node);
        let mut tenancy = entry.tenancy.lock();
        let slot = tenancy.uses.iter().find(|one| one.lease().is_some());
        let is_hosts = slot.is_some_and(Use::is_host_lease);
        if tenancy.is_free() || access == Access::Joined && is_hosts {
            return self.share_or_take(&entry, &mut tenancy, access);
        }
        let holder = slot.and_then(Use::lease).map(|lease| lease.report().holder);
        Err(in_use(&self.store.path_of(&node), holder.as_ref()))
    }

    fn share_or_take(
        &self,
        entry: &Arc<Entry>,
        tenancy: &mut MutexGuard<Tenancy>,
        access: Access,
    ) -> Result<Share, Failure> {
        let Slots { request, recording, store, host } = self;
        if let Some(one) = tenancy.find(request, host.is_some(), Some(store.directory()))? {
            return Ok(entry.share(one, request));
        }
        let (max_ahead_ms, clock) = (request.max_ahead_ms, request.clock());
        let generator = Generator::recorded(host.clone(), entry.node, max_ahead_ms, clock);
        let generator = Arc::new(generator);
        let holder = Holder {
            token: fastrand::u128(..),
            pid: std::process::id(),
            host: recording.host.clone(),
            started_ms: recording.started_ms,
        };
        let take = || Lease::take(store, &generator, holder, recording.ttl, access);
        let lease = entry.unlocked(tenancy, take)?;
        let held = Held::Record(lease, store.directory().to_owned());
        Ok(entry.begin(tenancy, request, (generator, held)))
    }

    /// Takes any free slot of a datacenter. With the host's pages, shares the host's slot. With `common`, all callers in
    /// the process that request any slot of this store, layout and datacenter get the same one.
    fn share_any(&self) -> Result<Share, Failure> {
        let Slots { request, recording, store, host } = self;
        if host.is_none() && !recording.common {
            return self.until_free(POLL, || self.take_any());
        }
        let pages = host.as_ref().map(|host| host.path().to_owned());
        let directory = store.directory();
        let wanted = (directory.to_owned(), request.layout, request.datacenter_id, pages);
        let common = COMMON.lock().entry(wanted).or_default().clone();
        self.until_free(POLL, || {
            // Locked for one attempt, not while waiting for a slot: other threads have deadlines of their own.
            let Some(mut common) = common.try_lock_for(SETTLE) else {
                let fault = fault!("slot-busy", place: directory, waited: SETTLE.as_secs());
                return Err(fault.into());
            };
            if let Some(node) = *common {
                let entry = Entry::of(node);
                let mut tenancy = entry.settled_tenancy()?;
                // By now the process may have the node through another directory, or by name, or not at all.
                if tenancy.uses.iter().any(|one| self.is_common(one)) {
                    return self.share_or_take(&entry, &mut tenancy, Access::Shared);
                }
            }
            let share = match host {
                None => self.take_any()?,
                Some(host) => self.share_of_host(host)?,
            };
            *common = Some(*share.node());
            Ok(share)
        })
    }

    /// Whether it is a slot of this directory, held in this way.
    fn is_common(&self, one: &Use) -> bool {
        let Held::Record(lease, directory) = &one.held else { return false };
        directory == self.store.directory()
            && one.is_host_lease() == self.host.is_some()
            && lease.report().status != Status::Lost
    }

    /// Joins the host's slot, or takes one for the host.
    fn share_of_host(&self, host: &Directory) -> Result<Share, Failure> {
        let deadline = Instant::now() + SEARCH;
        let mut lock = None;
        loop {
            // Under the lock, too: another process may have taken one before.
            if let Some(share) = self.join_any(host)? {
                return Ok(share);
            }
            if lock.is_some() || Instant::now() >= deadline {
                break;
            }
            lock = host.lock_leases(self.key())?;
            if lock.is_none() {
                thread::sleep(AGAIN);
            }
        }
        host.sweep_leases(|page| {
            let of_slot = |id| Authority::Record { id, is_leased: true };
            self.store.identified(&page.header().node).is_ok_and(|(record, id)| {
                page.header().terms.authority == of_slot(id) && record.page != page.id()
            })
        });
        self.take_any()
    }

    /// The same in all processes of the host that request the same slot, in any version of snowdrift. If two keys
    /// collide, one caller waits for the other.
    fn key(&self) -> u128 {
        let Request { layout, datacenter_id, .. } = self.request;
        let text = format!("{layout:?} {datacenter_id} {}", self.store.directory().display());
        crc32fast::hash(text.as_bytes()).into()
    }

    /// Joins the slot that processes of this host have leased from the store, or have left by a kill.
    fn join_any(&self, host: &Directory) -> Result<Option<Share>, Failure> {
        for snapshot in host.leases_of(&self.request.layout, self.request.datacenter_id)? {
            let node = snapshot.header.node;
            let record = self.store.identified(&node);
            if !record.is_ok_and(|(record, _)| record.page == snapshot.header.page_id) {
                continue;
            }
            match self.take(node, Access::Joined) {
                Ok(share) => return Ok(Some(share)),
                // It was released at this moment, or another host has it by now.
                Err(failure) if is_of_slot(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(None)
    }

    /// Takes the first free slot, and skips slots with unusable files.
    fn take_any(&self) -> Result<Share, Failure> {
        let Slots { store, request, host, .. } = self;
        let access = if host.is_some() { Access::Taken } else { Access::Shared };
        let (layout, datacenter_id) = (request.layout, request.datacenter_id);
        let mut holders = Vec::new();
        let mut unusable = Vec::new();
        let mut not_made = None;
        for (worker_id, is_recorded) in candidates(store, &layout, datacenter_id)? {
            // Where one file cannot be created, the next cannot either; existing files may do.
            if not_made.is_some() && !is_recorded {
                continue;
            }
            let node = Node::new(layout, datacenter_id, worker_id)?;
            match self.take(node, access) {
                Ok(mut share) => {
                    share.warnings = unusable;
                    return Ok(share);
                }
                Err(failure) => match failure.class {
                    Class::InUse => {
                        let named = |holder: &Fault| holder.clone().with("worker", worker_id);
                        holders.extend(failure.fault.parts("holders").iter().map(named));
                    }
                    // A conflict: processes of this host have the node open, but not from this store.
                    Class::Slot | Class::Conflict => unusable.push(failure.fault),
                    Class::Io(_)
                        if failure.is_of_process() || !failure.is_of(&store.path_of(&node)) =>
                    {
                        return Err(failure);
                    }
                    Class::Io(_) if is_recorded => unusable.push(failure.fault),
                    Class::Io(_) => not_made = Some(failure),
                    _ => return Err(failure),
                },
            }
        }
        Err(not_made.unwrap_or_else(|| {
            let (store, datacenter) = (store.name(), datacenter_id);
            Failure::new(Class::InUse, fault!("no-slot", store, datacenter, holders, unusable))
        }))
    }
}

/// Whether the slot cannot be had, as opposed to its page.
fn is_of_slot(failure: &Failure) -> bool {
    let is_class = matches!(failure.class, Class::InUse | Class::Lost | Class::Slot);
    is_class || failure.fault.kind == "slot-io"
}

/// The worker IDs in the order of attempts, and whether their slots have files. First those that were used before and
/// can start at once, the longest unused first; then those never used; then the others.
fn candidates(
    store: &FileStore,
    layout: &Layout,
    datacenter_id: u64,
) -> Result<impl Iterator<Item = (u64, bool)>, Failure> {
    // Checks the datacenter ID before there is a worker.
    Node::new(*layout, datacenter_id, 0)?;
    let now = layout.tick_at(SystemClock.now().ms);
    let mut recorded = store.recorded(layout, datacenter_id)?;
    recorded.sort_by_key(|slot| (slot.ceiling, slot.worker_id));
    let known: HashSet<u64> = recorded.iter().map(|slot| slot.worker_id).collect();
    // An unreadable one is tried first, too: the attempt reports the reason.
    let has_passed = |slot: &Recorded| slot.ceiling.is_none_or(|ceiling| ceiling < now);
    let (passed, others): (Vec<_>, Vec<_>) = recorded.into_iter().partition(has_passed);
    let unused = (0..=layout.last_worker()).filter(move |id| !known.contains(id));
    let ids = |slots: Vec<Recorded>| slots.into_iter().map(|slot| (slot.worker_id, true));
    Ok(ids(passed).chain(unused.map(|worker_id| (worker_id, false))).chain(ids(others)))
}
