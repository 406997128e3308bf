//! Opens what a request names: shares what the process has open, or begins a generator as the one who allows it demands.
//! Taking a slot waits for the disk.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::entry::{Entry, Held, Tenancy, Use};
use super::request::{By, Joining, Recording, Request, Scope, no_memory};
use super::share::Share;
use crate::authority::file::FileStore;
use crate::authority::{Access, Holder, Lease, in_use};
use crate::core::clock::SystemClock;
use crate::core::fault::{Class, Failure};
use crate::core::node::Node;
use crate::generator::Generator;
use crate::pages::{Directory, Page};

/// The pause between attempts to take a held slot.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The time in which processes give up a page that has lost its name.
const GRACE: Duration = Duration::from_millis(500);

impl Request {
    /// Opens the generator, or shares it with the process's other users. Returns None where the host has no page to
    /// join, or no place for one that others of this machine could join. Blocks only for [`By::Record`]: for the disk,
    /// and for `recording.wait` while the slot is held.
    pub fn open(&self) -> Result<Option<Share>, Failure> {
        match &self.by {
            By::Record(recording) => Slots::open(self, recording)?.share().map(Some),
            By::Host(joining) => self.join(joining),
            By::Clock(clock) => self.open_in(&Entry::new(self.node()?, Box::new(clock.clone()))),
            _ => self.open_in(&Entry::of(self.node()?)),
        }
    }

    fn open_in(&self, entry: &Arc<Entry>) -> Result<Option<Share>, Failure> {
        let mut tenancy = entry.tenancy.lock();
        let host = match tenancy.directory(self) {
            Some(known) => Some(known),
            None => self.host()?,
        };
        let is_free = matches!(self.by, By::Free);
        if is_free && host.is_none() && self.scope != Scope::Process {
            return Ok(None);
        }
        let found = tenancy.find(self, host.is_some(), None)?;
        let share = entry.open(&mut tenancy, self, found, |_| {
            Ok(match (&self.by, host) {
                (By::Window(bounds), _) => {
                    let own = entry.own_ahead(self.max_ahead_ms);
                    let window = own.begin_window(*bounds, false);
                    (own, Held::Window(window))
                }
                (By::Grant(grant), host) => {
                    let directory = host.ok_or_else(no_memory)?;
                    leased(directory.lease(&entry.node, self.max_ahead(), grant)?)
                }
                (_, Some(directory)) => {
                    let (node, clock) = (entry.node, Box::new(SystemClock));
                    let host = Generator::on_host(directory, node, clock)?;
                    (Arc::new(host), Held::Free)
                }
                (_, None) => {
                    let own = entry.own_ahead(self.max_ahead_ms);
                    own.open_window();
                    (own, Held::Free)
                }
            })
        });
        share.map(Some)
    }

    /// Joins the host's slot of a namespace. Returns None where the host has no slot that this process can use.
    fn join(&self, joining: &Joining) -> Result<Option<Share>, Failure> {
        let Request { layout, datacenter_id, .. } = self;
        let Joining { namespace, owner, except } = joining;
        let directory = self.directory()?;
        let mut skipped = except.clone();
        loop {
            let is_wanted =
                |one| owner.is_none_or(|wanted| wanted == one) && !skipped.contains(&one);
            let max_ahead = self.max_ahead();
            let page =
                directory.join_lease(layout, *datacenter_id, *namespace, max_ahead, is_wanted)?;
            let Some(page) = page else { return Ok(None) };
            let entry = Entry::of(page.header().node);
            let mut tenancy = entry.tenancy.lock();
            let is_open = |one: &Use| one.generator.page().id() == page.id();
            let found = match tenancy.uses.iter().position(is_open) {
                None => tenancy.find(self, true, None),
                open => Ok(open),
            };
            match found {
                Ok(found) => {
                    return entry.open(&mut tenancy, self, found, |_| Ok(leased(page))).map(Some);
                }
                // This process has the node open in another way.
                Err(_) => skipped.extend(page.leasing().map(|leasing| leasing.owner)),
            }
        }
    }
}

/// The slots of a directory, as one caller opens them.
pub(super) struct Slots<'a> {
    pub request: &'a Request,
    pub recording: &'a Recording,
    pub store: FileStore,
    /// The directory of the host's pages; none for a slot of this process alone.
    pub host: Option<Directory>,
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
    pub fn until_free(
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

    /// Takes a slot, unless this process has it, or is taking or releasing it.
    pub fn take(&self, node: Node, access: Access) -> Result<Share, Failure> {
        let entry = Entry::of(node);
        let mut tenancy = entry.tenancy.lock();
        if tenancy.is_free() {
            return self.share_or_take(&entry, &mut tenancy, access);
        }
        let holder = tenancy.slot().map(|(_, lease)| lease.report().holder);
        Err(in_use(&self.store.path_of(&node), holder.as_ref()))
    }

    pub fn share_or_take(
        &self,
        entry: &Arc<Entry>,
        tenancy: &mut MutexGuard<Tenancy>,
        access: Access,
    ) -> Result<Share, Failure> {
        let Slots { request, recording, store, host } = self;
        let found = tenancy.find(request, host.is_some(), Some(store.directory()))?;
        entry.open(tenancy, request, found, |tenancy| {
            let max_ahead_ms = request.max_ahead_ms;
            let generator = match host {
                None => entry.own_ahead(max_ahead_ms),
                Some(directory) => {
                    let (directory, node) = (directory.clone(), entry.node);
                    let clock = Box::new(SystemClock);
                    Arc::new(Generator::recorded(directory, node, max_ahead_ms, clock))
                }
            };
            let holder = Holder {
                token: fastrand::u128(..),
                pid: std::process::id(),
                host: recording.host.clone(),
                started_ms: recording.started_ms,
            };
            let take = || Lease::take(store, &generator, holder, recording.ttl, access);
            let lease = entry.unlocked(tenancy, take)?;
            Ok((generator, Held::Record(lease, store.directory().to_owned())))
        })
    }
}

/// A generator on a page of a slot that JavaScript has leased for the host.
fn leased(page: Page) -> (Arc<Generator>, Held) {
    let generator = Generator::leased(page, Box::new(SystemClock));
    let window = generator.renewals().begin(false, || ());
    (Arc::new(generator), Held::Page(window))
}

impl Tenancy {
    /// The directory of the page that the process draws from, where the request names the same.
    pub fn directory(&self, request: &Request) -> Option<Directory> {
        let is_shared = matches!(request.by, By::Free) && request.scope != Scope::Process;
        let mut directories = self.uses.iter().filter_map(|one| one.generator.directory());
        directories.find(|one| is_shared && one.is_still(request.shared.as_deref())).cloned()
    }
}

impl Entry {
    /// A share in what was found, or in what `begin` begins.
    pub(super) fn open(
        self: &Arc<Self>,
        tenancy: &mut MutexGuard<Tenancy>,
        request: &Request,
        found: Option<usize>,
        begin: impl FnOnce(&mut MutexGuard<Tenancy>) -> Result<(Arc<Generator>, Held), Failure>,
    ) -> Result<Share, Failure> {
        let at = match found {
            Some(at) => at,
            None => {
                let (generator, held) = begin(tenancy)?;
                // Above all ticks that the process issued alone, under a lease for example.
                generator.start_above(self.reached());
                tenancy.uses.push(Use::new(generator, held));
                tenancy.uses.len() - 1
            }
        };
        Ok(self.share(&mut tenancy.uses[at], request))
    }
}
