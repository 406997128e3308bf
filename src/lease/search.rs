//! The search for a slot: from the namespace to a page that is joined, or to a bucket with a line (rules 5, 7, 10, 12 and 14).

use super::calls::{Call, Command, Found, Record, Refusal};
use super::known::{Here, Known, Look, Over, Search, Stage, User};
use super::machine::Machine;
use super::page::{Phase, Tenure};
use super::record::{Bucket, Key, Namespace, Ranges, Token, Unreadable};
use crate::core::sequencer::NEVER;

impl<P: Clone> Machine<P> {
    /// The next step of a process without a page.
    pub(super) fn search(&mut self, here: &mut Here<'_, P>) -> Command {
        let (before, namespace) = match self.namespace.clone() {
            Known::Unread => return self.call(Call::Read(Key::Namespace), here),
            Known::Absent => {
                let (id, layout) = (Token(here.host.random()), self.settings.layout);
                let (limits, size) = (self.limits, self.settings.size);
                let created = Ranges::default();
                (None, Namespace { id, layout, limits, floor: NEVER, size, created })
            }
            Known::Found(token, namespace) => (Some(token), namespace),
        };
        if namespace.layout != self.settings.layout {
            return self.refuse(Refusal::Layout(namespace.layout), here);
        }
        if self.is_lost && self.time.is_none() {
            return self.call(Call::Now, here);
        }
        // Rule 5, and the limits: both before a slot is looked for.
        // Above the floor of a namespace that an operator has confirmed to be new.
        let lost = if self.is_lost { self.horizon(here.at).max(1) } else { NEVER };
        let (floor, limits) = (namespace.floor.max(lost), namespace.limits.max(self.limits));
        let raised = Namespace { limits, floor, ..namespace.clone() };
        if before.is_none() || raised != namespace {
            return self.write(before, Record::Namespace(raised), here);
        }
        self.is_lost = false;
        // The lock first: another process may open a page before this one has it, or after it was taken away.
        let has_lock = here.host.lock();
        if let Some(command) = self.join(namespace.id, here) {
            return command;
        }
        if !has_lock {
            return Command::Locked;
        }
        if self.time.is_none() {
            return self.call(Call::Now, here);
        }
        if self.is_damage(namespace.floor, here.at) {
            return self.refuse(Refusal::Ahead(Key::Namespace, namespace.floor), here);
        }
        self.take_from(before, namespace, here)
    }

    /// Joins an open page of this host, if it has one of the namespace.
    fn join(&mut self, id: Token, here: &mut Here<'_, P>) -> Option<Command> {
        if self.search.over.is_some() {
            return None;
        }
        let claim = self.settings.claim;
        let host = &mut *here.host;
        let page = host.pages().into_iter().find(|page| {
            let Tenure { namespace, owner, worker } = host.tenure(page);
            let is_wanted = namespace == id
                && claim.is_none_or(|claim| claim == worker)
                && !self.contradicted.contains(&owner);
            is_wanted && host.phase(page) == Phase::Open && host.join(page)
        })?;
        host.unlock();
        self.user = Some(User::new(page, Stage::Joining));
        Some(self.look(here))
    }

    /// Whether the bucket that is looked into was created, as far as known.
    pub(super) fn has_counted(&self) -> bool {
        self.namespace().is_some_and(|namespace| namespace.created.contains(self.number(namespace)))
    }

    /// The number of the bucket that is looked into.
    fn number(&self, namespace: &Namespace) -> u64 {
        namespace.number(self.settings.datacenter, self.search.bucket.unwrap_or_default())
    }

    /// Rule 7, and then a line of the bucket.
    fn take_from(
        &mut self,
        before: Option<Token>,
        namespace: Namespace,
        here: &mut Here<'_, P>,
    ) -> Command {
        let buckets = namespace.buckets();
        if self.search.bucket.is_none() {
            // At random: it leaves most hosts alone on their record. With an odd step, it comes to each bucket once. Where each is one
            // worker ID, the lowest is first: a directory has no more files than were used at once.
            let claimed = self.settings.claim.map(|worker| worker / namespace.size);
            let choices = if namespace.size == 1 { 1 } else { buckets };
            let mut any = || here.host.choose(choices.try_into().unwrap_or(usize::MAX)) as u64;
            self.search.bucket = Some(claimed.unwrap_or_else(&mut any));
            self.search.stride = if buckets > 2 { any() | 1 } else { 1 };
        }
        let number = self.number(&namespace);
        let is_counted = namespace.created.contains(number);
        match self.search.look.clone() {
            Look::Unread => self.look(here),
            // The write of an empty bucket allows nothing: it may be late.
            Look::Absent(true) => self.write(None, Record::Bucket(Bucket::new(namespace.id)), here),
            // It is new where the namespace, read after that, does not count it.
            Look::Absent(false) if !is_counted => self.call(Call::Read(Key::Namespace), here),
            // It is lost where the namespace, read before that, counted it.
            Look::Absent(false) => {
                let floor = namespace.floor.max(self.horizon(here.at));
                self.write(before, Record::Namespace(Namespace { floor, ..namespace }), here)
            }
            Look::Found(_, bucket, false) if bucket.id != namespace.id => {
                self.call(Call::Read(Key::Namespace), here)
            }
            Look::Found(..) if !is_counted => {
                let mut counted = namespace;
                counted.count(number);
                self.write(before, Record::Namespace(counted), here)
            }
            Look::Found(token, bucket, _) => self.choose(token, bucket, namespace, here),
        }
    }

    /// What was found of a bucket that is looked into, or written.
    pub(super) fn found_searching(
        &mut self,
        found: Found,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        self.search.look = match found {
            None => Look::Absent(false),
            Some((token, Ok(Record::Bucket(bucket))))
                if !self.is_damage(bucket.floor, here.at) && bucket.has_room() =>
            {
                Look::Found(token, bucket, false)
            }
            Some((_, record)) => {
                let key = self.key(here);
                self.search.damage = Some(match record {
                    Err(why) => Refusal::Unreadable(key, why),
                    Ok(Record::Bucket(bucket)) if !bucket.has_room() => {
                        Refusal::Unreadable(key, Unreadable::Long(bucket.text().len()))
                    }
                    Ok(Record::Bucket(bucket)) => Refusal::Ahead(key, bucket.floor),
                    Ok(_) => return None,
                });
                return self.next_bucket(here);
            }
        };
        None
    }

    /// Begins a search in the bucket of a page that this process has ended.
    pub(super) fn search_over(&mut self, over: Over, (token, bucket): (Token, Bucket)) {
        let (look, stride) = (Look::Found(token, bucket, false), 1);
        let (bucket, over) = (Some(over.worker / self.size), Some(over));
        self.search = Search { bucket, stride, look, over, ..Search::default() };
    }

    /// Goes on with the next bucket. After all of them, there is no slot.
    pub(super) fn next_bucket(&mut self, here: &mut Here<'_, P>) -> Option<Command> {
        let last_worker = self.settings.layout.last_worker();
        let buckets = last_worker / self.size + 1;
        let search = &mut self.search;
        search.full += 1;
        if self.settings.claim.is_none() && search.full < buckets {
            let next = u128::from(search.bucket.unwrap_or_default()) + u128::from(search.stride);
            search.bucket = Some((next % u128::from(buckets)) as u64);
            search.look = Look::Unread;
            return None;
        }
        if let Some((_, late)) = search.late.take() {
            (search.bucket, search.look) = (Some(late), Look::Unread);
            return None;
        }
        let Search { holders, damage, .. } = std::mem::take(search);
        // One worker ID that cannot be used keeps nobody from waiting for another.
        let is_one_of_many = self.size == 1 && holders.iter().any(|(_, holder)| holder.is_some());
        let damage = damage.filter(|_| !is_one_of_many);
        Some(self.refuse(damage.unwrap_or(Refusal::NoSlot(holders)), here))
    }
}
