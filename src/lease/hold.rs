//! Holds a slot: joins its page, renews it, and frees it.

use super::calls::{Call, Command, Found, Host, LeaseRefusal, Settings};
use super::page::{At, LeasePage, Loss, Phase, Whose, whose};
use super::record::{Limits, Record, Slot, Token};
use super::state::{Held, Machine, Proof, Search, Sent};
use crate::core::layout::Tick;
use crate::core::sequencer::Window;

impl<P: LeasePage + Clone> Machine<P> {
    /// Begins to join the page of a lower slot, if this host has one. A host takes two slots where one of its processes has waited
    /// in vain for another one.
    pub(super) fn merge(&mut self, at: At, host: &impl Host<Page = P>) -> Option<Command> {
        if self.under_way.is_some() || self.is_closing || self.settings.claim.is_some() {
            return None;
        }
        // Of a renewal that failed, before another process renewed.
        self.wanted = None;
        let worker = self.page().filter(|page| page.phase() == Phase::Open)?.worker();
        let page = host.find_lower(self.namespace?, worker, self.passed(at))?;
        self.leaving = self.held.take();
        Some(self.look(Held { page, last: None, sent: None, proof: Proof::Wanted }))
    }

    /// Stays with the page in use: that of the lower slot is not joined.
    pub(super) fn stay(&mut self, joining: Held<P>, at: At, host: &impl Host<Page = P>) -> Command {
        self.held = self.leaving.take();
        self.leave(joining, at, host).unwrap_or_else(|| self.plan(at, host))
    }

    /// Stops using a page. Where nobody else uses it, it ends, and its slot is freed.
    fn leave(&mut self, held: Held<P>, at: At, host: &impl Host<Page = P>) -> Option<Command> {
        let last = host.leave(&held.page).then(|| held.page.end(Loss::Released)).flatten()?;
        let floor = held.page.window().floor;
        self.free(held, last.max(floor), at)
    }

    /// The next step of a page in use.
    pub(super) fn hold(&mut self, held: Held<P>, at: At, host: &impl Host<Page = P>) -> Command {
        if let Some(left) = self.leaving.take_if(|_| held.is_joined()) {
            self.held = Some(held);
            return self.leave(left, at, host).unwrap_or_else(|| self.plan(at, host));
        }
        let must_stay = |left: &Held<P>| left.page.phase() == Phase::Ended || left.page.is_gone();
        if let Some(left) = &self.leaving
            && (self.is_closing || self.wanted.is_some() || must_stay(left))
        {
            return self.stay(held, at, host);
        }
        if held.page.phase() == Phase::Ended {
            return self.leave_ended(held, at, host);
        }
        if self.is_closing {
            return self.leave(held, at, host).unwrap_or_else(|| self.plan(at, host));
        }
        if held.page.is_gone() {
            return self.leave_ended(held, at, host);
        }
        if !held.is_joined() {
            return self.look(held);
        }
        match self.wanted {
            Some(wanted) => self.renew(held, wanted, at),
            None => {
                self.held = Some(held);
                Command::Wait
            }
        }
    }

    /// Reads the slot's record.
    pub(super) fn look(&mut self, held: Held<P>) -> Command {
        let key = self.key(held.page.worker());
        let command = self.call(Call::Read(key), Some(&held.page));
        self.held = Some(held);
        command
    }

    fn renew(&mut self, mut held: Held<P>, wanted: Tick, at: At) -> Command {
        let known = held.page.known();
        if let Some(sent) = held.sent.as_mut().filter(|sent| known == Some(sent.before)) {
            sent.wanted = None;
            let command = self.send(&held);
            self.held = Some(held);
            return command;
        }
        let Some((before, last)) = held.last.clone().filter(|(token, _)| Some(*token) == known)
        else {
            return self.look(held);
        };
        let Settings { limits, ref holder, .. } = *self.settings;
        if self.time_age(at) > limits.ttl {
            self.held = Some(held);
            return self.call(Call::Now, None);
        }
        let (earliest, latest) = self.now(at);
        let Window { floor, ceiling } = held.page.window();
        let longest = self.limits.longest_hold(latest);
        let last_ceiling = last.ceiling;
        let slot = Slot {
            floor,
            ceiling: last.ceiling.max(ceiling).max(self.capped(wanted, at)),
            // Others of this host may hold it for longer, but no holder for longer than all limits.
            expires: last.expires.min(longest).max(earliest.saturating_add(limits.ttl)),
            holder: holder.clone(),
            ..last
        };
        let Some(token) = held.page.announce(at.fresh, before) else {
            // Others of this host renew it.
            self.wanted = None;
            self.held = Some(held);
            return Command::Wait;
        };
        held.sent = Some(if token == at.fresh {
            Sent { token, before, slot, wanted: Some(wanted) }
        } else {
            // That of a process that has died: what it asked for may be lower.
            Sent { token, before, slot: Slot { ceiling: last_ceiling, ..slot }, wanted: None }
        });
        let command = self.send(&held);
        self.held = Some(held);
        command
    }

    /// Sends the write whose outcome is unknown, once more or for the first time.
    fn send(&mut self, held: &Held<P>) -> Command {
        let Some(Sent { token, before, slot, .. }) = held.sent.clone() else {
            return Command::Wait;
        };
        let (key, record) = (self.key(held.page.worker()), Record::Slot(slot));
        let before = Some(before);
        self.call(Call::Write { key, token, record, before }, Some(&held.page))
    }

    /// What was found of a slot in use, or written.
    pub(super) fn found_held(
        &mut self,
        mut held: Held<P>,
        found: Found,
        since: Option<Token>,
        at: At,
        host: &impl Host<Page = P>,
    ) -> Option<Command> {
        if held.page.phase() == Phase::Ended {
            return Some(self.leave_ended(held, at, host));
        }
        let slot = match found {
            Some((token, Record::Slot(slot))) => Some((token, slot)),
            _ => None,
        };
        let found = match &slot {
            Some((token, _)) => whose(&held.page, since, *token),
            None if held.page.known() != since => Whose::Unsure,
            None => Whose::Foreign,
        };
        // Before the known token, which another process advances before it confirms.
        let confirmed = held.page.window().ceiling;
        match (found, slot) {
            (Whose::Ours, Some((token, slot))) => {
                let known = held.page.known();
                // The processes of a lower slot find out themselves. Nobody without a claim moves to a claimed one: it would keep it.
                let is_old = slot.ceiling < confirmed && (known == since || known == Some(token));
                if self.leaving.is_some() && (is_old || slot.holder.is_claim) {
                    return Some(self.stay(held, at, host));
                }
                if is_old {
                    // A record of this page, but of an earlier time: the store went back.
                    held.page.end(Loss::Reverted);
                    return Some(self.lose(held, Loss::Reverted, host));
                }
                match &held.proof {
                    Proof::Asked(since, before) if before.contains(&token) => {
                        // Once the others have ended, nobody is left to show it.
                        let is_late = at.mono - since > self.settings.limits.ttl;
                        if is_late || !held.page.is_shared() {
                            return Some(self.refuse_unproven(held, at, host));
                        }
                        self.held = Some(held);
                        return Some(Command::Retry);
                    }
                    // The server describes its run as it did to the process that renewed last.
                    Proof::Wanted if at.run != 0 && held.page.run() == at.run => {}
                    Proof::Wanted if !held.page.is_shared() => {
                        // Nobody can show it.
                        return Some(self.refuse_unproven(held, at, host));
                    }
                    Proof::Wanted => {
                        held.proof = Proof::Asked(at.mono, held.page.tokens());
                        held.page.ask();
                        self.held = Some(held);
                        return Some(Command::Retry);
                    }
                    _ => {}
                }
                let was_joined = held.is_joined();
                let own = held.sent.as_ref().filter(|sent| sent.token == token);
                let own = own.map(|sent| sent.wanted);
                // Another process of the host has just renewed as far. All of them renew at once after the store was away.
                let Settings { limits: Limits { ttl, .. }, layout, .. } = *self.settings;
                let (_, latest) = self.now(at);
                let is_just_renewed =
                    own.is_none() && slot.expires >= latest.saturating_add(ttl - ttl / 6);
                if held.note(token, slot.clone(), since) {
                    held.page.confirm(slot.ceiling, slot.expires, own.is_some(), at);
                    held.proof = Proof::Given;
                    self.wanted.take_if(|wanted| {
                        let is_as_far = *wanted <= slot.ceiling + ttl / 6 / layout.tick_ms;
                        own == Some(Some(*wanted)) || (is_just_renewed && is_as_far)
                    });
                    self.held = Some(held);
                    if self.leaving.is_some() {
                        return Some(Command::Moved);
                    }
                    return (own.flatten().is_some() || !was_joined).then_some(Command::Held);
                }
                self.held = Some(held);
                None
            }
            (Whose::Unsure, _) => {
                // One that joins waits: the others may renew faster than it reads.
                let is_joined = held.is_joined();
                self.held = Some(held);
                (!is_joined).then_some(Command::Retry)
            }
            (_, slot) => {
                let why = self.loss_of(&held.page, slot.as_ref().map(|(_, slot)| slot), at);
                if held.is_joined() {
                    held.page.end(why);
                    return Some(self.lose(held, why, host));
                }
                if is_of_store(why) && self.leaving.is_none() {
                    // Of a copy, that raises the copy's floor only.
                    self.is_lost = true;
                    self.forget();
                }
                Some(self.refuse_unproven(held, at, host))
            }
        }
    }

    /// What a foreign record means.
    fn loss_of(&self, page: &P, found: Option<&Slot>, at: At) -> Loss {
        // Of another namespace in its place: this one was lost, or an operator has recovered it.
        let Some(slot) = found.filter(|slot| Some(slot.namespace) == self.namespace) else {
            return Loss::Missing;
        };
        let (_, latest) = self.now(at);
        let is_early = slot.owner != page.owner() && slot.is_held && latest < page.expires();
        let is_old = slot.floor < page.window().ceiling;
        if is_old || is_early { Loss::Reverted } else { Loss::Taken }
    }

    /// Leaves a page that has ended, or that nobody finds any more. If it has only lost its name, which a draw may have
    /// noticed, the first process to get here frees its slot.
    fn leave_ended(&mut self, held: Held<P>, at: At, host: &impl Host<Page = P>) -> Command {
        if self.leaving.is_some() {
            return self.stay(held, at, host);
        }
        let floor = held.page.window().floor;
        let was_joined = held.is_joined();
        let last = was_joined.then(|| held.page.end(Loss::Released)).flatten();
        let why = held.page.loss().unwrap_or(Loss::Released);
        let left = held.clone();
        let command = self.lose(held, why, host);
        self.freeing = last.map(|last| (left, last.max(floor)));
        match self.is_closing {
            true => self.plan(at, host),
            false if was_joined => command,
            false => Command::Retry,
        }
    }

    /// Leaves a page that has ended. Another slot is next.
    fn lose(&mut self, held: Held<P>, why: Loss, host: &impl Host<Page = P>) -> Command {
        host.leave(&held.page);
        self.is_lost |= is_of_store(why);
        self.forget();
        self.search = Search::new();
        Command::Lost(why)
    }

    /// Leaves a page that may be another store's. One that nobody else uses has ended, and its slot is freed: in a copy of the
    /// store, that frees the copy's.
    fn refuse_unproven(&mut self, held: Held<P>, at: At, host: &impl Host<Page = P>) -> Command {
        if self.leaving.is_some() {
            return self.stay(held, at, host);
        }
        let worker = held.page.worker();
        let freed = self.leave(held, at, host);
        freed.unwrap_or(Command::Refused(LeaseRefusal::Unproven(worker)))
    }

    /// Frees the slot of a page that has ended: records this ceiling in place of the confirmed one. None once that is done.
    pub(super) fn free(&mut self, mut held: Held<P>, ceiling: Tick, at: At) -> Option<Command> {
        let known = held.page.known();
        match (&mut held.sent, held.last.clone()) {
            // The token of a renewal whose outcome is unknown: it belongs to this predecessor.
            (Some(sent), _) if known == Some(sent.before) => {
                sent.slot = Slot { is_held: false, ceiling, ..sent.slot.clone() };
            }
            (_, Some((before, last))) if known == Some(before) => {
                if !last.is_held {
                    return None;
                }
                let slot = Slot { is_held: false, ceiling, ..last };
                // Without a place for a token it expires.
                let token = held.page.announce(at.fresh, before)?;
                held.sent = Some(Sent { token, before, slot, wanted: None });
            }
            _ => {
                let key = self.key(held.page.worker());
                let command = self.call(Call::Read(key), Some(&held.page));
                self.freeing = Some((held, ceiling));
                return Some(command);
            }
        }
        let command = self.send(&held);
        self.freeing = Some((held, ceiling));
        Some(command)
    }

    /// What was found of a slot that is being freed, or written.
    pub(super) fn found_freeing(
        &mut self,
        mut held: Held<P>,
        ceiling: Tick,
        found: Found,
        since: Option<Token>,
    ) {
        let Some((token, Record::Slot(slot))) = found else { return };
        match whose(&held.page, since, token) {
            Whose::Ours => {
                held.note(token, slot, since);
                self.freeing = Some((held, ceiling));
            }
            Whose::Unsure => self.freeing = Some((held, ceiling)),
            // Somebody else has it by now.
            Whose::Foreign => {}
        }
    }
}

/// Whether the store has lost data, and not only this host its slot.
fn is_of_store(why: Loss) -> bool {
    matches!(why, Loss::Missing | Loss::Reverted)
}
