//! A page as the protocol sees it, and the chain of its slot's records.

use super::record::Token;
use crate::core::layout::Tick;
use crate::core::sequencer::Window;

/// Why a page has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Another host has taken the slot after the lease expired.
    Taken = 1,
    /// The store has no record of the slot.
    Missing,
    /// The store's record is older than the page.
    Reverted,
    /// The last process of this host released the slot.
    Released,
    /// This machine was restored from a snapshot. The original machine may hold the slot.
    Restored,
}

/// What each step is given.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The host's monotonic clock, ms.
    pub mono: i64,
    /// A number that nobody else has, drawn now.
    pub fresh: Token,
    /// How the server describes its own run.
    pub run: u64,
}

/// What a search of the host's pages has found.
#[derive(Clone, Debug)]
pub enum Joinable<P> {
    /// An open page.
    Page(P),
    /// None. Nobody else of the host takes a slot until this process has done so.
    None,
    /// Another process of the host takes a slot.
    Soon,
}

/// The life of a leased page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Its maker takes the slot, and has not read back that it has it.
    Pending,
    /// It issues within its window.
    Open,
    /// It issues nothing any more.
    Ended,
}

/// A leased page: what the processes of a host share about their slot.
///
/// It holds the *known* token, that of the newest record of this slot which any of them has seen, and for each process the
/// token that this one has announced: the token of its next write, before it sends that.
pub trait LeasePage {
    /// A random ID: the slot's owner.
    fn owner(&self) -> u128;
    /// Its worker ID.
    fn worker(&self) -> u64;
    /// Its life so far.
    fn phase(&self) -> Phase;
    /// Its floor, and the ceiling that the store has confirmed.
    fn window(&self) -> Window;
    /// When the confirmed hold ends, Unix ms by the store's clock.
    fn expires(&self) -> i64;
    /// The known token; none on a page that never had a slot.
    fn known(&self) -> Option<Token>;
    /// Makes `to` the known token, unless `from` is it no more. Returns whether it did.
    fn advance(&self, from: Option<Token>, to: Token) -> bool;
    /// Announces a token in this process's own place, for a write over the record `before`. Returns the token to write. It is
    /// another one where a process that has died announced that here for the same predecessor: its write may still be applied.
    /// None where all places are those of other living processes.
    fn announce(&self, token: Token, before: Token) -> Option<Token>;
    /// Whether any process, also a dead one, has announced the token last.
    fn is_announced(&self, token: Token) -> bool;
    /// All tokens that the page knows now: the known one and the announced ones.
    fn tokens(&self) -> Vec<Token>;
    /// How the server described its own run to the process that had a record confirmed last.
    fn run(&self) -> u64;
    /// Notes what a record of this page has confirmed; `is_renewal` where this process has just written it. Neither value
    /// falls, and a page that has ended stays so.
    fn confirm(&self, ceiling: Tick, expires: i64, is_renewal: bool, at: At);
    /// Opens a pending page for this window, which a record has confirmed.
    fn open(&self, window: Window, expires: i64, at: At);
    /// Ends it. Returns the highest tick that it may have issued; none to all but the first caller.
    fn end(&self, why: Loss) -> Option<Tick>;
    /// Why it has ended.
    fn loss(&self) -> Option<Loss>;
    /// Asks the other processes to renew soon: this one waits for a token that they announce from now on.
    fn ask(&self);
    /// Whether others have joined it, who can show that a store is its own.
    fn is_shared(&self) -> bool;
    /// Whether nobody finds it any more: it has lost its name.
    fn is_gone(&self) -> bool;
}

/// Whose a record is that was found under a page's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A process of this page wrote it.
    Ours,
    /// Another process of this page has gone on meanwhile. Look again.
    Unsure,
    /// Somebody else wrote it.
    Foreign,
}

/// Judges a record by its token. `since` is the token that the page knew before the request was sent.
///
/// A process gives up the token that it has announced only for a newer one, and announces that only once the page knows
/// that the record has moved on. So while the known token stays, each of the page's own records is the known one or an
/// announced one. If it has changed, an own record may be neither, and the answer proves nothing.
pub fn whose(page: &impl LeasePage, since: Option<Token>, found: Token) -> Whose {
    // The known token once more at the end: an announced one may become it, and be given up, between the two looks.
    if page.known() == Some(found) || page.is_announced(found) {
        Whose::Ours
    } else if page.known() != since {
        Whose::Unsure
    } else {
        Whose::Foreign
    }
}
