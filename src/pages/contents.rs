//! The 4096 bytes of a page, in this process's own memory or in a file that all processes of the node map.
//!
//! | bytes | content | writer |
//! |---|---|---|
//! | 0..256 | the [`Header`](super::Header) | the creator, before the page has its name |
//! | 256..640 | the [`Cells`] | each reservation |
//! | 640..1152 | the [`Notes`]: the file's identity, the lease | see there |
//! | 1152..2688 | the [table of processes](super::processes), for people | processes that open or close the page |
//! | 2688..4096 | zeros | |
//!
//! Format 4 of header and cells never changes, since versions of snowdrift share a page during an upgrade.

use std::mem::offset_of;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::time::{SystemTime, UNIX_EPOCH};

use super::header::{HEADER_BYTES, PAGE_MAGIC};
use super::processes::{ENTRIES, ProcessEntry};
use crate::core::loss::Loss;
use crate::core::sequence::Cells;
use crate::files::path::Identity;

/// The length of a page.
pub const BYTES: usize = 4096;

/// A page's bytes. All words are atomic.
#[repr(C, align(128))]
pub struct Contents {
    header: [AtomicU64; HEADER_BYTES / 8],
    pub cells: Cells,
    pub notes: Notes,
    pub processes: [ProcessEntry; ENTRIES],
    _rest: [AtomicU64; 176],
}

const _: () = assert!(
    size_of::<Contents>() == BYTES
        && offset_of!(Contents, cells) == 256
        && offset_of!(Contents, notes) == 640
        && offset_of!(Contents, processes) == 1152
        && offset_of!(Contents, _rest) == 2688
);

impl Contents {
    /// Whether the first bytes of the header are intact: the page was neither overwritten nor cleared.
    pub fn is_intact(&self) -> bool {
        self.header[0].load(Acquire).to_ne_bytes() == PAGE_MAGIC
    }

    /// Writes the header. Call it only while no other process can map the page.
    pub fn set_header(&self, bytes: [u8; HEADER_BYTES]) {
        for (word, bytes) in self.header.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Release);
        }
    }
}

/// A page as words. All zeros is a fresh sequencer.
#[repr(C, align(128))]
pub struct Words([AtomicU64; BYTES / 8]);

impl Default for Words {
    fn default() -> Self {
        Words(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Words {
    /// The contents.
    #[inline]
    pub fn contents(&self) -> &Contents {
        // SAFETY: the words have the length and the alignment of `Contents`. All its fields are 64-bit atomics, too,
        // and any bits are a valid value of an atomic.
        unsafe { &*(&raw const self.0).cast::<Contents>() }
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.load(Acquire).to_ne_bytes()).collect()
    }
}

/// The words of a page beside its cells: what its users note about it.
#[repr(C)]
pub struct Notes {
    /// The file's identity, which a copy of the file does not share. Written by the creator.
    device: AtomicU64,
    file: [AtomicU64; 2],
    /// Leased pages: the namespace's ID. Written by the creator.
    namespace: AtomicU64,
    /// Leased pages: the reason of the page's end, a [`Loss`]; 0 before. Written by the process that ends it.
    loss: AtomicU64,
    /// Leased pages: the time of the last renewal, in ms of the host's monotonic clock, and the number of renewals.
    renewed_ms: AtomicI64,
    renewals: AtomicU64,
    /// Leased pages: the process that last renewed the lease, and since when it does (Unix ms).
    renewer: AtomicU64,
    since_ms: AtomicI64,
    /// Leased pages: the time at which the lease expires unless renewed (Unix ms plus one; 0 for never).
    expires: AtomicI64,
    /// Leased pages: the renewing process's ttl.
    ttl_ms: AtomicI64,
    /// Leased pages: the lease word, known and pending token in 32 bits each.
    pub(super) lease_word: AtomicU64,
    /// Leased pages: 1 if the page stays once it has ended. Written by the creator.
    is_kept: AtomicU64,
    /// Zeros.
    _rest: [AtomicU64; 51],
}

/// The state of a lease, as its page has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The random ID of the namespace. Each store and directory has another one.
    pub namespace: u64,
    /// The random ID of the holder there.
    pub owner: u64,
    /// The reason of the page's end, if it has ended.
    pub loss: Option<Loss>,
    /// Time of the last renewal, in ms of the host's monotonic clock.
    pub renewed_ms: i64,
    /// Number of renewals.
    pub renewals: u64,
    /// The process that renewed the lease last.
    pub renewer: u32,
    /// The time since which that process renews it, Unix ms.
    pub since_ms: i64,
    /// Time at which the lease expires, Unix ms of the clock of the store or directory; `None` for never.
    pub expires_ms: Option<i64>,
    /// The renewing process's ttl. Processes may have different ones.
    pub ttl_ms: i64,
}

fn id(words: &[AtomicU64; 2]) -> u128 {
    u128::from(words[1].load(Acquire)) << 64 | u128::from(words[0].load(Acquire))
}

fn set_id(words: &[AtomicU64; 2], id: u128) {
    words[0].store(id as u64, Release);
    words[1].store((id >> 64) as u64, Release);
}

impl Notes {
    /// The identity of the file that was created for the page. A copy of the file has another identity.
    pub(super) fn original_file(&self) -> Identity {
        (self.device.load(Acquire), id(&self.file))
    }

    pub(super) fn set_original_file(&self, (device, file): Identity) {
        self.device.store(device, Release);
        set_id(&self.file, file);
    }

    /// The process that renewed last, and the time since which it does (Unix ms).
    pub fn renewer(&self) -> (u32, i64) {
        (self.renewer.load(Acquire) as u32, self.since_ms.load(Acquire))
    }

    /// Notes this process as the one that renewed last.
    pub fn note_renewer(&self) {
        let pid = u64::from(std::process::id());
        if self.renewer.swap(pid, AcqRel) != pid {
            self.since_ms.store(unix_ms(), Release);
        }
    }

    /// The state of the lease.
    pub(super) fn lease_status(&self, owner: u64) -> LeaseStatus {
        let (renewer, since_ms) = self.renewer();
        LeaseStatus {
            namespace: self.namespace.load(Acquire),
            owner,
            loss: Loss::of_number(self.loss.load(Acquire)),
            renewed_ms: self.renewed_ms.load(Acquire),
            renewals: self.renewals.load(Acquire),
            renewer,
            since_ms,
            expires_ms: self.expires.load(Acquire).checked_sub(1).filter(|&ms| ms >= 0),
            ttl_ms: self.ttl_ms.load(Acquire),
        }
    }

    /// Keeps the page once it has ended: what it issued is recorded where an old copy may be put back.
    pub fn keep(&self) {
        self.is_kept.store(1, Release);
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Acquire) != 0
    }

    /// The ID of a leased page's namespace.
    pub fn set_namespace(&self, namespace: u64) {
        self.namespace.store(namespace, Release);
    }

    /// See [`Page::is_disputed`](super::Page::is_disputed).
    #[inline]
    pub(super) fn is_disputed(&self) -> bool {
        Loss::of_number(self.loss.load(Acquire)).is_some_and(Loss::is_disputed)
    }

    /// Counts a renewal by this process.
    pub fn note_renewal(&self, now_ms: i64, expires_ms: Option<i64>, ttl_ms: i64) {
        self.renewals.fetch_add(1, AcqRel);
        self.set_renewed(now_ms, expires_ms, ttl_ms);
    }

    /// Notes a renewal of this process that the store confirmed.
    pub fn set_renewed(&self, now_ms: i64, expires_ms: Option<i64>, ttl_ms: i64) {
        self.note_renewer();
        self.expires.store(expires_ms.map_or(0, |ms| ms.max(0) + 1), Release);
        self.ttl_ms.store(ttl_ms, Release);
        self.renewed_ms.store(now_ms, Release);
    }

    /// Notes the reason of a leased page's end. Keeps the first reason, but one that makes its IDs disputed replaces one that does
    /// not. Returns whether it is the first.
    pub(super) fn note_loss(&self, loss: Loss) -> bool {
        let may_follow = |seen| match Loss::of_number(seen) {
            Some(first) => loss.is_disputed() && !first.is_disputed(),
            None => seen == 0,
        };
        let change = |seen| may_follow(seen).then_some(loss as u64);
        self.loss.fetch_update(AcqRel, Acquire, change) == Ok(0)
    }
}

pub(super) fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
