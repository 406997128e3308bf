//! Nodes with a slot in a directory. Taking a slot waits for the disk.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::entry::{Entry, RecordedIn, Tenancy};
use super::{Opening, Recording, Share};
use crate::core::clock::SystemClock;
use crate::core::fault::{Class, Failure};
use crate::core::node::Node;
use crate::generator::Generator;
use crate::lease::Access;
use crate::lease::Lease;
use crate::store::file::FileStore;
use crate::store::{Holder, in_use};

/// The pause between attempts to take a held slot.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The time in which processes give up a page that has lost its name.
const GRACE: Duration = Duration::from_millis(500);

/// Opens a node that a store records: takes its slot, or shares it with others in this process. Blocks for the disk,
/// and for `recording.wait`.
pub(super) fn open_recorded(
    node: Node,
    opening: &Opening,
    recording: &Recording,
) -> Result<Share, Failure> {
    let slots = Slots::open(opening, recording)?;
    // Processes of this host that lost their page are about to give it up.
    let least = if opening.host.is_some() { GRACE } else { POLL };
    until_free(recording.wait.max(least), || slots.take_or_share(node))
}

/// Retries for this long while others hold the slots.
pub(super) fn until_free(
    wait: Duration,
    mut attempt: impl FnMut() -> Result<Share, Failure>,
) -> Result<Share, Failure> {
    // Once more in any case: a new holder may not have written its name yet.
    let deadline = Instant::now() + wait.max(POLL);
    loop {
        match attempt() {
            Err(failure) if failure.class == Class::InUse && Instant::now() < deadline => {
                thread::sleep(POLL);
            }
            answer => return answer,
        }
    }
}

/// The slots of a directory, as one caller opens them.
pub(super) struct Slots<'a> {
    pub store: FileStore,
    pub opening: &'a Opening,
    pub recording: &'a Recording,
}

impl<'a> Slots<'a> {
    pub fn open(opening: &'a Opening, recording: &'a Recording) -> Result<Slots<'a>, Failure> {
        Ok(Slots { store: FileStore::open(&recording.directory)?, opening, recording })
    }

    fn take_or_share(&self, node: Node) -> Result<Share, Failure> {
        let entry = Entry::of(node);
        let mut tenancy = entry.settled_tenancy()?;
        if tenancy.users > 0 {
            tenancy.check_named()?;
            return self.share(&entry, &mut tenancy);
        }
        tenancy.check_unleased()?;
        self.take(&entry, tenancy, Access::Shared)
    }

    /// Shares a node that others in this process have open, recorded in the same directory with the same ttl.
    pub fn share(&self, entry: &Arc<Entry>, tenancy: &mut Tenancy) -> Result<Share, Failure> {
        tenancy.check_recorded_in(self.store.directory(), self.recording.ttl)?;
        tenancy.check_scope(self.opening.host.is_some())?;
        entry.agree(tenancy, self.opening)?;
        Ok(entry.share(tenancy, self.opening.policies))
    }

    /// Takes a slot, unless this process has it, or is taking or releasing it.
    pub fn take_only(&self, node: Node, access: Access) -> Result<Share, Failure> {
        let entry = Entry::of(node);
        let tenancy = entry.tenancy.lock();
        if tenancy.users > 0 || tenancy.is_changing() || tenancy.check_unleased().is_err() {
            let place = self.store.path_of(&node);
            return Err(in_use(&place, tenancy.holder().as_ref()));
        }
        self.take(&entry, tenancy, access)
    }

    fn take(
        &self,
        entry: &Arc<Entry>,
        mut tenancy: MutexGuard<Tenancy>,
        access: Access,
    ) -> Result<Share, Failure> {
        let Slots { store, opening, recording } = self;
        tenancy.recorded = RecordedIn::Changing;
        // The disk may hang: callers that open the node without a store must not wait for it.
        drop(tenancy);
        let max_ahead_ms = opening.max_ahead_ms;
        let generator = match &opening.host {
            None => {
                entry.own.set_max_ahead_ms(max_ahead_ms);
                entry.own.clone()
            }
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
        let taken = Lease::take(store, &generator, holder, recording.ttl, access);
        let mut tenancy = entry.tenancy.lock();
        entry.settled.notify_all();
        tenancy.recorded = RecordedIn::Memory;
        let (lease, directory) = (taken?, store.directory().to_owned());
        tenancy.recorded = RecordedIn::Directory { lease, directory, ttl: recording.ttl };
        if opening.host.is_some() {
            // Above all ticks that the process issued alone, under a lease for example.
            generator.start_above(entry.own.highest());
            tenancy.shared = Some(generator);
        }
        Ok(entry.share(&mut tenancy, opening.policies))
    }
}
