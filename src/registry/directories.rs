//! Leases from directories. Those who want the same in this process share one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::entry::SETTLE;
use super::executor::{Executor, Leased};
use super::host::HostPages;
use super::keeper::{CALL_MS, Keeper, now};
use super::reasons::Reasons;
use super::request::Request;
use super::share::Share;
use crate::core::fault::{Failure, fault};
use crate::core::layout::Layout;
use crate::core::listeners::Listeners;
use crate::lease::{Patience, Settings};
use crate::register::Register;

/// The interval of checks that a lease has been released. Most releases take this long.
const GLANCE: Duration = Duration::from_micros(100);

/// The leases that all who want the same in this process share. Each has its own lock, since callers wait for the disk under it.
static COMMON: LazyLock<Mutex<HashMap<Common, Arc<Place>>>> = LazyLock::new(Mutex::default);

/// The lease of all who want it, while any of them has it.
type Place = Mutex<Weak<DirectoryLease>>;

/// What those want who share a lease: a slot in this directory, the host's pages in that one, and the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Common {
    directory: PathBuf,
    pages: Option<PathBuf>,
    layout: Layout,
    datacenter: u64,
    claim: Option<u64>,
    times: (i64, i64),
}

impl Common {
    /// Of a lease with these settings.
    pub fn of(register: &Register, pages: &HostPages, settings: &Settings) -> Common {
        let Settings { layout, datacenter, claim, limits, .. } = *settings;
        Common {
            directory: register.directory().to_owned(),
            pages: pages.directory().map(|path| path.to_owned()),
            layout,
            datacenter,
            claim,
            times: (limits.ttl, limits.max_ahead),
        }
    }
}

/// A lease from a directory.
pub struct DirectoryLease {
    executor: Arc<Executor>,
    thread: JoinHandle<()>,
}

impl DirectoryLease {
    /// Begins a lease, and waits until it has a slot: for `wait` while others hold them, and for `disk` more if the disk is slow.
    pub fn take(
        register: Register,
        host: HostPages,
        settings: Settings,
        (wait, disk): (Duration, Duration),
    ) -> Result<DirectoryLease, Failure> {
        let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 4);
        let patience = Patience { wait: wait_ms, call: CALL_MS };
        let store = format!("file://{}", register.directory().display());
        let place = register.directory().to_owned();
        let failed = Failure::io("slot-io", "start a thread for", &place);
        let reasons = Reasons::new(store, &settings);
        let executor = Arc::new(Executor::new(reasons, wait.saturating_add(disk)));
        let keeper = Keeper::new(register, host, settings, patience, now());
        let (thread, executing) = (thread::Builder::new(), executor.clone());
        let thread = thread.name("snowdrift-lease".to_owned());
        let thread = thread.spawn(move || executing.execute(keeper)).map_err(failed)?;
        let lease = DirectoryLease { executor, thread };
        lease.executor.first().map(|()| lease)
    }

    /// The lease that all share who want this. The first one takes it.
    pub fn common(
        wanted: Common,
        take: impl FnOnce() -> Result<DirectoryLease, Failure>,
    ) -> Result<Arc<DirectoryLease>, Failure> {
        let place = wanted.directory.clone();
        let common = COMMON.lock().entry(wanted).or_default().clone();
        let Some(mut common) = common.try_lock_for(SETTLE) else {
            return Err(fault!("slot-busy", place, waited: SETTLE.as_secs()).into());
        };
        if let Some(lease) = common.upgrade() {
            return Ok(lease);
        }
        let lease = Arc::new(take()?);
        *common = Arc::downgrade(&lease);
        Ok(lease)
    }

    /// The present state.
    pub fn state(&self) -> Leased {
        self.executor.state()
    }

    /// Another share in the generator of the present slot, for one user.
    pub fn share(&self, request: &Request) -> Option<Share> {
        self.state().slot?.share(request)
    }

    /// Listeners notified whenever the state changes, and after each renewal.
    pub fn listeners(&self) -> &Listeners {
        &self.executor.listeners
    }

    /// This machine was restored from a snapshot: the page ends at once.
    pub fn restore(&self) {
        self.executor.wish(|wishes| wishes.is_restored = true);
    }

    /// Releases the slot, and waits this long for the register to note it. If that takes longer, it does so later, or the end of
    /// the process frees the slot. All shares are given up before.
    pub fn release(self, at_most: Duration) {
        DirectoryLease::release_all(vec![self], Instant::now() + at_most);
    }

    /// Releases several at once. It needs nothing that the end of a process has destroyed already.
    pub fn release_all(leases: Vec<DirectoryLease>, deadline: Instant) {
        leases.iter().for_each(DirectoryLease::give_up);
        for lease in &leases {
            while !lease.thread.is_finished() && Instant::now() < deadline {
                thread::sleep(GLANCE);
            }
        }
    }

    fn give_up(&self) {
        self.executor.wish(|wishes| wishes.is_closing = true);
    }
}

impl Drop for DirectoryLease {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", not(miri)))]
mod tests;
