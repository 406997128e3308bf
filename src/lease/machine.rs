//! The steps of one process's lease: takes a slot or joins the host's, renews it, and releases it. Events in, one command out.
//!
//! At most one call is under way. What the machine does next follows from what it knows, so after a call that failed, or whose
//! outcome is unknown, it goes on by the same rule.

use super::calls::{Call, Command, Event, Found, Host, LeaseRefusal, Reply};
use super::page::{At, LeasePage};
use super::record::{Key, Record, Token};
use super::state::{Listed, Machine, Seen, StoreTime};

impl<P: LeasePage + Clone> Machine<P> {
    /// Takes an event, and returns what is to be done.
    pub fn step(&mut self, event: Event, at: At, host: &impl Host<Page = P>) -> Command {
        match event {
            Event::Go => {}
            Event::Renew(wanted) => self.wanted = Some(wanted),
            Event::Merge if self.leaving.is_none() => {
                return self.merge(at, host).unwrap_or(Command::Wait);
            }
            Event::Merge => {}
            Event::Close => self.is_closing = true,
            Event::Reply(reply, now, called) => {
                let Some((call, since)) = self.under_way.take() else { return Command::Wait };
                if let Some(ms) = now {
                    self.time = Some(StoreTime { ms, called, replied: at.mono });
                }
                if reply == Reply::Failed {
                    let is_joining = self.leaving.is_some() && self.is_joining();
                    if let Some(joining) = self.held.take_if(|_| is_joining) {
                        return self.stay(joining, at, host);
                    }
                    self.making = None;
                    // What this host could not do, it may be able to do at the next try.
                    self.search.unusable.clear();
                    if let Call::List { bucket, .. } = call {
                        self.search.again = Some(bucket);
                    }
                    return Command::Retry;
                }
                let command = self.reply(call, reply, since, at, host);
                // What it says of the slot is nothing to a lease that closes.
                if let Some(command) = command
                    && (!self.is_closing || self.under_way.is_some())
                {
                    return command;
                }
            }
        }
        if self.under_way.is_some() { Command::Wait } else { self.plan(at, host) }
    }

    /// The next step by what is known.
    pub(super) fn plan(&mut self, at: At, host: &impl Host<Page = P>) -> Command {
        if let Some((held, ceiling)) = self.freeing.take() {
            match self.free(held, ceiling, at) {
                Some(command) => return command,
                // A search begins anew after a pause.
                None if self.held.is_none() && !self.is_closing => return Command::Retry,
                None => {}
            }
        }
        if let Some(held) = self.held.take() {
            return self.hold(held, at, host);
        }
        if let Some(taking) = self.taking.take() {
            return if self.is_closing {
                self.give_up(taking, at, host)
            } else {
                self.take(taking, at)
            };
        }
        if self.is_closing {
            self.drop_page(host);
            return Command::Released;
        }
        if let Some(making) = self.making.take() {
            return self.make(making, at);
        }
        match self.seen.clone() {
            Seen::Unknown => self.call(Call::Read(Key::Namespace), None),
            // A reply may have told the time.
            _ if self.time.is_none() => self.call(Call::Now, None),
            Seen::Absent => self.create_namespace(at),
            Seen::Present(token, namespace) => self.find_slot(token, namespace, at, host),
        }
    }

    /// Notes a reply. Returns what is to be done, unless that follows from what is known.
    fn reply(
        &mut self,
        call: Call,
        reply: Reply,
        since: Option<Token>,
        at: At,
        host: &impl Host<Page = P>,
    ) -> Option<Command> {
        match (call, reply) {
            (Call::Read(Key::Namespace), Reply::Read(found))
            | (Call::Write { key: Key::Namespace, .. }, Reply::Differs(found)) => {
                self.seen = match found {
                    Some((token, Record::Namespace(namespace))) => {
                        self.limits = self.limits.max(namespace.limits);
                        Seen::Present(token, namespace)
                    }
                    Some(_) => {
                        return Some(Command::Refused(LeaseRefusal::Damaged(Key::Namespace)));
                    }
                    None => Seen::Absent,
                };
                self.check_taken(at, host)
            }
            (Call::Write { key: Key::Namespace, token, record, .. }, Reply::Written) => {
                if let Record::Namespace(namespace) = record {
                    self.seen = Seen::Present(token, namespace);
                }
                None
            }
            (Call::List { bucket, .. }, Reply::Listed(records)) => {
                self.search.listed = Some(Listed { bucket, records });
                None
            }
            (Call::Write { key: Key::Bucket(..), .. }, reply) => {
                // Otherwise another process has changed the bucket: look again.
                if reply != Reply::Written {
                    self.making = None;
                    self.spread();
                }
                None
            }
            (Call::Write { record: Record::Made(_), .. }, _) => None,
            (Call::Write { key: Key::Slot(..), token, record, .. }, Reply::Written) => {
                self.found(Some((token, record)), since, at, host)
            }
            (Call::Write { key: Key::Slot(..), .. }, Reply::Differs(found))
            | (Call::Read(Key::Slot(..)), Reply::Read(found)) => self.found(found, since, at, host),
            _ => None,
        }
    }

    /// A slot's record was found, or written.
    fn found(
        &mut self,
        found: Found,
        since: Option<Token>,
        at: At,
        host: &impl Host<Page = P>,
    ) -> Option<Command> {
        if let Some((held, ceiling)) = self.freeing.take() {
            self.found_freeing(held, ceiling, found, since);
            return None;
        }
        if let Some(held) = self.held.take() {
            return self.found_held(held, found, since, at, host);
        }
        let taking = self.taking.take()?;
        self.found_taking(taking, found, host);
        None
    }
}
