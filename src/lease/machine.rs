//! One process's lease: what it knows, and its steps. Events in, one command out.
//!
//! At most one call is under way. What comes next follows from what is known, so after a call that failed, or whose outcome is
//! unknown, the machine goes on by the same rules.

use std::collections::BTreeMap;

use super::calls::{At, Call, Command, Event, Record, Refusal, Settings};
use super::known::{Here, Known, Search, Stage, StoreTime, User};
use super::page::{Host, Phase, Word};
use super::record::{Key, Limits, Namespace, Token};
use crate::core::clock::HOUR_MS;
use crate::core::layout::Tick;
use crate::core::loss::Loss;

/// A process's lease.
#[derive(Clone, Debug)]
pub struct Machine<P> {
    pub(super) settings: Settings,
    /// The highest limits of any holder that were ever seen.
    pub(super) limits: Limits,
    pub(super) time: Option<StoreTime>,
    pub(super) namespace: Known,
    /// The ID of the namespace that was seen last. Without it, the store has lost data.
    pub(super) id: Option<Token>,
    /// The worker IDs of a bucket.
    pub(super) size: u64,
    /// The store has lost data: its floor has to rise before a slot is looked for.
    pub(super) is_lost: bool,
    pub(super) search: Search,
    /// Lines past their expiry: their token, and since when it stays, by the monotonic clock.
    pub(super) watched: BTreeMap<u64, (Token, i64)>,
    /// Owners of pages that this process's store contradicts: it joins none of them again before it has a page.
    pub(super) contradicted: Vec<Token>,
    pub(super) user: Option<User<P>>,
    /// Since when a renewal is due, by the monotonic clock, and whether the store's clock was asked for it.
    pub(super) renewing: Option<i64>,
    pub(super) is_timed: bool,
    pub(super) is_closing: bool,
    /// The call under way, and the page's word when it began. Without the call, where its reply counts no more.
    pub(super) call: Option<(Option<Call>, Word)>,
}

impl<P: Clone> Machine<P> {
    /// A lease without a slot.
    pub fn new(settings: Settings) -> Self {
        let size = settings.size;
        Machine {
            limits: settings.limits,
            settings,
            time: None,
            namespace: Known::Unread,
            id: None,
            size,
            is_lost: false,
            search: Search::default(),
            watched: BTreeMap::new(),
            contradicted: Vec::new(),
            user: None,
            renewing: None,
            is_timed: false,
            is_closing: false,
            call: None,
        }
    }

    /// What the lease is for.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Wants this worker ID alone, from the next search on. A store has assigned it, with a namespace of its own.
    pub fn claim(&mut self, worker: u64) {
        self.settings.claim = Some(worker);
        self.id = None;
    }

    /// The page from which this process issues.
    pub fn page(&self) -> Option<&P> {
        let user = self.user.as_ref()?;
        matches!(user.stage, Stage::Using(_)).then_some(&user.page)
    }

    /// Whether it has a page, or is taking, joining or freeing one.
    pub fn has_page(&self) -> bool {
        self.user.is_some()
    }

    /// Whether its page is another process's, and nothing has proven yet that this store is the page's own. With the word at which it
    /// joined.
    pub fn unproven(&self) -> Option<Word> {
        match self.user.as_ref()?.stage {
            Stage::Using(joined) => joined,
            _ => None,
        }
    }

    /// The namespace, once it was read.
    pub fn namespace(&self) -> Option<&Namespace> {
        match &self.namespace {
            Known::Found(_, namespace) => Some(namespace),
            _ => None,
        }
    }

    /// Whether some line is past its expiry, and is watched for half a ttl.
    pub fn is_watching(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Whether a call is under way.
    pub fn is_calling(&self) -> bool {
        self.call.is_some()
    }

    /// Leaves its page, and lets others of the host look for a slot, where its line could not be freed in time.
    pub fn abandon(&mut self, host: &mut dyn Host<Page = P>) {
        if let Some(user) = self.user.take()
            && host.leave(&user.page)
        {
            host.end(&user.page, Loss::Released);
            host.leave(&user.page);
        }
        host.unlock();
    }

    /// Takes an event. Returns what is to be done.
    pub fn step(&mut self, event: Event, at: At, host: &mut dyn Host<Page = P>) -> Command {
        let here = &mut Here { host, at };
        match event {
            Event::Go => {}
            Event::Renew => (self.renewing, self.is_timed) = (Some(at.mono), false),
            Event::Close => self.is_closing = true,
            Event::Restored => {
                if let Some(lost) = self.restored(here) {
                    return lost;
                }
            }
            Event::Reply(reply, now, called) => {
                let Some((call, then)) = self.call.take() else { return Command::Wait };
                let Some(call) = call else { return self.plan(here) };
                if let Some(ms) = now {
                    self.time =
                        Some(StoreTime { least: ms - at.mono, most: ms - called, read: at.mono });
                }
                // What it says of the slot is nothing to a lease that closes.
                let is_closing = self.is_closing;
                let counts = |one: &Command| {
                    !is_closing || matches!(one, Command::Call(_) | Command::Failed)
                };
                if let Some(command) = self.reply(call, reply, then, here).filter(counts) {
                    return command;
                }
            }
        }
        if self.call.is_some() { Command::Wait } else { self.plan(here) }
    }

    /// The next step by what is known.
    pub(super) fn plan(&mut self, here: &mut Here<'_, P>) -> Command {
        let Some(User { page, stage, .. }) = &self.user else {
            if self.is_closing {
                here.host.unlock();
                return Command::Released;
            }
            return self.search(here);
        };
        let (page, stage) = (&page.clone(), *stage);
        let has_ended = |here: &Here<'_, P>| here.host.phase(page) == Phase::Ended;
        match stage {
            Stage::Freeing(last) => self.free(page, last, here),
            Stage::Using(_) if has_ended(here) => self.leave_ended(page, here),
            Stage::Joining if has_ended(here) || self.is_closing => {
                here.host.leave(page);
                self.user = None;
                self.plan(here)
            }
            Stage::Using(_) if self.is_closing => self.leave(page, here),
            Stage::Using(None) => self.renew(page, here),
            Stage::Using(Some(joined)) => self.prove(page, joined, here),
            Stage::Joining | Stage::Taking => self.look(here),
            Stage::Checking if has_ended(here) || self.is_closing => self.give_up(page, here),
            Stage::Checking => self.call(Call::Read(Key::Namespace), here),
        }
    }

    /// Notes a call, and the word of the page that it concerns.
    pub(super) fn call(&mut self, call: Call, here: &Here<'_, P>) -> Command {
        let word = self.user.as_ref().map_or(Word::default(), |user| here.host.word(&user.page));
        self.call = Some((Some(call.clone()), word));
        Command::Call(call)
    }

    /// Reads the bucket of the page in use.
    pub(super) fn look(&mut self, here: &Here<'_, P>) -> Command {
        self.call(Call::Read(self.key(here)), here)
    }

    /// Replaces a record, if it has the token `before`: the namespace's, or that of the bucket of the page in use, or that is looked
    /// into.
    pub(super) fn write(
        &mut self,
        before: Option<Token>,
        record: Record,
        here: &mut Here<'_, P>,
    ) -> Command {
        let key = match record {
            Record::Namespace(_) => Key::Namespace,
            Record::Bucket(_) => self.key(here),
        };
        let token = Token(here.host.random());
        self.call(Call::Write { key, token, record, before }, here)
    }

    /// The key of the bucket of the page in use, or that is looked into.
    pub(super) fn key(&self, here: &Here<'_, P>) -> Key {
        let of_page = |user: &User<P>| here.host.tenure(&user.page).worker / self.size;
        let bucket = self.user.as_ref().map(of_page).or(self.search.bucket);
        Key::Bucket(self.settings.datacenter, bucket.unwrap_or_default())
    }

    /// Ends a search without a slot. Others of the host may look for one.
    pub(super) fn refuse(&mut self, refusal: Refusal, here: &mut Here<'_, P>) -> Command {
        self.forget();
        here.host.unlock();
        Command::Refused(refusal)
    }

    /// Begins anew, with the namespace's record.
    pub(super) fn forget(&mut self) {
        (self.namespace, self.search) = (Known::Unread, Search::default());
    }

    /// The earliest time that the store's clock can show now, and the latest, Unix ms.
    pub(super) fn now(&self, at: At) -> (i64, i64) {
        self.time.map_or((i64::MIN, i64::MAX), |StoreTime { least, most, .. }| {
            (at.mono.saturating_add(least), at.mono.saturating_add(most))
        })
    }

    /// Whether the store's clock was read so long ago that the monotonic clock may differ from it by now.
    pub(super) fn is_time_old(&self, at: At) -> bool {
        self.time.is_none_or(|time| at.mono - time.read > HOUR_MS)
    }

    /// The tick above all that anybody can have had confirmed until now.
    pub(super) fn horizon(&self, at: At) -> Tick {
        self.limits.horizon(self.settings.layout, self.now(at).1)
    }

    /// Whether a tick is above all that a holder can write.
    pub(super) fn is_damage(&self, tick: Tick, at: At) -> bool {
        self.limits.is_damage(self.settings.layout, tick, self.now(at).1)
    }

    /// Goes on with the page in use.
    pub(super) fn go_on(&mut self, stage: Stage) {
        if let Some(user) = &mut self.user {
            user.stage = stage;
        }
    }

    /// Leaves a page that another process has ended, or that has lost its name: then the first one frees the line.
    fn leave_ended(&mut self, page: &P, here: &mut Here<'_, P>) -> Command {
        let Some(last) = here.host.end(page, Loss::Released) else {
            return self.lose(here.host.loss(page), here);
        };
        self.go_on(Stage::Freeing(last));
        Command::Lost(Loss::Released)
    }

    /// Ends the page, and frees no line: the original of this machine may hold it. A call under way is of the time before.
    fn restored(&mut self, here: &mut Here<'_, P>) -> Option<Command> {
        if let Some((call, _)) = &mut self.call {
            *call = None;
        }
        let was_using = self.page().is_some();
        if let Some(user) = &self.user {
            here.host.end(&user.page, Loss::Restored);
        }
        let lost = self.lose(Loss::Restored, here);
        was_using.then_some(lost)
    }

    /// Leaves the page. Another one is next.
    pub(super) fn lose(&mut self, loss: Loss, here: &mut Here<'_, P>) -> Command {
        if let Some(user) = self.user.take() {
            here.host.leave(&user.page);
        }
        self.is_lost |= loss == Loss::Reverted;
        // This host may have been suspended meanwhile.
        self.time = None;
        self.forget();
        Command::Lost(loss)
    }
}
