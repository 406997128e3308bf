//! The processes that use a page, for people: `snowdrift slots` lists them. No guarantee depends on the table: killed
//! processes stay in it, and process IDs of other containers mean nothing here.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::files::system::start_of;

/// Capacity of the table. Processes beyond it use the page all the same.
pub const ENTRIES: usize = 64;

/// An entry of the table; zeros for a free one.
#[repr(C)]
pub struct Entry {
    /// The process ID in the high half, its number of open users in the low half.
    pid_and_users: AtomicU64,
    /// Start of the process, as the kernel counts it.
    start: AtomicU64,
    opened_ms: AtomicI64,
}

/// A process that uses a page, by its own entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The ID in its own PID namespace.
    pub pid: u32,
    /// Start of the process, as the kernel counts it.
    pub start: u64,
    /// Number of times it has the page open.
    pub users: u32,
    /// Time at which it first opened the page, Unix ms.
    pub opened_ms: i64,
}

impl Process {
    /// Whether the process runs. Valid only within this PID namespace.
    pub fn is_alive(&self) -> bool {
        is_alive(self.pid, self.start)
    }
}

/// The processes in a table.
pub fn all(table: &[Entry]) -> impl Iterator<Item = Process> {
    table.iter().filter_map(Entry::process)
}

/// Adds a user of this process: in its own entry, a free one, or one of an ended process.
pub fn enter(table: &[Entry], now_ms: i64) {
    let (pid, start) = (std::process::id(), own_start());
    let own = table.iter().find(|entry| entry.is_of(pid, start));
    if let Some(entry) = own {
        let added = entry.update(|users| users.checked_add(1));
        if added.is_some() {
            return;
        }
    }
    // The check for an ended process is slow, so free entries come first.
    let seen = || table.iter().map(|entry| (entry, entry.pid_and_users.load(Acquire)));
    let free = seen().filter(|&(_, seen)| seen == 0);
    for (entry, seen) in free.chain(seen().filter(|(entry, seen)| !entry.is_alive(*seen))) {
        let taken = u64::from(pid) << 32 | 1;
        if entry.pid_and_users.compare_exchange(seen, taken, AcqRel, Relaxed).is_ok() {
            entry.opened_ms.store(now_ms, Relaxed);
            entry.start.store(start, Release);
            return;
        }
    }
}

/// A running process of the table, preferably another one than this.
pub fn living_other(table: &[Entry]) -> Option<u32> {
    let mut pids = all(table).filter(Process::is_alive).map(|process| process.pid);
    let first = pids.next()?;
    if first != std::process::id() { Some(first) } else { pids.next().or(Some(first)) }
}

/// Removes a user of this process.
pub fn leave(table: &[Entry]) {
    let (pid, start) = (std::process::id(), own_start());
    if let Some(entry) = table.iter().find(|entry| entry.is_of(pid, start)) {
        entry.update(|users| users.checked_sub(1));
    }
}

impl Entry {
    fn process(&self) -> Option<Process> {
        let pid_and_users = self.pid_and_users.load(Acquire);
        (pid_and_users != 0).then(|| Process {
            pid: (pid_and_users >> 32) as u32,
            users: pid_and_users as u32,
            start: self.start.load(Acquire),
            opened_ms: self.opened_ms.load(Relaxed),
        })
    }

    fn is_of(&self, pid: u32, start: u64) -> bool {
        (self.pid_and_users.load(Acquire) >> 32) as u32 == pid && self.start.load(Acquire) == start
    }

    fn is_alive(&self, seen: u64) -> bool {
        is_alive((seen >> 32) as u32, self.start.load(Acquire))
    }

    /// Changes the number of this process's users. Frees the entry at 0.
    fn update(&self, change: impl Fn(u32) -> Option<u32>) -> Option<u64> {
        let pid = u64::from(std::process::id()) << 32;
        let changed = self.pid_and_users.fetch_update(AcqRel, Acquire, |seen| {
            let is_own = seen != 0 && seen >> 32 == pid >> 32;
            let users = is_own.then(|| change(seen as u32)).flatten()?;
            Some(if users == 0 { 0 } else { pid | u64::from(users) })
        });
        changed.ok()
    }
}

fn is_alive(pid: u32, start: u64) -> bool {
    // Of itself a process needs no report, which the kernel may fail to give.
    let found = if pid == std::process::id() { Some(own_start()) } else { start_of(pid) };
    found == Some(start)
}

/// Start of this process; 0 where the kernel does not report it.
fn own_start() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(|| start_of(std::process::id()).unwrap_or(0))
}
