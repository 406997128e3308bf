//! Leases from directories. Callers of this process that want the same slot share one lease.

use std::collections::HashMap;
use std::path::PathBuf;
use std::slice;
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::executor::{Executor, Leased};
use super::host_pages::{HostPages, IsUsable};
use super::keeper::{CALL_MS, Keeper, directory_settings, now};
use super::request::{Request, Scope};
use crate::core::fault::{Failure, fault};
use crate::core::layout::Layout;
use crate::core::listeners::Listeners;
use crate::files::bounded::bounded;
use crate::lease::{Holder, Limits, Patience, Settings};
use crate::register::Register;

/// How long a caller waits for a directory beyond the time for which others may hold the slots. Longer than the host's lock is waited
/// for, so that the reason is reported.
const DISK_OF_LEASE: Duration = Duration::from_secs(9);
/// The shortest wait for a slot that is claimed for the host: its other processes may be releasing it.
const GRACE: Duration = Duration::from_millis(500);
/// How long the release of a lease holds its thread. It takes some 0.1 ms, unless the disk hangs.
const RELEASE: Duration = Duration::from_secs(1);
/// The interval of checks that a lease has been released.
const GLANCE: Duration = Duration::from_micros(100);

/// The leases of this process that have not ended.
static LEASES: LazyLock<Mutex<Vec<Weak<Executor>>>> = LazyLock::new(Mutex::default);
/// The leases that callers with the same wishes share.
static COMMON: LazyLock<Mutex<HashMap<Common, CommonLease>>> = LazyLock::new(Mutex::default);

/// The settings of a lease from a directory, besides what is requested of its generator.
#[derive(Clone, Debug)]
pub struct DirectoryLeasing {
    /// The directory.
    pub directory: PathBuf,
    /// How long a renewal lasts.
    pub ttl: Duration,
    /// The longest wait for a slot that others hold.
    pub wait: Duration,
    /// This host's name.
    pub host: String,
    /// The start of this process, Unix ms.
    pub started_ms: i64,
    /// Whether all callers in the process that want any slot get the same one, also where no other process shares it.
    pub is_common: bool,
}

/// The wishes of callers that share a lease: a slot in this directory, and the host's pages in that one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Common {
    directory: PathBuf,
    pages: Option<PathBuf>,
    layout: Layout,
    datacenter: u64,
    claim: Option<u64>,
}

/// A lease that callers share.
struct CommonLease {
    lease: Weak<DirectoryLease>,
    executor: Weak<Executor>,
}

impl CommonLease {
    /// Whether all have given it up, and its slot is not free yet.
    fn is_ending(&self) -> bool {
        self.lease.strong_count() == 0 && self.executor.strong_count() > 0
    }
}

/// A lease from a directory. Dropping it frees the slot, and waits a short time for the register to note it. If that takes longer, it
/// does so later, or the end of the process frees the slot. All shares are given up before.
pub struct DirectoryLease {
    executor: Arc<Executor>,
    limits: Limits,
}

impl DirectoryLease {
    /// The lease that a request wants. Waits until it has a slot, within bounds where the disk hangs.
    pub fn open(
        request: &Request,
        leasing: &DirectoryLeasing,
        is_usable: IsUsable,
    ) -> Result<Arc<DirectoryLease>, Failure> {
        let Request { worker_id: claim, scope, .. } = *request;
        request.node()?;
        let grace = if claim.is_some() && scope != Scope::Process { GRACE } else { Duration::ZERO };
        let (wait, begun) = (leasing.wait.max(grace), Instant::now());
        let left = |of: Duration| of.saturating_sub(begun.elapsed());
        loop {
            let begin = (request.clone(), leasing.clone(), is_usable.clone(), wait);
            let (lease, is_own) = DirectoryLease::begin(begin, left(wait + DISK_OF_LEASE))?;
            let disk = left(wait + DISK_OF_LEASE).saturating_sub(left(wait));
            match lease.executor.first((left(wait), disk), is_own) {
                // Another caller began it, and waited for a shorter time.
                Err(_) if !is_own && lease.state().has_ended && begun.elapsed() < wait => {}
                first => return first.map(|()| lease),
            }
        }
    }

    /// Begins a lease in a thread of its own, or finds the one that other callers have begun. Returns whether it is new.
    fn begin(
        (request, leasing, is_usable, wait): (Request, DirectoryLeasing, IsUsable, Duration),
        at_most: Duration,
    ) -> Result<(Arc<DirectoryLease>, bool), Failure> {
        let place = leasing.directory.clone();
        let failed = Failure::io("slot-io", "start a thread for", &place);
        bounded((&place, at_most), ("snowdrift-lease", failed), move |answer| {
            // Where its caller waits no longer, dropping the lease ends it.
            match DirectoryLease::find(request, &leasing, is_usable, wait) {
                Ok((lease, None)) => drop(answer.send(Ok((lease, false)))),
                Ok((lease, Some(keeper))) => {
                    let executor = lease.executor.clone();
                    drop(answer.send(Ok((lease, true))));
                    executor.execute(keeper);
                }
                Err(failure) => drop(answer.send(Err(failure))),
            }
        })
    }

    /// The lease that a request wants, and what its thread executes if it is new.
    fn find(
        request: Request,
        leasing: &DirectoryLeasing,
        is_usable: IsUsable,
        wait: Duration,
    ) -> Result<(Arc<DirectoryLease>, Option<Keeper>), Failure> {
        let Request { layout, datacenter_id: datacenter, worker_id: claim, .. } = request;
        let register = Register::open(&leasing.directory)?;
        let times = (leasing.ttl.as_millis() as i64, request.max_ahead() * layout.tick_ms);
        let pages = HostPages::of(request, is_usable)?;
        let wanted = Common {
            directory: register.directory().to_owned(),
            pages: pages.directory().map(|path| path.to_owned()),
            layout,
            datacenter,
            claim,
        };
        let holder = Holder::new(std::process::id(), leasing.started_ms, "", &leasing.host);
        let settings = directory_settings(layout, datacenter, claim, times, holder);
        let limits = settings.limits;
        let start = || {
            let (lease, keeper) = DirectoryLease::start(register, pages, settings, wait);
            (Arc::new(lease), Some(keeper))
        };
        match leasing.is_common || claim.is_some() || wanted.pages.is_some() {
            true => DirectoryLease::common(&wanted, limits, start),
            false => Ok(start()),
        }
    }

    /// A lease that begins now, which waits this long while others hold the slots. Its thread executes the keeper.
    pub(super) fn start(
        register: Register,
        host: HostPages,
        settings: Settings,
        wait: Duration,
    ) -> (DirectoryLease, Keeper) {
        let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 4);
        let patience = Patience { wait: wait_ms, call: CALL_MS };
        let store = format!("file://{}", register.directory().display());
        let limits = settings.limits;
        let executor = Arc::new(Executor::new(store));
        let keeper = Keeper::new(register, host, settings, patience, now());
        let mut leases = LEASES.lock();
        leases.retain(|one| one.strong_count() > 0);
        leases.push(Arc::downgrade(&executor));
        (DirectoryLease { executor, limits }, keeper)
    }

    /// The lease that all share who want this. The first one starts it.
    fn common(
        wanted: &Common,
        limits: Limits,
        start: impl FnOnce() -> (Arc<DirectoryLease>, Option<Keeper>),
    ) -> Result<(Arc<DirectoryLease>, Option<Keeper>), Failure> {
        let begun = Instant::now();
        let mut common = COMMON.lock();
        // Another thread is giving it up, which takes as long as the disk. Its slot looks held, or as if its writer had stopped.
        while begun.elapsed() < DISK_OF_LEASE
            && common.get(wanted).is_some_and(CommonLease::is_ending)
        {
            MutexGuard::unlocked(&mut common, || thread::sleep(GLANCE));
        }
        let known = common.get(wanted).and_then(|known| known.lease.upgrade());
        // One that has ended has found no slot, and its callers have not given it up yet.
        if let Some(lease) = known.filter(|lease| !lease.executor.has_ended()) {
            let Limits { ttl, max_ahead, .. } = lease.limits;
            return match (ttl == limits.ttl, max_ahead == limits.max_ahead) {
                (true, true) => Ok((lease, None)),
                (true, false) => Err(fault!("open-max-ahead", maxAhead: max_ahead).into()),
                _ => Err(fault!("open-ttl", store: lease.store(), ttl).into()),
            };
        }
        common.retain(|_, known| known.executor.strong_count() > 0);
        let (lease, keeper) = start();
        let executor = Arc::downgrade(&lease.executor);
        common.insert(wanted.clone(), CommonLease { lease: Arc::downgrade(&lease), executor });
        Ok((lease, keeper))
    }

    /// The directory, as errors name it.
    pub fn store(&self) -> &str {
        &self.executor.store
    }

    /// How far ahead of the clock the namespace's floor may be after a loss of data, ms.
    pub fn reach(&self) -> i64 {
        self.limits.reach()
    }

    /// The present state.
    pub fn state(&self) -> Leased {
        self.executor.state()
    }

    /// Listeners notified whenever the state changes, and after each renewal.
    pub fn listeners(&self) -> &Listeners {
        &self.executor.listeners
    }
}

impl Drop for DirectoryLease {
    fn drop(&mut self) {
        self.executor.close(false);
        await_ends(slice::from_ref(&self.executor), RELEASE);
    }
}

/// Releases all leases at the end of the process, within this time. It needs nothing that the end of a process has destroyed already.
pub fn release_all(at_most: Duration) {
    let Some(mut leases) = LEASES.try_lock_for(at_most) else { return };
    let leases: Vec<_> = leases.drain(..).filter_map(|one| one.upgrade()).collect();
    leases.iter().for_each(|one| one.close(true));
    await_ends(&leases, at_most);
}

fn await_ends(leases: &[Arc<Executor>], at_most: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < at_most && leases.iter().any(|one| !one.has_ended()) {
        thread::sleep(GLANCE);
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", not(miri)))]
mod tests;
