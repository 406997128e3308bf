//! The process's entry for a node: its generators, its users, and where the node is recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Opening;
use crate::core::clock::SystemClock;
use crate::core::fault::{Failure, Fault, fault};
use crate::core::node::Node;
use crate::generator::{Generator, WindowId};
use crate::lease::{Lease, Report};
use crate::pages::{Authority, Page};
use crate::store::Holder;

/// The longest wait for another thread that takes or releases the same slot. Shorter than a constructor's wait for
/// the disk, so that the constructor can report this reason.
pub(super) const SETTLE: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 8_000 });

static NODES: LazyLock<Mutex<HashMap<Node, Arc<Entry>>>> = LazyLock::new(Mutex::default);

pub(super) struct Entry {
    /// The generator of IDs that the process issues alone. It is never dropped.
    pub own: Arc<Generator>,
    pub tenancy: Mutex<Tenancy>,
    pub settled: Condvar,
}

#[derive(Default)]
pub(super) struct Tenancy {
    pub users: usize,
    pub recorded: RecordedIn,
    /// The generator on the host's page, while the process has one open.
    pub shared: Option<Arc<Generator>>,
    /// The generators of leases that the host's processes share. More than one while some instances have moved to the
    /// next page and others have not.
    pub leased: Vec<Leased>,
    /// The second users to warn of, and the time at which they were read.
    pub second_users: Option<(Instant, Vec<Fault>)>,
}

/// Where the IDs of a node are recorded.
#[derive(Default)]
pub(super) enum RecordedIn {
    /// In the process's memory, or the host's page.
    #[default]
    Memory,
    /// A thread takes or releases a lease.
    Changing,
    /// In a store that JavaScript talks to. It has confirmed this window.
    Store(WindowId),
    /// In a directory too.
    Directory { lease: Lease, directory: PathBuf, ttl: Duration },
}

/// A leased page that the process has open.
pub(super) struct Leased {
    pub generator: Arc<Generator>,
    pub window: WindowId,
    pub users: usize,
    /// The users that renew it in a thread of their own.
    pub threads: usize,
}

impl Leased {
    pub fn is_of(&self, page: &Page) -> bool {
        self.generator.page().id() == page.id()
    }

    /// Whether its page has ended and issues nothing any more.
    fn has_ended(&self) -> bool {
        self.generator.page().has_ended()
    }
}

impl Entry {
    pub fn of(node: Node) -> Arc<Entry> {
        let mut nodes = NODES.lock();
        let entry = nodes.entry(node).or_insert_with(|| {
            Arc::new(Entry {
                own: Arc::new(Generator::new(node, 0, Box::new(SystemClock))),
                tenancy: Mutex::new(Tenancy::default()),
                settled: Condvar::new(),
            })
        });
        entry.clone()
    }

    /// The entry of a node that the process has had open.
    pub fn known(node: &Node) -> Option<Arc<Entry>> {
        NODES.lock().get(node).cloned()
    }

    /// The tenancy, once no thread takes or releases a lease.
    pub fn settled_tenancy(&self) -> Result<MutexGuard<'_, Tenancy>, Failure> {
        let deadline = Instant::now() + SETTLE;
        let mut tenancy = self.tenancy.lock();
        while matches!(tenancy.recorded, RecordedIn::Changing) {
            if self.settled.wait_until(&mut tenancy, deadline).timed_out() {
                let node = self.own.node();
                let (datacenter, worker) = (node.datacenter_id(), node.worker_id());
                let waited = SETTLE.as_secs();
                let fault = fault!("slot-busy", datacenter, worker, waited);
                return Err(fault.into());
            }
        }
        Ok(tenancy)
    }

    /// All users at one time agree on `maxAhead`; the first one decides.
    pub fn agree(&self, tenancy: &Tenancy, opening: &Opening) -> Result<(), Failure> {
        let generator = tenancy.shared.as_ref().unwrap_or(&self.own);
        if tenancy.users == 0 && tenancy.shared.is_none() {
            generator.set_max_ahead_ms(opening.max_ahead_ms);
        }
        match generator.max_ahead_ms() {
            in_force if in_force == generator.whole_ticks(opening.max_ahead_ms) => Ok(()),
            in_force => Err(fault!("open-max-ahead", maxAhead: in_force).into()),
        }
    }
}

impl Tenancy {
    /// Refuses a node that a store records.
    pub fn check_unrecorded(&self) -> Result<(), Failure> {
        match &self.recorded {
            RecordedIn::Memory => Ok(()),
            RecordedIn::Changing => Err(fault!("open-recorded").into()),
            RecordedIn::Store(_) => Err(fault!("open-leased").into()),
            RecordedIn::Directory { lease, .. } => Err(open_recorded_in(lease)),
        }
    }

    /// Refuses a node that the process has open with the other scope.
    pub fn check_scope(&self, is_host: bool) -> Result<(), Failure> {
        if self.users == 0 || self.shared.is_some() == is_host {
            return Ok(());
        }
        let scope = if is_host { "process" } else { "host" };
        Err(fault!("open-in-scope", scope).into())
    }

    /// Refuses a node that the process has by a lease of the host, even where somebody has deleted the page.
    pub fn check_unleased(&self) -> Result<(), Failure> {
        if self.leased.iter().all(Leased::has_ended) {
            return Ok(());
        }
        Err(fault!("open-leased", scope: "host").into())
    }

    /// Refuses to open by its name a slot that the host's processes lease.
    pub fn check_named(&self) -> Result<(), Failure> {
        match &self.recorded {
            RecordedIn::Directory { lease, .. } if self.is_host_lease() => {
                Err(fault!("open-leased", store: lease.report().store).into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a node that is not recorded in this directory with this ttl.
    pub fn check_recorded_in(&self, directory: &Path, ttl: Duration) -> Result<(), Failure> {
        match &self.recorded {
            RecordedIn::Directory { directory: in_force, ttl: ttl_in_force, .. }
                if in_force == directory && *ttl_in_force == ttl =>
            {
                Ok(())
            }
            RecordedIn::Directory { lease, .. } => Err(open_recorded_in(lease)),
            _ => Err(fault!("open-unrecorded").into()),
        }
    }

    pub fn is_changing(&self) -> bool {
        matches!(self.recorded, RecordedIn::Changing)
    }

    /// The lease from a directory, if there is one.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.recorded {
            RecordedIn::Directory { lease, .. } => Some(lease),
            _ => None,
        }
    }

    pub fn holder(&self) -> Option<Holder> {
        self.lease().map(|lease| lease.report().holder)
    }

    /// Whether the host's processes have leased the slot.
    pub fn is_host_lease(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| {
            let authority = shared.page().header().terms.authority;
            matches!(authority, Authority::Record { is_leased: true, .. })
        })
    }
}

fn open_recorded_in(lease: &Lease) -> Failure {
    let Report { store, ttl, .. } = lease.report();
    fault!("open-recorded", store, ttl: ttl.as_millis()).into()
}

/// Releases all slots still held at the end of the process. Takes at most this long, and skips slots whose state
/// another thread is changing.
pub fn release_all(at_most: Duration) {
    let deadline = Instant::now() + at_most;
    let Some(nodes) = NODES.try_lock_for(at_most) else { return };
    let leases: Vec<Lease> = nodes
        .values()
        .filter_map(|entry| {
            let mut tenancy = entry.tenancy.try_lock_until(deadline)?;
            tenancy.lease()?;
            // Nothing opens the node any more.
            match std::mem::replace(&mut tenancy.recorded, RecordedIn::Changing) {
                RecordedIn::Directory { lease, .. } => Some(lease),
                _ => None,
            }
        })
        .collect();
    Lease::release_all(leases, deadline);
}
