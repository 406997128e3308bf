//! The words that a page keeps beside its cells:
//!
//! | words | content | writer |
//! |---|---|---|
//! | 0..2 | the ID of the page before it, once the next fields have what that has issued; zeros for the node's first page | the process that begins it |
//! | 2..18 | by counter, the first tick after the last jump of over an hour, plus one | the process that sees the jump |
//! | 18..20 | of a leased page: the namespace's ID in the store | the creator |
//! | 20..22 | zeros | |
//! | 22 | of a leased page: the reason of its end, a [`Loss`]; 0 before | the process that ends it |
//! | 23, 24 | of a leased page, the last renewal: time (ms of the host's monotonic clock), count | each renewal |
//! | 25, 26 | the process that renewed the lease or raised the recorded ceiling last, and since when (Unix ms) | that process |
//! | 27 | of a leased page: time at which the lease expires unless renewed (Unix ms plus one, 0 for never) | each renewal |
//! | 28 | of a leased page: duration of the last renewal, ms | each renewal |
//! | 29..32 | the file's identity: a copy of the file has another one | the creator |
//! | 32..64 | zeros, for the state of an authority | |

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::layout::Tick;
use crate::core::sequence::{mark_code, mark_of};
use crate::files::path::Identity;

const BEFORE: usize = 0;
const LANDINGS: usize = 2;
const NAMESPACE: usize = 18;
const LOSS: usize = 22;
const RENEWED: usize = 23;
const RENEWALS: usize = 24;
const RENEWER: usize = 25;
const SINCE: usize = 26;
const EXPIRES: usize = 27;
const TTL: usize = 28;
const IDENTITY: usize = 29;

/// The words of a page.
#[repr(transparent)]
pub struct Kept([AtomicU64; 64]);

/// A store's confirmation of a newly acquired slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The random ID of the namespace. It tells two stores apart.
    pub namespace: u128,
    /// The random ID of the holder in the store.
    pub owner: u128,
    /// The holder issues nothing at or below it.
    pub floor: Tick,
    /// The holder issues nothing above it.
    pub ceiling: Tick,
    /// Time at which the lease expires, Unix ms by the store's clock; none for never.
    pub expires_ms: Option<i64>,
    /// Time of the grant, in ms of the monotonic clock that all processes of the host share.
    pub now_ms: i64,
    /// Duration of the lease.
    pub ttl_ms: i64,
}

/// The reason of a leased page's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Another host has the slot.
    Taken = 1,
    /// The store has no record of it.
    Missing,
    /// The store's record is older than the host's.
    Reverted,
    /// The last process of this host released it.
    Released,
}

/// State of a leased page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leasing {
    /// As in [`Grant`].
    pub namespace: u128,
    /// As in [`Grant`].
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
    /// As in [`Grant`].
    pub expires_ms: Option<i64>,
    /// Duration of the last renewal. Processes may differ in it.
    pub ttl_ms: i64,
}

impl Kept {
    fn get(&self, at: usize) -> u64 {
        self.0[at].load(Acquire)
    }

    fn set(&self, at: usize, word: u64) {
        self.0[at].store(word, Release);
    }

    fn id(&self, at: usize) -> u128 {
        u128::from(self.get(at + 1)) << 64 | u128::from(self.get(at))
    }

    fn set_id(&self, at: usize, id: u128) {
        self.set(at, id as u64);
        self.set(at + 1, (id >> 64) as u64);
    }

    /// The ID of the page before it; 0 where there was none, or it is unknown.
    pub fn before(&self) -> u128 {
        self.id(BEFORE)
    }

    pub(super) fn set_before(&self, id: u128) {
        self.set_id(BEFORE, id);
    }

    /// Whether the file of this identity was created for the page, as opposed to a copy of it.
    pub(super) fn is_at_home(&self, (device, file): Identity) -> bool {
        (self.get(IDENTITY), self.id(IDENTITY + 1)) == (device, file)
    }

    /// The bytes of a file's identity, and their place in the words.
    pub(super) fn identity_bytes((device, file): Identity) -> (usize, [u8; 24]) {
        let mut bytes = [0; 24];
        let words = [device, file as u64, (file >> 64) as u64];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        (8 * IDENTITY, bytes)
    }

    /// The first tick after the last jump under a counter; [`crate::core::sequencer::NEVER`] where unknown.
    pub fn landing(&self, counter: usize) -> Tick {
        mark_of(self.get(LANDINGS + counter))
    }

    /// Records the first tick after a jump of more than an hour, for a reset. Keeps only the last one of each counter.
    pub fn set_landing(&self, counter: usize, tick: Tick) {
        self.set(LANDINGS + counter, mark_code(tick));
    }

    /// The process that renewed last, and since when it does (Unix ms).
    pub fn renewer(&self) -> (u32, i64) {
        (self.get(RENEWER) as u32, self.get(SINCE) as i64)
    }

    /// Notes this process as the one that renewed last.
    pub fn note_renewer(&self) {
        let pid = u64::from(std::process::id());
        if self.0[RENEWER].swap(pid, AcqRel) != pid {
            self.set(SINCE, unix_ms() as u64);
        }
    }

    /// State of a leased page.
    pub(super) fn leasing(&self, owner: u128) -> Leasing {
        let losses = [Loss::Taken, Loss::Missing, Loss::Reverted, Loss::Released];
        let (renewer, since_ms) = self.renewer();
        Leasing {
            namespace: self.id(NAMESPACE),
            owner,
            loss: losses.into_iter().find(|loss| *loss as u64 == self.get(LOSS)),
            renewed_ms: self.get(RENEWED) as i64,
            renewals: self.get(RENEWALS),
            renewer,
            since_ms,
            expires_ms: self.get(EXPIRES).checked_sub(1).map(|ms| ms as i64),
            ttl_ms: self.get(TTL) as i64,
        }
    }

    /// Begins a leased page.
    pub(super) fn begin_lease(&self, grant: &Grant) {
        self.set_id(NAMESPACE, grant.namespace);
        self.renew(0, grant.now_ms, grant.expires_ms, grant.ttl_ms);
    }

    /// Counts a renewal by this process.
    pub fn note_renewal(&self, now_ms: i64, expires_ms: Option<i64>, ttl_ms: i64) {
        self.renew(1, now_ms, expires_ms, ttl_ms);
    }

    fn renew(&self, times: u64, now_ms: i64, expires_ms: Option<i64>, ttl_ms: i64) {
        self.note_renewer();
        self.set(EXPIRES, expires_ms.map_or(0, |ms| ms.max(0) as u64 + 1));
        self.set(TTL, ttl_ms as u64);
        self.0[RENEWALS].fetch_add(times, AcqRel);
        self.set(RENEWED, now_ms as u64);
    }

    /// Notes the reason of a leased page's end. The first one stays, except that `Reverted` replaces `Taken`. Returns
    /// whether it is the first one.
    pub(super) fn note_loss(&self, loss: Loss) -> bool {
        let may_follow = |seen| seen == 0 || (seen == Loss::Taken as u64 && loss == Loss::Reverted);
        let change = |seen| may_follow(seen).then_some(loss as u64);
        self.0[LOSS].fetch_update(AcqRel, Acquire, change) == Ok(0)
    }
}

pub(super) fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
