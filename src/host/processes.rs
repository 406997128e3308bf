//! The processes that use a page, for people: `snowdrift slots` shows them. Nothing is decided by it,
//! since processes are killed without a word, and process IDs of other containers mean nothing here.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::system::start_of;

/// How many processes are shown. Others use the page all the same.
pub const ENTRIES: usize = 64;

/// An entry of the table in a page; zeros are a free one.
#[repr(C)]
pub struct Entry {
    /// The process ID in the high half, how often it opened the page in the low one.
    pid_and_users: AtomicU64,
    /// When the process started, as the kernel counts it.
    start: AtomicU64,
    opened_ms: AtomicI64,
}

/// A process that uses a page, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// In its own PID namespace.
    pub pid: u32,
    /// When it started, as the kernel counts it.
    pub start: u64,
    /// How often it has opened the page and not closed it.
    pub users: u32,
    /// When it opened the page first, Unix ms.
    pub opened_ms: i64,
}

impl Process {
    /// Whether it still runs, if it is of our PID namespace.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    pub(super) fn from_bytes(bytes: &[u8; size_of::<Entry>()]) -> Option<Process> {
        let (words, _) = bytes.as_chunks::<8>();
        let pid_and_users = u64::from_ne_bytes(words[0]);
        (pid_and_users != 0).then(|| Process {
            pid: (pid_and_users >> 32) as u32,
            users: pid_and_users as u32,
            start: u64::from_ne_bytes(words[1]),
            opened_ms: i64::from_ne_bytes(words[2]),
        })
    }
}

/// Adds a user of this process, in an entry of its own, a free one, or one of a process that has ended.
pub fn enter(table: &[Entry], now_ms: i64) {
    let (pid, start) = (std::process::id(), own_start());
    let own = table.iter().find(|entry| entry.is_of(pid, start));
    if let Some(entry) = own {
        let added = entry.update(|users| users.checked_add(1));
        if added.is_some() {
            return;
        }
    }
    // Whether a process has ended takes long to find out.
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

/// A process of the table that runs, other than this one if there is one.
pub fn living_other(table: &[Entry]) -> Option<u32> {
    let living = |entry: &&Entry| {
        let seen = entry.pid_and_users.load(Acquire);
        seen != 0 && entry.is_alive(seen)
    };
    let pid = |entry: &Entry| (entry.pid_and_users.load(Acquire) >> 32) as u32;
    let mut pids = table.iter().filter(living).map(pid);
    let first = pids.next()?;
    if first != std::process::id() { Some(first) } else { pids.next().or(Some(first)) }
}

/// Takes away a user of this process.
pub fn leave(table: &[Entry]) {
    let (pid, start) = (std::process::id(), own_start());
    if let Some(entry) = table.iter().find(|entry| entry.is_of(pid, start)) {
        entry.update(|users| users.checked_sub(1));
    }
}

impl Entry {
    fn is_of(&self, pid: u32, start: u64) -> bool {
        (self.pid_and_users.load(Acquire) >> 32) as u32 == pid && self.start.load(Acquire) == start
    }

    fn is_alive(&self, seen: u64) -> bool {
        start_of((seen >> 32) as u32) == Some(self.start.load(Acquire))
    }

    /// Changes the number of this process's users. Without any, the entry is free.
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

/// When this process started; 0 where the kernel does not tell.
fn own_start() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(|| start_of(std::process::id()).unwrap_or(0))
}
