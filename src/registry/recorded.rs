//! Nodes with a slot in a directory. Taking a slot waits for the disk.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::entry::{Entry, Held, Tenancy};
use super::request::{Recording, Request};
use super::share::Share;
use crate::authority::file::FileStore;
use crate::authority::{Access, Lease};
use crate::authority::{Holder, in_use};
use crate::core::clock::SystemClock;
use crate::core::fault::{Class, Failure};
use crate::core::node::Node;
use crate::generator::Generator;
use crate::pages::Directory;

/// The pause between attempts to take a held slot.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The time in which processes give up a page that has lost its name.
const GRACE: Duration = Duration::from_millis(500);

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
                    let (directory, node) = (directory.clone(), *entry.own.node());
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
