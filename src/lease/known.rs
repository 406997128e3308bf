//! What a machine knows: of the store's clock, of records, of its search, and of the page that it uses.

use super::calls::At;
use super::calls::Refusal;
use super::page::{Host, Word};
use super::record::{Bucket, Holder, Namespace, Token};
use crate::core::layout::Tick;

/// How far the store's clock is ahead of the monotonic clock at least, and at most, ms: it was read at some moment of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StoreTime {
    pub least: i64,
    pub most: i64,
    /// When it was read, by the monotonic clock, ms.
    pub read: i64,
}

/// The namespace's record, as it was seen last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Known {
    Unread,
    Absent,
    Found(Token, Namespace),
}

/// A search for a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Search {
    /// The bucket that is looked into, the step to the next one, and how many were full.
    pub bucket: Option<u64>,
    pub stride: u64,
    pub full: u64,
    /// A bucket of one line that is free and issues later than others: its ceiling, and the number.
    pub late: Option<(Tick, u64)>,
    pub look: Look,
    /// The line of a page that this process has ended, to take it over.
    pub over: Option<Over>,
    pub holders: Vec<(u64, Option<Holder>)>,
    /// A bucket that cannot be used.
    pub damage: Option<Refusal>,
}

/// What is known of a search's bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Look {
    #[default]
    Unread,
    /// It is absent. Whether it may be created: it is new, or the floor has risen for it.
    Absent(bool),
    /// Its token, the bucket, and whether the namespace was read after it.
    Found(Token, Bucket, bool),
}

/// A line whose page this process has ended, and the last tick that was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Over {
    pub worker: u64,
    pub owner: Token,
    pub word: Word,
    pub last: Tick,
}

/// A page, as this process uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct User<P> {
    pub page: P,
    pub stage: Stage,
    /// The bucket as it was seen last, and its token.
    pub seen: Option<(Token, Bucket)>,
    /// The token that this process has announced last, and the ceiling that was fixed then.
    pub announced: Option<(Token, Tick)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Another process's page. Its line is to be read through this process's own connection.
    Joining,
    /// Its line was written, with an unknown outcome.
    Taking,
    /// Its line is written. The namespace is to be read.
    Checking,
    /// It issues. With the word when this process joined it, as long as nothing has proven that this store is the page's own.
    Using(Option<Word>),
    /// It has ended. Its line is to be freed at this tick.
    Freeing(Tick),
}

/// What a step is given.
pub(super) struct Here<'a, P> {
    pub host: &'a mut dyn Host<Page = P>,
    pub at: At,
}

impl<P> User<P> {
    /// A process that begins to use a page.
    pub fn new(page: P, stage: Stage) -> Self {
        User { page, stage, seen: None, announced: None }
    }
}
