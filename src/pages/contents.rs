//! The bytes of a page: 4096, in a file that every process that issues the node's IDs maps, or in this process's memory.
//!
//! | bytes | content | writer |
//! |---|---|---|
//! | 0..256 | the [`Header`](super::Header) | the creator, before the page has its name |
//! | 256..640 | the [`Cells`] | every reservation |
//! | 640..1152 | the words of the authority and of the page's life: [`Kept`] | see there |
//! | 1152..2688 | the [table of processes](super::processes), for people | processes that open or close it |
//! | 2688..3712 | the tokens of renewals that processes [announce](super::tokens), and those of their predecessors | the process that has locked the place |
//! | 3712..4096 | zeros | |
//!
//! Header and cells are format 2 for ever: versions of snowdrift share a page during an upgrade.

use std::mem::offset_of;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::time::{SystemTime, UNIX_EPOCH};

use super::header::{HEADER_BYTES, MAGIC};
use super::processes::{ENTRIES, Entry};
use crate::core::layout::{MAX_COUNTERS, Tick};
use crate::core::sequence::{Cells, mark_code, mark_of};
use crate::files::path::Identity;

/// The length of a page.
pub const BYTES: usize = 4096;

/// A page's bytes. Everything that changes after creation is atomic.
#[repr(C, align(128))]
pub struct Contents {
    header: [AtomicU64; HEADER_BYTES / 8],
    pub cells: Cells,
    pub kept: Kept,
    pub processes: [Entry; ENTRIES],
    pub announced: [Announced; PLACES],
    _rest: [AtomicU64; 48],
}

const _: () = assert!(
    size_of::<Contents>() == BYTES
        && offset_of!(Contents, cells) == 256
        && offset_of!(Contents, kept) == 640
        && offset_of!(Contents, processes) == 1152
        && offset_of!(Contents, announced) == 2688
        && offset_of!(Contents, _rest) == 3712
);

impl Contents {
    /// Whether the page was neither overwritten nor cleared.
    pub fn is_intact(&self) -> bool {
        self.header[0].load(Acquire).to_ne_bytes() == MAGIC
    }

    /// Of a page that nobody else has yet.
    pub fn set_header(&self, bytes: [u8; HEADER_BYTES]) {
        for (word, bytes) in self.header.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Release);
        }
    }
}

/// A page as words. All zeros are a fresh sequencer.
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
        // SAFETY: the words have the length and the alignment of `Contents`. All its fields are atomics of 64 bits, too,
        // for which any bits are a valid value.
        unsafe { &*(&raw const self.0).cast::<Contents>() }
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.load(Acquire).to_ne_bytes()).collect()
    }
}

/// The words of a page beside its cells.
#[repr(C)]
pub struct Kept {
    /// The ID of the page before it, once the cells have what that has issued; zeros for the node's first page. The
    /// process that begins the page writes it.
    before: [AtomicU64; 2],
    /// By counter, the first tick after the last jump of over an hour, plus one. The process that sees the jump writes it.
    landings: [AtomicU64; MAX_COUNTERS],
    /// Of a leased page: the namespace's ID in the store. The creator writes it.
    namespace: [AtomicU64; 2],
    /// The highest tick before any such jump, plus one. The process that sees the jump writes it.
    jumped_from: AtomicU64,
    _unused: AtomicU64,
    /// Of a leased page: the reason of its end, a [`Loss`]; 0 before. The process that ends it writes it.
    loss: AtomicU64,
    /// Of a leased page, the last renewal: its time in ms of the host's monotonic clock, and the count.
    renewed_ms: AtomicI64,
    renewals: AtomicU64,
    /// The process that renewed the lease or raised the recorded ceiling last, and since when (Unix ms).
    renewer: AtomicU64,
    since_ms: AtomicI64,
    /// Of a leased page: time at which the lease expires unless renewed (Unix ms plus one, 0 for never).
    expires: AtomicI64,
    /// Of a leased page: duration of the last renewal.
    ttl_ms: AtomicI64,
    /// The file's identity: a copy of the file has another one. The creator writes it.
    device: AtomicU64,
    file: [AtomicU64; 2],
    /// How far the last tick of the node's pages lies below the highest one. The process that begins the page writes it.
    last_below: AtomicI64,
    /// Of a leased page: the token of the newest record of its slot that any process has seen; 0 for none.
    pub known: AtomicU64,
    /// Of a leased page: how the server described its own run to the process that renewed it last.
    pub run: AtomicU64,
    /// Of a leased page: 1 once a process wants the others to renew it soon.
    pub asked: AtomicU64,
    /// The generation of the record on a disk that has all that the page issued, or the page before it until it is begun; 0
    /// where none has. The process that closes or begins the page writes it.
    recorded: AtomicU64,
    /// For the state of an authority.
    _state: [AtomicU64; 27],
}

/// Where a process announces the token of its next write; zeros for none.
#[repr(C)]
pub struct Announced {
    pub token: AtomicU64,
    /// The token of the record that it replaces.
    pub before: AtomicU64,
}

/// How many processes can announce tokens.
pub const PLACES: usize = 64;

/// The reason of a leased page's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Another host has taken the slot after its hold had expired.
    Taken = 1,
    /// The store has no record of it.
    Missing,
    /// The store's record is older than the host's.
    Reverted,
    /// The last process of this host released it.
    Released,
    /// This machine was restored from a snapshot, and the slot may be its original's.
    Restored,
}

/// State of a leased page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leasing {
    /// The random ID of the namespace. It tells two stores apart.
    pub namespace: u128,
    /// The random ID of the holder in the store.
    pub owner: u128,
    /// The reason of its end, if it has ended.
    pub loss: Option<Loss>,
    /// Time of the last renewal, in ms of the host's monotonic clock.
    pub renewed_ms: i64,
    /// Number of renewals.
    pub renewals: u64,
    /// The process that renewed it last.
    pub renewer: u32,
    /// Since when that process renews it, Unix ms.
    pub since_ms: i64,
    /// Time at which the lease expires, Unix ms by the store's clock; none for never.
    pub expires_ms: Option<i64>,
    /// Duration of the last renewal. Processes may differ in it.
    pub ttl_ms: i64,
}

fn id(words: &[AtomicU64; 2]) -> u128 {
    u128::from(words[1].load(Acquire)) << 64 | u128::from(words[0].load(Acquire))
}

fn set_id(words: &[AtomicU64; 2], id: u128) {
    words[0].store(id as u64, Release);
    words[1].store((id >> 64) as u64, Release);
}

impl Kept {
    /// The ID of the page before it; 0 where there was none, or it is unknown.
    pub fn before(&self) -> u128 {
        id(&self.before)
    }

    /// `recorded`: [`Kept::recorded`] of that page.
    pub(super) fn set_before(&self, page: u128, recorded: u64) {
        self.note_recorded(recorded);
        set_id(&self.before, page);
    }

    /// The identity of the file that was created for the page, as opposed to a copy of it.
    pub(super) fn home(&self) -> Identity {
        (self.device.load(Acquire), id(&self.file))
    }

    pub(super) fn set_home(&self, (device, file): Identity) {
        self.device.store(device, Release);
        set_id(&self.file, file);
    }

    /// The last tick that the node's pages may issue: a reset found that a clock ahead of time had issued later ones.
    pub(super) fn last_tick(&self) -> Tick {
        Tick::MAX.wrapping_sub(self.last_below.load(Acquire))
    }

    /// Of a page that is not begun: issues nothing above this tick, nor do the pages that follow.
    pub(super) fn set_last_tick(&self, last: Tick) {
        self.last_below.store(Tick::MAX.wrapping_sub(last), Release);
    }

    /// The first tick after the last jump under a counter; [`crate::core::sequencer::NEVER`] where unknown.
    pub fn landing(&self, counter: usize) -> Tick {
        mark_of(self.landings[counter].load(Acquire))
    }

    /// The highest tick before any jump; [`crate::core::sequencer::NEVER`] where there was none.
    pub fn jumped_from(&self) -> Tick {
        mark_of(self.jumped_from.load(Acquire))
    }

    /// Records a jump of more than an hour, for a reset. Keeps only the last landing of each counter.
    pub fn note_jump(&self, counter: usize, from: Tick, landing: Tick) {
        self.jumped_from.fetch_max(mark_code(from), AcqRel);
        self.landings[counter].store(mark_code(landing), Release);
    }

    /// The generation of the record that has all that was issued from the page, or from the page before one that is not
    /// begun; 0 where none has.
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Acquire)
    }

    /// Of a page that issues nothing.
    pub fn note_recorded(&self, generation: u64) {
        self.recorded.store(generation, Release);
    }

    /// The process that renewed last, and since when it does (Unix ms).
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

    /// State of a leased page.
    pub(super) fn leasing(&self, owner: u128) -> Leasing {
        let losses = [Loss::Taken, Loss::Missing, Loss::Reverted, Loss::Released, Loss::Restored];
        let loss = self.loss.load(Acquire);
        let (renewer, since_ms) = self.renewer();
        Leasing {
            namespace: id(&self.namespace),
            owner,
            loss: losses.into_iter().find(|one| *one as u64 == loss),
            renewed_ms: self.renewed_ms.load(Acquire),
            renewals: self.renewals.load(Acquire),
            renewer,
            since_ms,
            expires_ms: self.expires.load(Acquire).checked_sub(1).filter(|&ms| ms >= 0),
            ttl_ms: self.ttl_ms.load(Acquire),
        }
    }

    /// The ID of a leased page's namespace.
    pub fn set_namespace(&self, namespace: u128) {
        set_id(&self.namespace, namespace);
    }

    /// Whether the application has said that the machine was restored.
    #[inline]
    pub(super) fn is_restored(&self) -> bool {
        self.loss.load(Acquire) == Loss::Restored as u64
    }

    /// Counts a renewal by this process.
    pub fn note_renewal(&self, now_ms: i64, expires_ms: Option<i64>, ttl_ms: i64) {
        self.renewals.fetch_add(1, AcqRel);
        self.set_renewed(now_ms, expires_ms, ttl_ms);
    }

    /// Notes a renewal that this process has had confirmed.
    pub fn set_renewed(&self, now_ms: i64, expires_ms: Option<i64>, ttl_ms: i64) {
        self.note_renewer();
        self.expires.store(expires_ms.map_or(0, |ms| ms.max(0) + 1), Release);
        self.ttl_ms.store(ttl_ms, Release);
        self.renewed_ms.store(now_ms, Release);
    }

    /// Notes the reason of a leased page's end. The first one stays, except that `Reverted` replaces `Taken`. Returns
    /// whether it is the first one.
    pub(super) fn note_loss(&self, loss: Loss) -> bool {
        let may_follow = |seen| seen == 0 || (seen == Loss::Taken as u64 && loss == Loss::Reverted);
        let change = |seen| may_follow(seen).then_some(loss as u64);
        self.loss.fetch_update(AcqRel, Acquire, change) == Ok(0)
    }
}

pub(super) fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
