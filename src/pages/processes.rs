//! The table of the processes that use a page, for people: `snowdrift slots` lists them. No guarantee depends on it:
//! killed processes stay in the table, and process IDs of other containers are not valid here.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::files::system::start_of;

/// Capacity of the table. Further processes use the page without an entry.
pub const ENTRIES: usize = 64;

/// An entry of the table; zeros if free.
#[repr(C)]
pub struct ProcessEntry {
    /// High half: the process ID. Low half: the number of its users of the page.
    pid_and_users: AtomicU64,
    /// Start of the process, as the kernel counts it.
    start: AtomicU64,
    opened_ms: AtomicI64,
}

/// A process that uses a page, as its entry reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process ID in its own PID namespace.
    pub pid: u32,
    /// Start of the process, as the kernel counts it.
    pub start: u64,
    /// The number of its users of the page.
    pub users: u32,
    /// Time at which it first opened the page, Unix ms.
    pub opened_ms: i64,
}

impl Process {
    /// Whether the process runs. Valid only within this PID namespace.
    pub fn is_alive(&self) -> bool {
        // This process runs, even if the kernel does not report its start.
        let is_own = self.pid == std::process::id();
        let start = if is_own { Some(own_start()) } else { start_of(self.pid) };
        start == Some(self.start)
    }
}

/// The processes in a table.
pub fn all(table: &[ProcessEntry]) -> impl Iterator<Item = Process> {
    table.iter().filter_map(ProcessEntry::process)
}

/// Adds a user of this process, in its own entry, a free entry, or an ended process's entry.
pub fn enter(table: &[ProcessEntry], now_ms: i64) {
    if change_users(table, 1) {
        return;
    }
    // The check for an ended process is slow, so free entries come first.
    let seen = || table.iter().map(|entry| (entry, entry.process()));
    let free = seen().filter(|(_, process)| process.is_none());
    let left = seen().filter(|(_, process)| process.is_some_and(|process| !process.is_alive()));
    for (entry, process) in free.chain(left) {
        let seen = process.map_or(0, |Process { pid, users, .. }| word_of(pid, users));
        let own = word_of(std::process::id(), 1);
        if entry.pid_and_users.compare_exchange(seen, own, AcqRel, Relaxed).is_ok() {
            entry.opened_ms.store(now_ms, Relaxed);
            entry.start.store(own_start(), Release);
            return;
        }
    }
}

/// A running process of the table, preferably not this one.
pub fn living_other(table: &[ProcessEntry]) -> Option<u32> {
    let mut pids = all(table).filter(Process::is_alive).map(|process| process.pid);
    let first = pids.next()?;
    if first != std::process::id() { Some(first) } else { pids.next().or(Some(first)) }
}

/// Removes a user of this process.
pub fn leave(table: &[ProcessEntry]) {
    change_users(table, -1);
}

/// Changes the number of users in this process's entry, and frees the entry at 0. Returns false if there is no entry.
fn change_users(table: &[ProcessEntry], by: i32) -> bool {
    let (pid, start) = (std::process::id(), own_start());
    let is_own = |process: Process| (process.pid, process.start) == (pid, start);
    let change = |seen: u64| {
        let users = (seen as u32).checked_add_signed(by)?;
        let is_own = seen >> 32 == u64::from(pid);
        is_own.then(|| if users == 0 { 0 } else { word_of(pid, users) })
    };
    let own = table.iter().find(|entry| entry.process().is_some_and(is_own));
    own.is_some_and(|entry| entry.pid_and_users.fetch_update(AcqRel, Acquire, change).is_ok())
}

fn word_of(pid: u32, users: u32) -> u64 {
    u64::from(pid) << 32 | u64::from(users)
}

impl ProcessEntry {
    fn process(&self) -> Option<Process> {
        let pid_and_users = self.pid_and_users.load(Acquire);
        (pid_and_users != 0).then(|| Process {
            pid: (pid_and_users >> 32) as u32,
            users: pid_and_users as u32,
            start: self.start.load(Acquire),
            opened_ms: self.opened_ms.load(Relaxed),
        })
    }
}

/// Start of this process; 0 if the kernel does not report it.
fn own_start() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(|| start_of(std::process::id()).unwrap_or(0))
}
