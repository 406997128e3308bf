//! What goes into a driver, and what comes out of it.

use super::calls::{Call, Refusal, Reply};
use crate::core::loss::Loss;

/// What the caller of a lease allows, ms.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long it waits for a slot, through failed calls, too.
    pub wait: i64,
    /// How long a call may take.
    pub call: i64,
}

/// What happened to a lease.
#[derive(Clone, Debug)]
pub enum Input {
    /// It begins, or the wait is over.
    Time,
    /// The call under way has ended, with the store's clock, Unix ms, if the reply has it.
    Reply(Reply, Option<i64>),
    /// A caller waits for a higher ceiling.
    Wanted,
    /// The machine was restored from a snapshot.
    Restored,
    /// The lease is released. The executor gives up a call under way, and says so with [`Reply::Failed`].
    Close,
}

/// What an executor does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Make this call, within this time. Then [`Input::Reply`].
    Call(Call, i64),
    /// Wait for `due`, or for `look`, after which another process may have changed the page. Then [`Input::Time`].
    Wait {
        /// Until this lease has something to do.
        due: i64,
        /// Until it has to look at its page.
        look: i64,
    },
    /// Nothing more: the slot is released, or there is none.
    End,
}

/// What an executor tells the application.
#[derive(Clone, Debug, PartialEq)]
pub enum Report<P> {
    /// Issue from this page: the first one, or another one in place of one that has ended.
    Open(P),
    /// The slot was renewed, by this process or another one of the host.
    Renewed,
    /// The slot was lost. Another one is looked for.
    Lost(Loss),
    /// Others, or the store itself, change the record again and again.
    Unsettled,
    /// A call has failed. It is tried again, unless [`Next::End`] follows.
    Failed,
    /// There is no slot. The search goes on, unless [`Next::End`] follows.
    Refused(Refusal),
    /// Another process of the host has taken a slot for longer than its calls may last. Its lock is broken.
    Unlocked,
}

/// The life of a lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Life {
    /// It has no slot yet, and waits for one until then.
    Opening(i64),
    /// It has a slot, or had one and looks for another.
    Open,
    /// It releases its slot, until then.
    Closing(i64),
}
