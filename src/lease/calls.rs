//! What goes into a machine, and what comes out of it.

use super::record::{Bucket, Holder, Key, Limits, Namespace, Token, Unreadable};
use crate::core::layout::{Layout, Tick};
use crate::core::loss::Loss;

/// What a lease is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The layout of the IDs.
    pub layout: Layout,
    /// The datacenter of the slot.
    pub datacenter: u64,
    /// The one worker ID that is wanted; none for any.
    pub claim: Option<u64>,
    /// What this holder uses.
    pub limits: Limits,
    /// Who it is, for people.
    pub holder: Holder,
    /// The worker IDs of a bucket, for a namespace that is created: one of [`SIZES`](super::SIZES).
    pub size: u64,
    /// Whether the store may lose data by itself, so that an empty bucket may be a lost one.
    pub may_forget: bool,
    /// Whether the store's clock is this host's own: it tells nothing about another holder's expiry.
    pub has_own_clock: bool,
}

/// The clocks of a host at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The monotonic clock that all its processes share, ms.
    pub mono: i64,
    /// Its clock, Unix ms.
    pub wall: i64,
}

/// Any record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// Under [`Key::Namespace`].
    Namespace(Namespace),
    /// Under [`Key::Bucket`].
    Bucket(Bucket),
}

impl Record {
    /// The text.
    pub fn text(&self) -> String {
        match self {
            Record::Namespace(namespace) => namespace.text(),
            Record::Bucket(bucket) => bucket.text(),
        }
    }

    /// The record of a text that was found under a key.
    pub fn of_text(key: Key, text: &str) -> Result<Record, Unreadable> {
        match key {
            Key::Namespace => Namespace::of_text(text).map(Record::Namespace),
            Key::Bucket(..) => Bucket::of_text(text).map(Record::Bucket),
        }
    }
}

/// What was found under a key: a record with its token, or none.
pub type Found = Option<(Token, Result<Record, Unreadable>)>;

/// A call to a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Its clock.
    Now,
    /// A record.
    Read(Key),
    /// Replaces a record that has the token `before`; none where there must be no record.
    Write {
        /// Its name.
        key: Key,
        /// The new token.
        token: Token,
        /// What is written.
        record: Record,
        /// The condition.
        before: Option<Token>,
    },
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Of [`Call::Now`].
    Time,
    /// What was read, or what a write found in place of `before`.
    Found(Found),
    /// It was written, and is durable.
    Written,
    /// It failed, or took too long. A write may be applied later.
    Failed,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Go on: at first, and after a pause.
    Go,
    /// The call under way has ended. With the store's clock, Unix ms, if the reply has it, and when the call was sent, by the
    /// monotonic clock.
    Reply(Reply, Option<i64>, i64),
    /// A renewal is due.
    Renew,
    /// This machine was restored from a snapshot, so another one may have the same memory. It ends this process's page, for all that
    /// use it. Each process says so, since a page that nobody ends goes on beside that of the original.
    Restored,
    /// Release the slot.
    Close,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Make this call.
    Call(Call),
    /// Nothing: a call is under way, or the page is held as far as wanted.
    Wait,
    /// The page is open: issue from it.
    Open,
    /// The page was lost. Go on at once: another one is next.
    Lost(Loss),
    /// Others have written the record. Go on after a short pause, at random.
    Again,
    /// Another process of the host takes a slot. Go on after a short pause.
    Locked,
    /// The call failed. Go on after a pause.
    Failed,
    /// There is no slot. Go on after a pause, for as long as the caller waits.
    Refused(Refusal),
    /// The slot is released.
    Released,
}

/// Why there is no slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// All worker IDs are held, or the one that is wanted, or this host cannot use those that are free. Without a holder where the
    /// line is damaged.
    NoSlot(Vec<(u64, Option<Holder>)>),
    /// The namespace is for another layout.
    Layout(Layout),
    /// A text that no holder writes.
    Unreadable(Key, Unreadable),
    /// A floor further ahead of the store's clock than any holder can write.
    Ahead(Key, Tick),
    /// This host's clock differs from the store's by so many ms.
    Clock(i64),
}
