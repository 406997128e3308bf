//! What goes into a machine, and what comes out of it.

use super::page::{Joinable, LeasePage, Loss};
use super::record::{Holder, Key, Limits, Record, Token};
use crate::core::layout::{Layout, Tick};

/// What a lease is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The layout of the IDs.
    pub layout: Layout,
    /// The datacenter of the slot.
    pub datacenter: u64,
    /// The one slot that is wanted; none for any.
    pub claim: Option<u64>,
    /// What this holder uses.
    pub limits: Limits,
    /// Who it is, for people.
    pub holder: Holder,
    /// Whether the store may lose all data unnoticed, so that a new namespace may be a lost one.
    pub may_forget: bool,
}

/// The pages of this host.
pub trait Host {
    /// A leased page, shared by its users.
    type Page: LeasePage + Clone;

    /// An open page of the namespace that this process may join: of this worker ID, if there is one.
    fn find(&self, namespace: u128, claim: Option<u64>) -> Joinable<Self::Page>;
    /// An open page of the namespace below this worker ID, which issues at this tick and which this process may join.
    fn find_lower(&self, namespace: u128, worker: u64, now: Tick) -> Option<Self::Page>;
    /// A pending page for a slot of the namespace; none where the host cannot use the slot.
    fn create(&self, namespace: u128, worker: u64) -> Option<Self::Page>;
    /// Stops using a page. Returns whether nobody else uses it.
    fn leave(&self, page: &Self::Page) -> bool;
}

/// A call to the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Its clock.
    Now,
    /// One record.
    Read(Key),
    /// The records of a bucket.
    List {
        /// The datacenter.
        datacenter: u64,
        /// The bucket in it.
        bucket: u64,
    },
    /// Replaces a record, if it has the token `before`; none where there must be no record.
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

/// A record that was found, with its token.
pub type Found = Option<(Token, Record)>;

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Of [`Call::Now`].
    Time,
    /// Of [`Call::Read`].
    Read(Found),
    /// Of [`Call::List`].
    Listed(Vec<(Key, Token, Record)>),
    /// Of [`Call::Write`]: it was written.
    Written,
    /// Of [`Call::Write`]: another record was found.
    Differs(Found),
    /// It failed, or took too long. A write may still be applied, at any time.
    Failed,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Go on: at first, and after a pause.
    Go,
    /// The call under way has ended. The time is the store's clock, Unix ms, if the reply has it, and when the call was sent.
    Reply(Reply, Option<i64>, i64),
    /// A renewal is due, to this ceiling.
    Renew(Tick),
    /// Move to the lower slot, if the host has two. No renewal is due.
    Merge,
    /// Release the slot.
    Close,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Make this call.
    Call(Call),
    /// Nothing: a call is under way, or the slot is held.
    Wait,
    /// The slot is held, and its page is open.
    Held,
    /// The page of the host's lower slot is joined, and issues. Go on, to leave the other one, once nothing is drawn from that.
    Moved,
    /// The slot was lost. Another one is next.
    Lost(Loss),
    /// The slot is released, or was lost.
    Released,
    /// The call failed, or another process is to be waited for: go on after a pause.
    Retry,
    /// Another process of the host takes a slot: go on after a short pause.
    Join,
    /// There is no ID.
    Refused(LeaseRefusal),
}

/// The reason that there is no slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseRefusal {
    /// All slots are held, or the one that is wanted. Go on after a pause.
    /// A holder is missing where the record is damaged, so that nobody can take the slot.
    NoSlot(Vec<(u64, Option<Holder>)>),
    /// The namespace is for another layout.
    Layout(Layout),
    /// The namespace's limits are lower.
    Limits(Limits),
    /// A record that no holder writes.
    Damaged(Key),
    /// The namespace's floor is further ahead of the store's clock than any holder can be.
    Ahead(Tick),
    /// This is not the store of the page that the host uses, or nobody has shown that it is. Go on after a pause.
    Unproven(u64),
}
