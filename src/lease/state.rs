//! What one process's lease knows.

use std::sync::Arc;

use super::calls::{Call, Command, Settings};
use super::page::{At, LeasePage};
use super::record::{Bucket, Floor, Holder, Key, Limits, Namespace, Record, Slot, Token};
use crate::core::layout::Tick;
use crate::core::sequencer::NEVER;

/// The store's clock by its last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StoreTime {
    pub ms: i64,
    pub called: i64,
    pub replied: i64,
}

/// What is known of the namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    Unknown,
    Absent,
    Present(Token, Namespace),
}

/// One process's lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine<P> {
    pub(super) settings: Arc<Settings>,
    /// The highest limits of any holder that were ever seen.
    pub(super) limits: Limits,
    pub(super) time: Option<StoreTime>,
    pub(super) seen: Seen,
    /// The namespace that this process has opened.
    pub(super) namespace: Option<u128>,
    /// Data were lost: the namespace's floor has to rise above all ceilings that anybody can have had confirmed.
    pub(super) is_lost: bool,
    /// What that floor has to be, once the store's clock was read after the loss.
    pub(super) horizon: Option<Tick>,
    pub(super) search: Search<P>,
    pub(super) making: Option<Making>,
    pub(super) taking: Option<Taking<P>>,
    pub(super) held: Option<Held<P>>,
    /// The page in use while that of a lower slot is joined, and until it is left.
    pub(super) leaving: Option<Held<P>>,
    /// A page that has ended, whose slot is to be freed at this ceiling.
    pub(super) freeing: Option<(Held<P>, Tick)>,
    pub(super) wanted: Option<Tick>,
    pub(super) is_closing: bool,
    /// The call under way, and the token that the page knew before.
    pub(super) under_way: Option<(Call, Option<Token>)>,
}

/// A search for a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Search<P> {
    /// How many buckets were listed.
    pub count: u64,
    /// Where the search of all buckets began.
    pub first: u64,
    /// The bucket to be listed next: once more.
    pub again: Option<u64>,
    pub listed: Option<Listed>,
    /// The token of the slot that this process has created last, and the pending page for it.
    pub made: Option<Token>,
    pub page: Option<P>,
    /// Worker IDs that this host cannot use.
    pub unusable: Vec<u64>,
    pub holders: Vec<(u64, Option<Holder>)>,
}

/// A bucket's records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Listed {
    pub bucket: u64,
    pub records: Vec<(Key, Token, Record)>,
}

/// A slot that is being created, and the write of its bucket that comes first, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Making {
    pub worker: u64,
    pub mark: Option<(Option<Token>, Bucket)>,
    pub is_absent: bool,
}

/// A slot that is being taken. Its page is pending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Taking<P> {
    pub page: P,
    pub slot: Slot,
    /// The token of the slot's record before.
    pub before: Token,
    /// The token of the slot's new record, once it is announced.
    pub token: Option<Token>,
    pub stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Write,
    ReadBack,
    ReadNamespace,
}

/// A page in use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held<P> {
    pub page: P,
    /// The slot's newest record that this process has seen.
    pub last: Option<(Token, Slot)>,
    /// A write of this process whose outcome is unknown.
    pub sent: Option<Sent>,
    pub proof: Proof,
}

/// Whether this store is the page's own, and not a copy of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Proof {
    Given,
    /// None yet: a record of the page is to be read, from a server that describes its run as it did to the process that renewed
    /// last.
    Wanted,
    /// When this process asked the others for a new token, by the host's monotonic clock, and the page's tokens then.
    Asked(i64, Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub token: Token,
    pub before: Token,
    pub slot: Slot,
    /// The ceiling that was wanted with it; none where it was sent again, so that another renewal follows.
    pub wanted: Option<Tick>,
}

impl<P> Search<P> {
    pub fn new() -> Self {
        let (count, first, again, listed, made, page) = Default::default();
        let (unusable, holders) = Default::default();
        Search { count, first, again, listed, made, page, unusable, holders }
    }
}

impl<P: LeasePage + Clone> Held<P> {
    pub fn is_joined(&self) -> bool {
        self.proof == Proof::Given
    }

    /// Takes a record of the page's own into account. Returns false if another process has gone on meanwhile.
    pub fn note(&mut self, token: Token, slot: Slot, since: Option<Token>) -> bool {
        if self.page.known() != Some(token) && !self.page.advance(since, token) {
            return false;
        }
        // Its outcome is known: the record has moved on from its predecessor.
        self.sent.take_if(|sent| sent.before != token);
        self.last = Some((token, slot));
        true
    }
}

impl<P: LeasePage + Clone> Machine<P> {
    /// A lease of nothing yet.
    pub fn new(settings: Settings) -> Self {
        Machine {
            limits: settings.limits,
            settings: Arc::new(settings),
            time: None,
            seen: Seen::Unknown,
            namespace: None,
            is_lost: false,
            horizon: None,
            search: Search::new(),
            making: None,
            taking: None,
            held: None,
            leaving: None,
            freeing: None,
            wanted: None,
            is_closing: false,
            under_way: None,
        }
    }

    /// Wants this slot alone, from the next search on.
    pub fn claim(&mut self, worker: u64) {
        let settings = Settings { claim: Some(worker), ..(*self.settings).clone() };
        self.settings = Arc::new(settings);
    }

    /// The page in use, once this store is known to be its own.
    pub fn page(&self) -> Option<&P> {
        let joined = self.held.as_ref().filter(|held| held.is_joined());
        joined.or(self.leaving.as_ref()).map(|held| &held.page)
    }

    /// Whether a call is under way.
    pub fn is_calling(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether it moves from one of the host's two slots to the other one.
    pub fn is_moving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Whether it has found a page, and not yet proven that this store is the page's own.
    pub fn is_joining(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.is_joined())
    }

    /// Whether the description of the server's run counts now: others can join the slot that it takes as soon as that is open.
    pub fn wants_run(&self) -> bool {
        self.is_joining() || self.taking.is_some()
    }

    /// Of the namespace, as far as known: its ID, its floor, and the furthest that a ceiling can be ahead of the store's clock, ms.
    pub fn namespace(&self) -> (Option<u128>, Tick, i64) {
        let floor = match &self.seen {
            Seen::Present(_, Namespace { floor: Floor::At(floor), .. }) => *floor,
            _ => NEVER,
        };
        (self.namespace, floor, self.limits.reach())
    }

    pub(super) fn call(&mut self, call: Call, page: Option<&P>) -> Command {
        self.under_way = Some((call.clone(), page.and_then(LeasePage::known)));
        Command::Call(call)
    }

    pub(super) fn write(
        &mut self,
        key: Key,
        record: Record,
        before: Option<Token>,
        token: Token,
    ) -> Command {
        self.call(Call::Write { key, token, record, before }, None)
    }

    pub(super) fn key(&self, worker: u64) -> Key {
        Key::Slot(self.settings.datacenter, worker)
    }

    /// A tick that the clock of each host has passed.
    pub(super) fn passed(&self, at: At) -> Tick {
        let (earliest, _) = self.now(at);
        self.settings.layout.tick_at(earliest.saturating_sub(self.limits.max_clock_skew))
    }

    /// The earliest time that the store's clock can show now, and the latest.
    pub(super) fn now(&self, at: At) -> (i64, i64) {
        self.time.map_or((i64::MIN, i64::MAX), |StoreTime { ms, called, replied }| {
            (ms.saturating_add(at.mono - replied), ms.saturating_add(at.mono - called))
        })
    }

    /// Whether a clock that shows this tick is right by the store's, as far as holders may differ from it.
    pub fn is_near(&self, tick: Tick, at: At) -> bool {
        let (_, latest) = self.now(at);
        let most = latest.saturating_add(self.settings.limits.max_clock_skew);
        tick <= self.settings.layout.tick_at(most)
    }

    /// How long ago the store's clock was read, ms.
    pub(super) fn time_age(&self, at: At) -> i64 {
        self.time.map_or(i64::MAX, |time| at.mono - time.replied)
    }

    /// A tick above every ceiling that a holder can have had confirmed until now.
    pub(super) fn horizon_now(&self, at: At) -> Tick {
        let (_, latest) = self.now(at);
        self.limits.horizon(self.settings.layout, latest)
    }

    /// The ceiling to ask for: at most what the store's clock allows.
    pub(super) fn capped(&self, wanted: Tick, at: At) -> Tick {
        let (earliest, _) = self.now(at);
        let cap = earliest.saturating_add(self.settings.limits.reach());
        wanted.min(self.settings.layout.tick_at(cap))
    }

    /// Begins anew with the namespace's record, and with the store's clock: this host may have been suspended.
    pub(super) fn forget(&mut self) {
        self.seen = Seen::Unknown;
        self.time = None;
    }
}
